// The view of one series: its chart, and those of others beside it. Charts of one page show the same
// nights, zoom together, and share the cursor, so that one sees at once what else moved that night.
"use strict";

const BESIDE = { "": "nothing", references: "reference rows", sizes: "other sizes", variants: "other variants" };
const MOST_BESIDE = 6;

async function seriesView() {
  const of = machine(), about = of.series.find(s => s.name === state.s) || of.series[0], last = of.nights.length - 1;
  const from = Math.min(+(state.from || Math.max(0, last - 89)), last), to = Math.min(+(state.to || last), last);
  const page = { of, from, to, last, cursors: [], zoom: (a, b) => go({ from: a, to: b }) };
  const others = beside(of, about), more = others.slice(0, MOST_BESIDE);
  const [mine, ...rest] = await Promise.all([about, ...more].map(one => chartOf(page, one)));
  const changes = alarmsOf(of, about);
  return [h("h1", {}, about.name), mine.sentence, seriesBar(page, about), mine.chart,
    h("p", { class: "faint" }, "Blue points and line: median of the launches. Band: their middle half. Grey dots: launches. ▲ ▼ solid line: the level changed. ◆ dashed line: machine, driver or compiler changed; after a change of machine or driver statistics start anew. ◇: a commit that is not on the branch."),
    h("h2", {}, "Changes"), changes.length ? table("Changes of level of this series", ALARM_HEADS, changes.map(alarmRow)) : h("p", {}, "No change of level."),
    mine.table, ...rest.flatMap((one, i) => [h("h2", {}, link(more[i].name, { view: "series", m: of.name, s: more[i].name })), one.sentence, one.chart, one.table]),
    state.beside && (others.length > more.length || !others.length) ? h("p", {}, others.length ? `${others.length - more.length} more are not drawn.` : `There are no ${BESIDE[state.beside]} to show.`) : ""];
}

// What is shown beside a series, nearest first: peaks of its side, its variant at other sizes, its product's other variants.
function beside(of, about) {
  const near = s => Math.abs(Math.log((s.value || 1) / (about.value || 1))), alike = key => s => s[key] === about[key];
  const chosen = {
    references: s => s.tests && ["", about.side].includes(s.side),
    sizes: s => ["op", "side", "variant"].every(key => alike(key)(s)),
    variants: s => ["op", "n"].every(key => alike(key)(s)),
  }[state.beside];
  return chosen ? of.series.filter(s => s !== about && s.last !== undefined && chosen(s)).sort((a, b) => near(a) - near(b)) : [];
}

const alarmsOf = (of, about) => DATA.alarms.filter(a => DATA.machines[a.m] === of && a.series === about.name);

// Of one series: its sentence, its chart, and the table behind it.
async function chartOf(page, about) {
  const { of, from, to } = page, place = of.series.indexOf(about);
  const packed = await need(`s/${DATA.machines.indexOf(of)}-${place}-${of.stamp}`), back = list => list && list.map(v => v === null ? null : v * packed.scale);
  const data = { ...packed, v: back(packed.v), lo: back(packed.lo), hi: back(packed.hi), raw: packed.raw.map(back) };
  const unit = unitOf(about), turned = list => list && list.map(unit.turn);
  const shown = { v: turned(data.v), lo: turned(data.lo), hi: turned(data.hi), raw: data.raw.map(turned), marks: marksOf(of, about), apart: of.nights.findIndex(n => n.apart) };
  if (shown.apart < 0) shown.apart = of.nights.length;
  const days = new Set(of.nights.slice(from, to + 1).map(day)).size, oneDay = days < (to - from + 1) / 2;
  const show = i => [oneDay ? `${day(of.nights[i]).slice(5)} ${minute(of.nights[i])}` : day(of.nights[i]).slice(2),
    `${called(of.nights[i])}: ${data.st[i] ? data.st[i].join(": ") : data.v[i] === null ? "no value (" + of.nights[i].state + ")" : unit.format(unit.turn(data.v[i]))}`];
  const label = `${about.name} on ${of.name}: ${unit.name} of nights ${called(of.nights[from])} to ${called(of.nights[to])}. Arrow keys read nights, plus and minus zoom, Page Up and Page Down go on, 0 shows all.`;
  const view = { from, to, log: state.log === "1", format: unit.format, zoom: page.zoom, cursors: page.cursors };
  return { sentence: h("p", {}, sentence(of, about, data)), chart: lineChart(shown, view, label, show), table: behind(page, about, data) };
}

// In what a chart measures: time, rate, or time against the last night.
function unitOf(about) {
  const work = about.rate * about.value;
  const turns = v => f => v === null ? null : f(v);
  if (state.unit === "rate" && about.unit) return { name: about.unit, turn: v => turns(v)(x => work / x), format: significant };
  if (state.unit === "relative" && about.value) return { name: "time against the last night", turn: v => turns(v)(x => x / about.value), format: percent };
  return { name: "time", turn: v => v, format: seconds };
}

function marksOf(of, about) {
  const marks = alarmsOf(of, about).map(a => ({ at: a.night, kind: a.after > a.before ? "step" : "step good", sign: a.after > a.before ? "▲" : "▼",
    text: `${a.state}: ${change(a.after / a.before, 0)[0]} since ${called(of.nights[a.night])}` }));
  of.nights.forEach((n, i) => { if (n.changed) marks.push({ at: i, kind: "context", sign: "◆", text: `${called(n)}: ${n.changed.join("; ")}` }); });
  return marks;
}

function behind(page, about, data) {
  const { of, from, to } = page, nights = of.nights.map((n, i) => i).filter(i => i >= from && i <= to);
  const why = i => (data.st[i] || (data.v[i] === null ? [of.nights[i].state === "complete" ? "no value" : of.nights[i].state] : [])).join(": ");
  return h("details", {}, h("summary", {}, "Table of the nights in this chart"),
    table(`Values of the chart of ${about.name}`, ["Night", "Median", "Quartiles", about.unit || "Rate", "Launches", "Remarks"], nights.map(i => [
      link(called(of.nights[i]), { view: "nights", m: of.name, night: of.nights[i].key }), [seconds(data.v[i]), "num"], [`${seconds(data.lo[i])} – ${seconds(data.hi[i])}`, "num"],
      [data.r[i] === null ? "–" : significant(data.r[i]), "num"], [(data.raw[i] || []).length, "num"], [why(i), "long"]])));
}

function sentence(of, about, data) {
  const parts = [`${data.v.filter(v => v !== null).length} nights with a value on ${of.name}.`];
  if (about.value) parts.push(`Last: ${seconds(about.value)}${about.rate ? `, ${significant(about.rate)} ${about.unit}` : ""}${about.base ? `, ${change(about.value / about.base, about.margin)[0]} against the baseline of ${seconds(about.base)}` : ""}.`);
  const [nights, launches] = data.noise.map(v => v && `±${significant(100 * v)} %`);
  if (nights) parts.push(`Noise: ${nights} from night to night${launches ? `, ${launches} from launch to launch` : ""}.`);
  if (about.formerly) parts.push(`Formerly ${about.formerly.join(", ")}.`);
  if (data.drift) parts.push(`It drifts slowly: ${percent(data.drift)} time over the whole history.`);
  if (about.state !== "ok") parts.push(`State: ${about.state}${about.why ? ` (${about.why})` : ""}.`);
  return parts.join(" ");
}

function seriesBar(page, about) {
  const { of, from, to, last, zoom } = page, quarter = Math.max(1, Math.round((to - from) / 4));
  const button = (text, action, pressed) => h("button", { type: "button", onclick: action, "aria-pressed": pressed === undefined ? undefined : String(pressed) }, text);
  const latest = count => button(`last ${count}`, () => zoom(Math.max(0, last - count + 1), last), from === Math.max(0, last - count + 1) && to === last);
  return h("div", { class: "bar" }, latest(30), latest(90), button("all", () => zoom(0, last), from === 0 && to === last),
    button("zoom in", () => zoom(Math.min(from + quarter, to - 1), to)), button("zoom out", () => zoom(Math.max(0, from - 2 * quarter), Math.min(last, to + quarter))),
    button("earlier", () => zoom(Math.max(0, from - quarter), Math.max(1, to - quarter))), button("later", () => zoom(Math.min(last - 1, from + quarter), Math.min(last, to + quarter))),
    button("logarithmic", () => go({ log: state.log ? "" : "1" }), state.log === "1"),
    about.unit ? button(about.unit, () => go({ unit: state.unit === "rate" ? "time" : "rate" }), state.unit === "rate") : "",
    button("relative", () => go({ unit: state.unit === "relative" ? "time" : "relative" }), state.unit === "relative"),
    select("Beside", "beside", Object.entries(BESIDE)), copyButton(), DATA.machines.length > 1 ? select("Machine", "m", DATA.machines.filter(m => m.series.some(s => s.name === about.name)).map(m => [m.name, m.name])) : "");
}
