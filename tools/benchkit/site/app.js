// The views. The whole state lives in the URL's hash, so that a link shows what its sender saw.
// Text of results reaches the page through textContent only.
"use strict";

const DATA = JSON.parse(document.getElementById("overview").textContent);
const LOADED = JSON.parse(document.getElementById("inside").textContent);
const VIEWS = { overview: "Overview", heat: "Heat map", ladder: "Ladder", roofline: "Roofline", compare: "Compare nights", nights: "Nights" };
const SIGNS = { slower: "▲ slower", faster: "▼ faster", same: "● same", unclear: "○ unclear", broke: "✖ broke", missing: "✖ missing",
  new: "+ new", fixed: "✔ fixed", "still failing": "✖ still failing", "not comparable": "≠ not comparable" };
const DEFAULTS = { view: "overview", m: "", s: "", q: "", side: "", show: "all", sort: "worst", from: "", to: "", log: "", unit: "time", a: "", b: "", op: "", n: "", night: "", beside: "", group: "", theme: "auto" };
let state = {};

// ---- small helpers ----------------------------------------------------------------------------

function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter(child => child !== undefined && child !== null && child !== ""));
  return element;
}

const significant = v => v >= 1000 ? v.toFixed(0) : String(+v.toPrecision(4));
function seconds(v) {
  if (v === null || v === undefined) return "–";
  const [unit, factor] = v < 1e-6 ? ["ns", 1e9] : v < 1e-3 ? ["µs", 1e6] : v < 1 ? ["ms", 1e3] : ["s", 1];
  return significant(v * factor) + " " + unit;
}
const percent = ratio => (ratio >= 1 ? "+" : "−") + Math.abs((ratio - 1) * 100).toFixed(1) + " %";
const day = night => night.date ? night.date.slice(0, 10) : "no date";
const minute = night => night.date.slice(11, 16);
const called = night => `${day(night)} ${minute(night)} ${night.sha.slice(0, 8)}`; // several nights may share a day
const say = text => { document.getElementById("said").textContent = text; };

// A change of time in words and shape: [text, class].
function change(ratio, margin) {
  if (!ratio || !isFinite(ratio)) return ["–", "faint"];
  if (ratio > 1 + margin) return ["▲ " + percent(ratio) + " slower", "slower"];
  if (ratio < 1 / (1 + margin)) return ["▼ " + percent(ratio) + " faster", "faster"];
  return ["● " + percent(ratio), "faint"];
}

function hash(changes) {
  const next = { ...state, ...changes };
  const kept = Object.entries(next).filter(([k, v]) => k in DEFAULTS && String(v) !== DEFAULTS[k]);
  return "#" + new URLSearchParams(kept).toString();
}
const go = changes => { location.hash = hash(changes); };
const link = (text, changes, attributes) => h("a", { href: hash({ ...DEFAULTS, theme: state.theme, ...changes }), ...attributes }, text);

function table(caption, heads, rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, heads.map((t, i) => h("th", { scope: "col", class: rows[0]?.[i]?.[1] === "num" && "num" }, t)))),
      h("tbody", {}, rows.map(cells => h("tr", {}, cells.map(cell => {
        if (cell instanceof HTMLTableCellElement) return cell;
        const [content, kind] = Array.isArray(cell) ? cell : [cell];
        return h("td", { class: kind }, content);
      }))))));
}

// A long table shows its first rows and a button for the rest.
function longTable(caption, heads, rows, count = 100) {
  const box = h("div", {}, table(caption, heads, rows.slice(0, count).map(r => r())));
  if (rows.length > count) {
    box.append(h("p", {}, h("button", { type: "button", onclick: () => box.replaceChildren(table(caption, heads, rows.map(r => r()))) }, `Show all ${rows.length} rows`)));
  }
  return box;
}

function select(label, key, options) {
  return h("label", {}, label + " ", h("select", { onchange: event => go({ [key]: event.target.value }) },
    options.map(([value, text]) => h("option", { value, selected: String(value) === String(state[key]) }, text))));
}

// Data of a series or night: inside the page, or a script in data/.
const waiting = {};
window.dashboardData = (key, values) => { LOADED[key] = values; };
function need(key) {
  if (LOADED[key]) return Promise.resolve(LOADED[key]);
  waiting[key] = waiting[key] || new Promise((done, failed) => {
    const script = h("script", { src: `data/${key}.js` });
    script.onload = () => done(LOADED[key]);
    script.onerror = () => failed(new Error(`data/${key}.js is missing beside this page`));
    document.head.append(script);
  });
  return waiting[key];
}

const machineOptions = all => [...(all ? [["", "all"]] : []), ...DATA.machines.map(m => [m.name, m.name])];
// Links name machines, and nights by their content: they outlive a machine or a night that comes
// between. A plain number counts.
const machine = () => DATA.machines.find(m => m.name === state.m) || DATA.machines[+state.m] || DATA.machines[0];
const nightOf = (of, key, otherwise) => {
  const at = of.nights.findIndex(n => n.key === key);
  return at >= 0 ? at : key !== "" && of.nights[+key] ? +key : otherwise;
};
function context(of, at) {
  const full = {};
  for (const night of of.nights.slice(0, at + 1)) {
    for (const key of night.without || []) delete full[key];
    Object.assign(full, night.context || {});
  }
  return full;
}

// ---- overview ---------------------------------------------------------------------------------

function matches(series, of) {
  const words = state.q.toLowerCase().split(/\s+/).filter(Boolean), name = series.name.toLowerCase();
  const moved = series.base && Math.abs(Math.log(series.value / series.base)) > Math.log(1 + series.margin);
  const shown = { all: true, changed: moved, failing: series.state === "failing", stale: series.state === "stale", new: series.state === "new" };
  return (state.m === "" || state.m === of.name) && (state.side === "" || series.side === state.side) &&
    words.every(word => name.includes(word)) && shown[state.show];
}

function alarmRow(alarm) {
  const of = DATA.machines[alarm.m], night = of.nights[alarm.night], at = of.series.findIndex(s => s.name === alarm.series);
  const [text, kind] = change(alarm.after / alarm.before, 0);
  return [[alarm.state, alarm.regression ? "slower" : ""], [link(alarm.series, { view: "series", m: of.name, s: alarm.series }), "long"], of.name, [text, kind], called(night),
    [alarm.cause === "machine" ? "the machine" : "the code", alarm.cause === "machine" ? "other" : ""],
    [[alarm.why, ...alarm.changed].filter(Boolean).join("; ") || "nothing known", "long"]];
}
const ALARM_HEADS = ["State", "Benchmark", "Machine", "Time", "Since", "What moved", "What else changed, why"];

function overview() {
  const open = DATA.alarms.filter(a => a.state !== "resolved"), regressions = open.filter(a => a.regression).length;
  const rows = DATA.machines.flatMap(of => of.series.map(series => ({ of, series })));
  const failing = rows.filter(r => r.series.state === "failing").length, stale = rows.filter(r => r.series.state === "stale").length;
  const listed = rows.filter(r => matches(r.series, r.of));
  const size = r => r.series.base ? -Math.log(r.series.value / r.series.base) : 0;
  const orders = { worst: (a, b) => size(a) - size(b), best: (a, b) => size(b) - size(a), name: (a, b) => a.series.name < b.series.name ? -1 : 1 };
  listed.sort(orders[state.sort] || orders.worst);
  return [h("h1", {}, "Overview"),
    h("p", {}, h("strong", { class: regressions ? "slower" : "faster" }, regressions ? `▲ ${regressions} confirmed regression${regressions > 1 ? "s" : ""} of the code` : "● no confirmed regression of the code"),
      `; ${open.length} open changes, ${failing} failing and ${stale} stale of ${rows.length} series. ${DATA.order}`),
    table("Machines: the last night of each", ["Machine", "Nights", "Last night", "State", "Failing", "Stale"], DATA.machines.map((of, i) => {
      const last = of.nights.filter(n => !n.apart).pop() || of.nights[of.nights.length - 1], count = s => of.series.filter(x => x.state === s).length;
      return [link(of.name, { view: "nights", m: of.name }), [of.nights.length, "num"], called(last), [last.state, last.state === "complete" ? "" : "warn"], [count("failing"), "num"], [count("stale"), "num"]];
    })),
    h("h2", {}, "Changes, worst first"),
    DATA.alarms.length ? longTable("Changes of level found in the history", ALARM_HEADS, DATA.alarms.map(a => () => alarmRow(a)), 25) : h("p", {}, "No change of level in any series."),
    h("h2", {}, "Today against baseline"),
    filters(), h("p", {}, `${listed.length} series; baseline: median of the ten nights before the last one.`), groups(listed.map(r => r.series)),
    longTable("Last night of every series against its baseline", ["Benchmark", "Machine", "Last value", "Rate", "Against baseline", "State"], listed.map(r => () => seriesRow(r))),
    notes()];
}

function seriesRow({ of, series }) {
  const rate = series.rate ? significant(series.rate) + " " + series.unit : "–";
  const states = { ok: "measured", failing: "✖ failing", skipped: "skipped", stale: "◌ stale: not in the last night", new: "+ new", apart: "apart from the branch" };
  const ended = series.state === "stale" && series.last !== undefined ? `; ended after ${called(of.nights[series.last])}` : "";
  return [[link(series.name, { view: "series", m: of.name, s: series.name }), "long"], of.name, [seconds(series.value), "num"], [rate, "num"],
    change(series.base && series.value / series.base, series.margin), [states[series.state] + ended + (series.why ? `: ${series.why}` : ""), series.state === "failing" ? "slower" : series.state === "ok" ? "" : "warn"]];
}

function filters() {
  return h("form", { onsubmit: event => { event.preventDefault(); go({ q: event.target.q.value }); } },
    h("label", {}, "Search names ", h("input", { name: "q", type: "search", value: state.q, onchange: event => go({ q: event.target.value }) })),
    select("Machine", "m", machineOptions(true)), select("Side", "side", [["", "all"], ["CPU", "CPU"], ["GPU", "GPU (OpenCL)"]]),
    select("Show", "show", [["all", "all"], ["changed", "only changed"], ["failing", "failing"], ["stale", "stale"], ["new", "new"]]),
    select("Order", "sort", [["worst", "worst first"], ["best", "best first"], ["name", "by name"]]),
    select("Group by", "group", [["", "nothing"], ...Object.entries(GROUPS).map(([key, [text]]) => [key, text.toLowerCase()])]), copyButton());
}

// How series may be put together: name, and the filter that shows one group alone.
const GROUPS = { op: ["Product", v => ({ q: v + "/" })], side: ["Side", v => ({ side: v })], variant: ["Variant", v => ({ q: `/${v}/` })], n: ["Size n", v => ({ q: `n:${v}/` })] };

function groups(list) {
  if (!GROUPS[state.group]) return "";
  const [text, filter] = GROUPS[state.group], members = Map.groupBy(list, s => s[state.group] ?? "");
  const rows = [...members].map(([value, group]) => {
    const logs = group.filter(s => s.base).map(s => Math.log(s.value / s.base)), mean = Math.exp(logs.reduce((a, b) => a + b, 0) / logs.length);
    const moved = kind => group.filter(s => s.base && change(s.value / s.base, s.margin)[1] === kind).length;
    return { size: logs.length ? mean : 0, cells: [value === "" ? "without" : link(String(value), { ...state, ...filter(value), group: "" }), [group.length, "num"], [moved("slower"), "num"], [moved("faster"), "num"],
      [group.filter(s => s.state === "failing").length, "num"], logs.length ? change(mean, group[0].margin) : ["–", "faint"]] };
  });
  rows.sort((a, b) => state.sort === "best" ? a.size - b.size : b.size - a.size);
  return table(`Series by ${text.toLowerCase()}`, [text, "Series", "Slower", "Faster", "Failing", "Geometric mean against baseline"], rows.map(r => r.cells));
}

function copyButton() {
  return h("button", { type: "button", onclick: () => { (navigator.clipboard ? navigator.clipboard.writeText(location.href) : Promise.reject()).then(() => say("The link to this view is copied."), () => say("Copy the address of this page: it is the link to this view.")); } }, "Copy link");
}

function notes() {
  if (!DATA.warnings.length) return "";
  return h("details", {}, h("summary", {}, `${DATA.warnings.length} remarks on the result files`), h("ul", {}, DATA.warnings.map(w => h("li", {}, w))));
}

// ---- compare two nights -----------------------------------------------------------------------

async function compareView() {
  const of = machine(), last = of.nights.length - 1, b = nightOf(of, state.b, last), a = nightOf(of, state.a, Math.max(0, b - 1));
  const options = of.nights.map(n => [n.key, `${called(n)} (${n.state})`]).reverse();
  const pick = (label, key, value) => h("label", {}, label + " ", h("select", { onchange: event => go({ [key]: event.target.value }) }, options.map(([v, t]) => h("option", { value: v, selected: v === of.nights[value].key }, t))));
  const rows = judge(await comparison(of, a, b), DATA.tests);
  const order = Object.keys({ broke: 1, missing: 1, slower: 1, "still failing": 1, "not comparable": 1, unclear: 1, new: 1, fixed: 1, faster: 1, same: 1 });
  const size = r => Math.abs(Math.log(r.estimate || 1));
  rows.sort((x, y) => order.indexOf(x.word) - order.indexOf(y.word) || size(y) - size(x) || (x.name < y.name ? -1 : 1));
  const shown = rows.filter(r => (state.show !== "changed" || !["same", "unclear"].includes(r.word)) && r.name.toLowerCase().includes(state.q.toLowerCase()));
  const counts = order.map(w => [w, rows.filter(r => r.word === w).length]).filter(([, n]) => n).map(([w, n]) => `${n} ${w}`).join(", ");
  const css = { slower: "slower", broke: "slower", missing: "slower", faster: "faster", fixed: "faster", same: "faint", unclear: "warn" };
  return [h("h1", {}, "Compare two nights"),
    h("form", { onsubmit: event => { event.preventDefault(); go({ q: event.target.q.value }); } }, select("Machine", "m", machineOptions(false)), pick("A", "a", a), pick("B", "b", b),
      h("label", {}, "Search names ", h("input", { name: "q", type: "search", value: state.q, onchange: event => go({ q: event.target.value }) })),
      select("Show", "show", [["all", "all"], ["changed", "only changed"]]), copyButton()),
    h("p", {}, h("strong", {}, `B against A: ${counts || "nothing in common"}.`), " The words and limits are those of compare.py: corrected p below 0.05 and a change beyond the margin, or an interval inside it."),
    longTable(`${called(of.nights[b])} against ${called(of.nights[a])}`, ["Verdict", "Benchmark", "A", "B", "B / A", "95 % interval", "Corrected p", "Reason"], shown.map(r => () => [
      [SIGNS[r.word], css[r.word] || "other"], [link(r.now_name, { view: "series", m: of.name, s: r.now_name }), "long"], [r.base ? seconds(r.base[2].length ? median(r.base[2]) : null) : "–", "num"], [r.now ? seconds(r.now[2].length ? median(r.now[2]) : null) : "–", "num"],
      [r.ratio ? percent(r.ratio) : "–", "num"], [r.low ? `${percent(r.low)} … ${percent(r.high)}` : "–", "num"], [r.adjusted == null ? "–" : r.adjusted.toPrecision(2), "num"], [r.reason, "long"]]))];
}

async function comparison(of, a, b) {
  const [base, now] = await Promise.all([a, b].map(i => need("n/" + of.nights[i].key)));
  const contexts = [context(of, a), context(of, b)];
  const refused = side => DATA.rules.filter(([key, concerns]) => ["", side].includes(concerns) && contexts.every(c => c[key]) && String(contexts[0][key]) !== String(contexts[1][key]))
    .map(([key, , what]) => `${what} differs: ${contexts[0][key]} → ${contexts[1][key]}`).join("; ");
  return of.series.map(s => {
    const find = night => [s.name, ...(s.formerly || [])].map(name => night[name]).find(Boolean);
    return { name: s.name, now_name: s.name, base: find(base), now: find(now), margin: s.margin, refused: refused(s.side) };
  }).filter(row => row.base || row.now);
}

// ---- heat map and ladder ----------------------------------------------------------------------

function contestants() {
  const all = machine().series.filter(s => !s.tests && s.n !== null);
  const ops = [...new Set(all.map(s => s.op))].sort(), op = state.op = ops.includes(state.op) ? state.op : ops[0];
  return { all, ops, op, list: all.filter(s => s.op === op) };
}

function heatView() {
  const { ops, op, list } = contestants(), sizes = [...new Set(list.map(s => s.n))].sort((a, b) => a - b);
  const names = [...new Set(list.map(s => `${s.side}/${s.variant}`))].sort();
  const cell = series => {
    if (!series) return h("td", { class: "faint" }, "–");
    const [text, kind] = change(series.week && series.value / series.week, series.margin), ratio = series.week ? Math.abs(Math.log(series.value / series.week)) : 0;
    const deep = kind === "faint" ? "" : (kind === "slower" ? "s" : "f") + (ratio > 0.1 ? "3" : "1");
    return h("td", { class: deep }, link(series.rate ? `${significant(series.rate)} ${series.unit}` : seconds(series.value), { view: "series", m: machine().name, s: series.name }, { class: "whole" }),
      h("br"), series.state === "failing" ? "✖ failing" : series.value ? series.week ? text : "no value a week ago" : "not measured");
  };
  return [h("h1", {}, "Heat map: variant × n"), h("form", {}, select("Machine", "m", machineOptions(false)), select("Product", "op", ops.map(o => [o, o])), copyButton()),
    h("p", {}, "Each cell: the last rate, and the change of time against a week before: ▲ slower, ▼ faster, ● within the margin."),
    list.length ? h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Heat map" }, h("table", {}, h("caption", {}, `${op} on ${machine().name}`),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Variant"), sizes.map(n => h("th", { scope: "col" }, `n = ${n}`)))),
      h("tbody", {}, names.map(name => h("tr", {}, h("th", { scope: "row" }, name), sizes.map(n => cell(list.find(s => s.n === n && `${s.side}/${s.variant}` === name)))))))) : h("p", {}, "No series with a size.")];
}

function ladderView() {
  const { ops, op, list } = contestants(), sizes = [...new Set(list.filter(s => s.rate).map(s => s.n))].sort((a, b) => a - b);
  const n = state.n = sizes.includes(+state.n) ? +state.n : sizes[sizes.length - 1];
  const rows = list.filter(s => s.n === n && s.rate && s.state !== "failing").sort((a, b) => b.rate - a.rate);
  const unit = rows.length ? rows[0].unit : "GFLOP/s";
  const peaks = machine().series.filter(s => s.tests && s.rate && s.unit === unit).map(s => ({ name: `${s.side} ${s.variant}`, value: s.rate }));
  const tops = [...new Map(peaks.sort((a, b) => a.value - b.value).map(p => [p.name, p])).values()];
  const roof = side => Math.max(...peaks.filter(p => p.name.startsWith(side)).map(p => p.value));
  const matrix = s => s.point && s.point.bound === "matrix units";
  const share = s => matrix(s) ? "matrix units: their peak is not measured" : isFinite(roof(s.side)) ? (100 * s.rate / roof(s.side)).toFixed(0) + " % of the measured peak" : "peak not measured";
  const bars = rows.map(s => ({ name: `${matrix(s) ? "▲ " : ""}${s.side}/${s.variant}`, value: s.rate, kind: /Peer/.test(s.variant) ? "peer" : matrix(s) ? "matrix" : s.side.toLowerCase() || "cpu", text: significant(s.rate) + " " + s.unit }));
  return [h("h1", {}, "Ladder: every variant of one product"), h("form", {}, select("Machine", "m", machineOptions(false)), select("Product", "op", ops.map(o => [o, o])), select("Size n", "n", sizes.map(v => [v, v])), copyButton()),
    h("p", {}, rows.length ? `Fastest of ${op} n = ${n} on ${machine().name}: ${bars[0].name} with ${bars[0].text} (${share(rows[0])}). Dashed frames: vendors' libraries. Dashed lines: measured peaks of the multiply-adds. ▲: matrix units, which those do not bound.` : "No rates for this product."),
    rows.length ? barChart(bars, tops, `Rates of ${rows.length} variants; the table below has the same numbers`) : "",
    rows.length ? table("Numbers of the ladder", ["Variant", "Rate", "Time", "Share of peak"], rows.map(s => [[link(`${s.side}/${s.variant}`, { view: "series", m: machine().name, s: s.name }), "long"], [significant(s.rate) + " " + s.unit, "num"], [seconds(s.value), "num"], share(s)])) : ""];
}

// ---- nights -----------------------------------------------------------------------------------

async function nightsView() {
  const of = machine(), chosen = of.nights[nightOf(of, state.night, -1)];
  const heads = ["Night", "Commit", "State", "What changed, remarks"];
  const row = i => { const n = of.nights[i]; return () => [link(`${n.date.replace("T", " ").replace("Z", " UTC") || "no date"}`, { view: "nights", m: of.name, night: of.nights[i].key }), n.sha || "unknown",
    [n.state + (n.apart ? "; not on the branch" : ""), n.state === "complete" && !n.apart ? "" : "warn"], [[n.message, ...(n.changed || [])].filter(Boolean).join("; "), "long"]]; };
  const places = of.nights.map((n, i) => i), on = places.filter(i => !of.nights[i].apart).reverse(), apart = places.filter(i => of.nights[i].apart);
  return [h("h1", {}, chosen ? `Night ${called(chosen)}` : "Nights"), h("form", {}, select("Machine", "m", machineOptions(false)), copyButton()),
    chosen ? await nightDetails(of, chosen) : "", chosen ? h("h2", {}, "All nights") : "", h("p", {}, DATA.order),
    longTable(`Nights on ${of.name}, newest first`, heads, on.map(row)),
    apart.length ? [h("h2", {}, "Nights apart"), h("p", {}, "Their commits are not on the branch (any more): after a forced push, or from another branch; or only their dates could place them, and those are in the future. They take no part in statistics."), longTable("Nights apart from the branch", heads, apart.map(row))] : "",
    of.unmeasured.length ? h("details", {}, h("summary", {}, `${of.unmeasured.length} commits without a night since the first one`), h("p", {}, of.unmeasured.join(", "))) : ""].flat();
}

// The same program on both sides, in turns: what differs is the machine's doing, or chance.
function noiseFloor(of, rows) {
  const margins = new Map(of.series.flatMap(s => [s.name, ...(s.formerly || [])].map(name => [name, s.margin])));
  const apart = Object.entries(rows).filter(([, [, , launches]]) => launches.length >= 4).map(([name, [, , launches]]) =>
    ({ name, by: Math.abs(Math.log(median(launches.filter((v, i) => i % 2)) / median(launches.filter((v, i) => i % 2 === 0)))), margin: margins.get(name) }));
  if (!apart.length) return "Too few launches to compare the night with itself; four or more tell.";
  const beyond = apart.filter(r => r.by > Math.log(1 + r.margin)).sort((a, b) => b.by - a.by), off = r => (100 * Math.expm1(r)).toFixed(1) + " %";
  return `Noise floor: odd and even launches of this night lie ${off(median(apart.map(r => r.by)))} apart in the middle row, ` +
    (beyond.length ? `and ▲ beyond the margin in ${beyond.length} of ${apart.length} rows: ${beyond.slice(0, 3).map(r => `${r.name} (${off(r.by)})`).join(", ")}${beyond.length > 3 ? " and others" : ""}.` : `and ● inside the margin in all ${apart.length} rows.`);
}

async function nightDetails(of, night) {
  const full = context(of, of.nights.indexOf(night)), rows = await need("n/" + night.key), list = pairs => h("dl", {}, pairs.flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, String(v))]));
  return h("section", { "aria-label": "This night" }, h("p", {}, `Commit ${night.sha || "unknown"} on ${of.name}: ${night.state}${night.message ? ` (${night.message})` : ""}. `, link("Compare with the night before", { view: "compare", m: of.name, b: night.key })),
    h("p", {}, noiseFloor(of, rows)), night.notes ? h("ul", {}, night.notes.map(t => h("li", {}, t))) : "", h("h2", {}, "Machine and build"), list(Object.entries(full).sort()),
    h("h2", {}, "Rows"), longTable("Every row of this night", ["Benchmark", "Median", "Launches", "Status"], Object.entries(rows).map(([name, [status, message, launches]]) => () =>
      [[name, "long"], [launches.length ? seconds(median(launches)) : "–", "num"], [launches.length, "num"], [[status, message].filter(Boolean).join(": "), "long"]]), 25));
}

// ---- routing ----------------------------------------------------------------------------------

const DRAW = { overview, series: seriesView, compare: compareView, heat: heatView, ladder: ladderView, roofline: rooflineView, nights: nightsView };

async function draw() {
  const before = state.view;
  state = { ...DEFAULTS, ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))) };
  if (!DRAW[state.view]) state.view = "overview";
  if (state.m !== "" && DATA.machines.length) state.m = machine().name;
  document.documentElement.dataset.theme = state.theme;
  document.getElementById("theme").value = state.theme;
  document.getElementById("views").replaceChildren(...Object.entries(VIEWS).map(([view, text]) =>
    link(text, { view, m: view === "overview" ? "" : state.m }, { "aria-current": view === state.view ? "page" : undefined })));
  const main = document.getElementById("main"), focused = [...main.querySelectorAll("svg")].indexOf(document.activeElement);
  let content;
  try {
    content = DATA.machines.length ? await DRAW[state.view]() : [h("h1", {}, "No nights yet"), h("p", {}, "Run tools/nightly.py, then build this page again."), notes()];
  } catch (error) {
    content = [h("h1", {}, "This view cannot be shown"), h("p", {}, error.message)];
  }
  main.replaceChildren(...content.filter(c => c !== "" && c !== null && c !== undefined));
  document.title = main.querySelector("h1").textContent + " – benchmark history";
  if (main.querySelectorAll("svg")[focused]) main.querySelectorAll("svg")[focused].focus();
  else if (before && before !== state.view) main.focus();
  main.dataset.ready = location.hash || "#";
}

document.getElementById("skip").addEventListener("click", event => { event.preventDefault(); document.getElementById("main").focus(); });
document.getElementById("theme").addEventListener("change", event => go({ theme: event.target.value }));
window.addEventListener("hashchange", draw);
draw();
