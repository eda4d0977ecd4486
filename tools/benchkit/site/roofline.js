// The roofline: measured roofs, and every product by its kernel alone as a point under them. Numbers
// and judgements are those of tools/benchkit/roofline.py; here they are only drawn.
// Pointer: hover, click opens the series. Keyboard: arrows go from point to point, Enter opens it.
"use strict";

const PLOT = { left: 80, right: 980, top: 16, bottom: 426, height: 470 };
const BOUNDS = { compute: "multiply-adds", memory: "memory", "matrix units": "matrix units: none of their roofs is measured", "": "no roof of this side is measured" };
const SHAPES = { // around 0, 0
  cpu: "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z", gpu: "M-4.5 -4.5h9v9h-9Z", matrix: "M0 -6l6 10h-12Z", peer: "M0 -6.5l6.5 6.5l-6.5 6.5l-6.5 -6.5Z",
};
const shapeOf = s => s.point.bound === "matrix units" ? "matrix" : /^Peer/.test(s.variant) ? "peer" : s.side === "GPU" ? "gpu" : "cpu";
const levelName = level => level === "Copy" ? "memory copy" : level.replace("Copy", "") + " copy";
const gflops = v => significant(v / 1e9) + " GFLOP/s";

// The sentence of one point: what, how fast, how far below which roof.
function pointWords(s) {
  const { percent: share, bound, remark } = s.point;
  const below = share === null ? BOUNDS[bound] : `${significant(share)} % of the roof, bounded by ${BOUNDS[bound]}`;
  return `${s.op} ${s.side}/${s.variant}, n = ${s.n}: ${gflops(s.point.flops)}, ${below}${remark ? ` (${remark})` : ""}${s.state === "stale" ? "; not in the last night" : ""}`;
}

function rooflineChart(list, roofs, label, show) {
  const axes = rooflineAxes(list, roofs), root = svg("svg", { viewBox: `0 0 1000 ${PLOT.height}`, role: "application", tabindex: "0", "aria-label": label, "aria-roledescription": "chart" });
  rooflineGrid(root, axes);
  rooflineRoofs(root, roofs, axes);
  rooflineSizes(root, list, axes);
  const places = list.map(s => ({ s, x: axes.x(s.point.ai), y: axes.y(s.point.flops) }));
  for (const { s, x, y } of places) {
    if (s.base && change(s.value / s.base, s.margin)[1] !== "faint") // from where the baseline was
      root.append(svg("line", { class: "was", x1: x, x2: x, y1: axes.y(s.point.flops * s.value / s.base), y2: y }));
    root.append(svg("path", { class: `pt ${shapeOf(s)}${s.state === "stale" ? " old" : ""}`, d: SHAPES[shapeOf(s)], transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` }));
  }
  root.append(...root.querySelectorAll(".roofname")); // names lie above the points
  visitPoints(root, places, show);
  return root;
}

// Logarithmic scales over all points and roofs.
function rooflineAxes(list, roofs) {
  const rates = list.map(s => s.point.flops), ais = list.map(s => s.point.ai), knees = Object.values(roofs.levels).map(v => roofs.flops ? roofs.flops / v : 1);
  const range = (values, room) => [Math.log10(Math.min(...values)) - room, Math.log10(Math.max(...values)) + room];
  const [left, right] = range([...ais, ...knees], 0.3), [least, high] = range(roofs.flops ? [...rates, roofs.flops] : rates, 0.25), low = least - 0.08 * (high - least); // room for the sizes
  return { left, right, low, high, x: v => PLOT.left + (PLOT.right - PLOT.left) * (Math.log10(v) - left) / (right - left),
    y: v => PLOT.bottom - (PLOT.bottom - PLOT.top) * (Math.log10(v) - low) / (high - low) };
}

function rooflineGrid(root, { left, right, low, high, x, y }) {
  // Decades, and the thirds between them where there are few.
  const steps = (from, to) => {
    const found = [], factors = to - from < 3 ? [1, 2, 5] : [1];
    for (let k = Math.floor(from); k <= to; k++) for (const f of factors) { const t = k + Math.log10(f); if (t >= from && t <= to) found.push(f * 10 ** k); }
    return found;
  };
  for (const t of steps(left, right)) root.append(svg("line", { class: "grid", x1: x(t), x2: x(t), y1: PLOT.top, y2: PLOT.bottom }), svg("text", { x: x(t), y: PLOT.bottom + 16, "text-anchor": "middle" }, significant(t)));
  for (const t of steps(low, high)) root.append(svg("line", { class: "grid", x1: PLOT.left, x2: PLOT.right, y1: y(t), y2: y(t) }), svg("text", { x: PLOT.left - 6, y: y(t) + 4, "text-anchor": "end" }, significant(t / 1e9)));
  root.append(svg("text", { x: (PLOT.left + PLOT.right) / 2, y: PLOT.height - 8, "text-anchor": "middle" }, "arithmetic intensity, FLOP/byte of compulsory traffic"),
    svg("text", { transform: `translate(14 ${(PLOT.top + PLOT.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, "GFLOP/s"));
}

function rooflineRoofs(root, roofs, axes) {
  const { left, right, low, high, x, y } = axes, slopes = Object.entries(roofs.levels).map(([k, v]) => [levelName(k), v, k === "Copy" ? "roof" : "roof level"]);
  if (roofs.local) slopes.push(["local memory", roofs.local, "roof level"]);
  const angle = Math.atan2(y(1) - y(10), x(10) - x(1)) * 180 / Math.PI, taken = [];
  for (const [name, bandwidth, kind] of slopes.sort((a, b) => b[1] - a[1])) {
    const from = Math.max(10 ** left, 10 ** low / bandwidth), to = Math.min(10 ** right, (roofs.flops || 10 ** high) / bandwidth);
    if (from >= to) continue;
    root.append(svg("line", { class: kind, x1: x(from), y1: y(from * bandwidth), x2: x(to), y2: y(to * bandwidth) }));
    // Of two roofs that lie close together the lower one is named below its line.
    const below = taken.some(t => Math.abs(Math.log10(t / bandwidth)) < 0.2), at = from * 10 ** (8 / (PLOT.right - PLOT.left) * (right - left));
    taken.push(bandwidth);
    root.append(svg("text", { class: "roofname", transform: `translate(${x(at)} ${y(at * bandwidth)}) rotate(${-angle})`, y: below ? 13 : -5 }, `${name} ${significant(bandwidth / 1e9)} GB/s`));
  }
  if (roofs.flops) {
    const knee = Math.max(10 ** left, roofs.levels.Copy ? Math.min(...Object.values(roofs.levels).map(v => roofs.flops / v)) : 0);
    root.append(svg("line", { class: "roof", x1: x(knee), x2: PLOT.right, y1: y(roofs.flops), y2: y(roofs.flops) }),
      svg("text", { class: "roofname", x: PLOT.right - 4, y: y(roofs.flops) - 6, "text-anchor": "end" }, `multiply-adds ${gflops(roofs.flops)}`));
  }
}

// A column of points is a size; all sizes of the matrix-vector product share one.
function rooflineSizes(root, list, { x }) {
  let last = -Infinity;
  for (const s of [...list].sort((a, b) => a.point.ai - b.point.ai)) {
    const at = x(s.point.ai);
    if (at - last > 48) root.append(svg("text", { class: "roofname", x: (last = at), y: PLOT.bottom - 5, "text-anchor": "middle" }, s.op === "SGEMV" ? "SGEMV" : `n ${s.n}`));
  }
}

function visitPoints(root, places, show) {
  const ring = svg("circle", { class: "ring", r: 10, cx: -99, cy: -99 }), order = [...places].sort((a, b) => a.x - b.x || b.y - a.y);
  root.append(ring);
  let now = null;
  const visit = (place, aloud) => {
    if (!place) return;
    now = place;
    ring.setAttribute("cx", place.x); ring.setAttribute("cy", place.y);
    show(place.s, aloud);
  };
  const nearest = (x, y, among) => among.reduce((best, p) => !best || Math.hypot(p.x - x, p.y - y) < Math.hypot(best.x - x, best.y - y) ? p : best, null);
  const under = event => {
    const box = root.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * 1000, y = (event.clientY - box.top) / box.height * PLOT.height, found = nearest(x, y, places);
    return found && Math.hypot(found.x - x, found.y - y) < 30 ? found : null;
  };
  const open = place => place && go({ ...DEFAULTS, theme: state.theme, m: machine().name, view: "series", s: place.s.name });
  root.addEventListener("pointermove", event => visit(under(event), false));
  root.addEventListener("click", event => open(under(event)));
  root.addEventListener("focus", () => visit(now || order[0], true));
  root.addEventListener("keydown", event => {
    const beside = sign => nearest(now.x, now.y, order.filter(p => sign * (p.x - now.x) > 0.5)), column = order.filter(p => Math.abs(p.x - now.x) <= 0.5), row = column.indexOf(now);
    const keys = { ArrowLeft: () => beside(-1), ArrowRight: () => beside(1), ArrowUp: () => column[row + 1], ArrowDown: () => column[row - 1], Home: () => order[0], End: () => order[order.length - 1], Enter: () => now };
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (event.key === "Enter") open(now); else visit(keys[event.key](), true);
  });
}

// ---- the view ---------------------------------------------------------------------------------

function rooflineView() {
  const of = machine(), all = of.series.filter(s => s.point), words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
  const sizes = [...new Set(all.map(s => s.n))].sort((a, b) => a - b);
  const shown = all.filter(s => (state.side === "" || s.side === state.side) && (state.n === "" || s.n === +state.n) && (state.show === "all" || s.state !== "stale") && words.every(w => s.name.toLowerCase().includes(w)));
  const sides = ["CPU", "GPU"].filter(side => shown.some(s => s.side === side));
  const form = h("form", { onsubmit: event => { event.preventDefault(); go({ q: event.target.q.value }); } }, select("Machine", "m", machineOptions(false)), select("Side", "side", [["", "all"], ["CPU", "CPU"], ["GPU", "GPU (OpenCL)"]]),
    select("Size n", "n", [["", "all"], ...sizes.map(n => [n, n])]), h("label", {}, "Search variants ", h("input", { name: "q", type: "search", value: state.q, onchange: event => go({ q: event.target.value }) })),
    select("Show", "show", [["all", "last value of every row"], ["last", "only the last night"]]), copyButton());
  return [h("h1", {}, "Roofline: how far from the limit"), form,
    h("p", {}, "Lines: roofs that this machine has measured (Peak rows). Points: products on resident data, at the intensity of their size. ● CPU, ■ OpenCL, ◆ a vendor's library, ▲ matrix units, which these roofs do not bound; pale: not in the last night. A stroke leads from the baseline to a point that moved."),
    sides.length ? "" : h("p", {}, "No product matches."), ...sides.flatMap(side => rooflinePanel(of, side, shown.filter(s => s.side === side)))];
}

function rooflinePanel(of, side, list) {
  const roofs = of.roofs[side] || { flops: null, levels: {}, local: null }, facts = context(of, of.nights.length - 1), device = side === "GPU" ? facts.cl_device : facts.cpu_model;
  const bounded = list.filter(s => s.point.percent !== null && !s.point.remark), best = bounded.reduce((a, s) => !a || s.point.percent > a.point.percent ? s : a, null), fastest = list.reduce((a, s) => !a || s.point.flops > a.point.flops ? s : a, null);
  const said = h("p", { class: "point" }, `Fastest: ${pointWords(fastest)}.`);
  const show = (s, aloud) => { said.textContent = pointWords(s); if (aloud) say(pointWords(s)); };
  const heads = ["Variant", "n", "FLOP/byte", "Rate", "% of roof", "Bounded by", "Against baseline"];
  return [h("h2", {}, `${side === "GPU" ? "GPU (OpenCL)" : "CPU"}${device ? ": " + device : ""}`),
    h("p", {}, best ? `Nearest to its roof: ${pointWords(best)}.` : roofs.flops ? "No point is held to a roof." : `No roof of this side is measured: let the night measure Peak/${side} as well.`),
    rooflineChart(list, roofs, `Roofline of the ${side} on ${of.name}, ${list.length} points. Arrow keys go from point to point, Enter opens the series; the table below has the same numbers.`, show), said,
    h("details", {}, h("summary", {}, `Table of the ${list.length} points`), longTable(`Points of the ${side}`, heads, [...list].sort((a, b) => b.point.flops - a.point.flops).map(s => () => [
      [link(`${s.op} ${s.side}/${s.variant}`, { view: "series", m: of.name, s: s.name }), "long"], [s.n, "num"], [significant(s.point.ai), "num"], [gflops(s.point.flops), "num"],
      [s.point.percent === null ? "–" : significant(s.point.percent), "num"], [[BOUNDS[s.point.bound], s.point.remark, s.state === "stale" ? "not in the last night" : ""].filter(Boolean).join("; "), "long"], change(s.base && s.value / s.base, s.margin)])))];
}
