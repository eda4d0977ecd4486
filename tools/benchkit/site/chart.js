// One chart: nights along x, a value along y, with median, quartile band, raw launches and markers.
// Pointer: drag to zoom, double-click for all. Keyboard: arrows move the cursor, Home and End go to the
// ends, + and - zoom, Page Up and Page Down show other nights, 0 all.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 1000, HEIGHT = 360, LEFT = 80, RIGHT = 20, TOP = 16, BOTTOM = 40;

function svg(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// The round numbers of an axis between low and high.
function ticks(low, high, count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= rough) || rough;
  const found = [];
  for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-9; t += step) found.push(t);
  return found;
}

// data: {v, lo, hi, raw, marks: [{at, kind, text}], apart}; show(night) gives [label, sentence];
// view: {from, to, log, format(value), zoom(from, to), cursors}: charts with one `cursors` share it.
function lineChart(data, view, label, show) {
  const { from, to, format } = view, span = Math.max(1, to - from);
  const x = at => LEFT + (WIDTH - LEFT - RIGHT) * (at - from + 0.5) / (span + 1);
  const inside = [];
  for (let i = from; i <= to; i++) if (data.v[i] !== null) inside.push(i);
  const all = inside.flatMap(i => data.raw[i] || [data.v[i]]);
  const scale = view.log ? Math.log10 : (v => v);
  let low = Math.min(...all.map(scale)), high = Math.max(...all.map(scale));
  if (!all.length) { low = 0; high = 1; }
  const room = (high - low || Math.abs(high) * 0.1 || 1) * 0.08;
  low -= room; high += room;
  const y = v => TOP + (HEIGHT - TOP - BOTTOM) * (high - scale(v)) / (high - low);
  const fixed = n => n.toFixed(1);
  const root = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "application", tabindex: "0",
    "aria-label": label, "aria-roledescription": "chart" });

  for (const t of ticks(low, high, 5)) {
    const value = view.log ? 10 ** t : t, at = fixed(y(value));
    root.append(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: at, y2: at }),
      svg("text", { x: LEFT - 6, y: +at + 4, "text-anchor": "end" }, format(value)));
  }
  const every = Math.ceil((span + 1) / 8);
  for (let i = from; i <= to; i += every) {
    root.append(svg("text", { x: fixed(x(i)), y: HEIGHT - 14, "text-anchor": "middle" }, show(i)[0]));
  }
  drawMarks(root, data, x, from, to);
  drawPoints(root, data, inside, x, y, fixed);
  if (!all.length) root.append(svg("text", { x: WIDTH / 2, y: HEIGHT / 2, "text-anchor": "middle" }, "no values in these nights"));
  interact(root, { ...view, x, last: data.v.length - 1 }, show);
  return root;
}

function drawMarks(root, data, x, from, to) {
  for (const mark of data.marks) {
    if (mark.at < from || mark.at > to) continue;
    const at = x(mark.at - 0.5), group = svg("g");
    group.append(svg("title", {}, mark.text),
      svg("line", { class: mark.kind, x1: at, x2: at, y1: TOP, y2: HEIGHT - BOTTOM }),
      svg("text", { x: at, y: TOP - 4, "text-anchor": "middle" }, mark.sign));
    root.append(group);
  }
}

function drawPoints(root, data, inside, x, y, fixed) {
  // A night without a value is a gap: lines and bands join neighbours only.
  const runs = [];
  for (const i of inside) {
    const apart = i >= data.apart, run = runs[runs.length - 1];
    if (run && run[run.length - 1] === i - 1 && !apart) run.push(i); else runs.push([i]);
  }
  const path = run => run.map((i, k) => (k ? "L" : "M") + fixed(x(i)) + " " + fixed(y(data.v[i]))).join("");
  const edge = (run, values) => run.map(i => fixed(x(i)) + " " + fixed(y(values[i])));
  for (const run of runs) {
    const band = [...edge(run, data.hi), ...edge([...run].reverse(), data.lo)];
    root.append(svg("path", { class: "band", d: "M" + band.join("L") + "Z" }));
  }
  const dots = inside.flatMap(i => (data.raw[i] || []).map(v => `M${fixed(x(i))} ${fixed(y(v))}h0`));
  root.append(svg("path", { class: "raw", d: dots.join("") }));
  for (const run of runs) root.append(svg("path", { class: "line", d: path(run) }));
  root.append(svg("path", { class: "mid", d: inside.filter(i => i < data.apart).map(i => `M${fixed(x(i))} ${fixed(y(data.v[i]))}h0`).join("") }));
  for (const i of inside.filter(i => i >= data.apart)) {
    const [px, py] = [x(i), y(data.v[i])];
    root.append(svg("path", { class: "apart", d: `M${px - 5} ${py}l5 -5l5 5l-5 5Z` }));
  }
}

function interact(root, place, show) {
  const { from, to, x, last, zoom, cursors } = place;
  const cursor = svg("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, x1: -9, x2: -9 });
  const text = svg("text", { x: LEFT + 6, y: HEIGHT - BOTTOM - 6 });
  const pick = svg("rect", { class: "pick", y: TOP, height: HEIGHT - TOP - BOTTOM, width: 0 });
  root.append(pick, cursor, text);
  const clamp = at => Math.max(from, Math.min(to, at));
  let at = to, start = null;
  cursors.push(to => {
    at = clamp(to);
    cursor.setAttribute("x1", x(at)); cursor.setAttribute("x2", x(at));
    text.textContent = show(at)[1];
  });
  const move = (to, aloud) => {
    for (const follow of cursors) follow(to);
    if (aloud) document.getElementById("said").textContent = show(at)[1];
  };
  const under = event => {
    const box = root.getBoundingClientRect(), px = (event.clientX - box.left) / box.width * WIDTH;
    return clamp(Math.round(from + (px - LEFT) / (WIDTH - LEFT - RIGHT) * (Math.max(1, to - from) + 1) - 0.5));
  };
  root.addEventListener("pointerdown", event => { start = under(event); });
  root.addEventListener("pointermove", event => {
    move(under(event), false);
    if (start === null) return;
    const [a, b] = [x(Math.min(start, at)), x(Math.max(start, at))];
    pick.setAttribute("x", a); pick.setAttribute("width", b - a);
  });
  root.addEventListener("pointerup", event => {
    const end = under(event), begin = start;
    start = null;
    pick.setAttribute("width", 0);
    if (begin !== null && Math.abs(end - begin) >= 2) zoom(Math.min(begin, end), Math.max(begin, end));
  });
  root.addEventListener("dblclick", () => zoom(0, last));
  root.addEventListener("keydown", event => {
    const half = Math.max(1, Math.round((to - from) / 4)), span = to - from;
    const keys = {
      ArrowLeft: () => move(at - 1, true), ArrowRight: () => move(at + 1, true),
      Home: () => move(from, true), End: () => move(to, true),
      PageUp: () => zoom(Math.max(0, from - 2 * half), Math.max(0, from - 2 * half) + span),
      PageDown: () => zoom(Math.min(last, to + 2 * half) - span, Math.min(last, to + 2 * half)),
      "+": () => zoom(Math.max(0, at - half), Math.min(last, at + half)),
      "-": () => zoom(Math.max(0, from - half), Math.min(last, to + half)),
      "0": () => zoom(0, last),
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
}

// Horizontal bars: rows of {name, value, kind, text}; `peaks` are lines across all of them.
function barChart(rows, peaks, label) {
  const height = rows.length * 24 + 30, left = 330;
  const most = Math.max(...rows.map(r => r.value), ...peaks.map(p => p.value)) * 1.02;
  const x = value => left + (WIDTH - left - 110) * value / most;
  const root = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label });
  rows.forEach((row, i) => {
    const y = 20 + i * 24;
    root.append(svg("text", { x: left - 8, y: y + 14, "text-anchor": "end" }, row.name),
      svg("rect", { class: "bar-" + row.kind, x: left, y: y + 2, height: 16, width: Math.max(1, x(row.value) - left) }),
      svg("text", { x: x(row.value) + 6, y: y + 14 }, row.text));
  });
  for (const peak of peaks) {
    const at = x(peak.value);
    root.append(svg("line", { class: "peak", x1: at, x2: at, y1: 16, y2: height - 6 }), svg("text", { x: at, y: 12, "text-anchor": "end" }, peak.name));
  }
  root.append(...root.querySelectorAll("text")); // above the lines
  return root;
}
