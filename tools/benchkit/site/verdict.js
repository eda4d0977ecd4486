// Two nights → a word per benchmark: the rules of tools/benchkit/verdicts.py for two independent sides,
// so that any pair of nights can be compared without a server. A test holds both to the same answers.
"use strict";

const median = values => {
  const v = [...values].sort((a, b) => a - b), half = v.length >> 1;
  return v.length % 2 ? v[half] : (v[half - 1] + v[half]) / 2;
};

// Doubled midranks of the pooled values, first side first.
function ranks(values) {
  const order = values.map((v, i) => i).sort((a, b) => values[a] - values[b]), rank = [], ties = [];
  for (let i = 0; i < order.length;) {
    let j = i;
    while (j < order.length && values[order[j]] === values[order[i]]) j++;
    for (let k = i; k < j; k++) rank[order[k]] = i + j + 1;
    if (j - i > 1) ties.push(j - i);
    i = j;
  }
  return { rank, ties };
}

// Exact two-sided p of the rank sum: how many choices of `take` ranks lie as far from the middle.
function exactP(rank, take) {
  const sum = rank.reduce((a, b) => a + b, 0);
  const counts = Array.from({ length: take + 1 }, () => new Float64Array(sum + 1));
  counts[0][0] = 1;
  for (const r of rank)
    for (let k = take; k > 0; k--) for (let s = sum; s >= r; s--) counts[k][s] += counts[k - 1][s - r];
  const observed = rank.slice(0, take).reduce((a, b) => a + b, 0), centre = sum * take / rank.length;
  let far = 0, all = 0;
  counts[take].forEach((count, s) => { all += count; if (Math.abs(s - centre) >= Math.abs(observed - centre) - 1e-6) far += count; });
  return Math.min(1, far / all);
}

// Upper tail of the normal distribution (continued fraction and series, to 1e-12).
function upperTail(z) {
  if (z < 0) return 1 - upperTail(-z);
  const density = Math.exp(-z * z / 2) / Math.sqrt(2 * Math.PI);
  if (z > 3) { let f = 0; for (let k = 200; k > 0; k--) f = k / (z + f); return density / (z + f); }
  let term = z, total = z;
  for (let k = 3; k < 200; k += 2) { term *= z * z / k; total += term; }
  return 0.5 - density * total;
}

function rankTest(base, now, tests) {
  const { rank, ties } = ranks([...base, ...now]), n = base.length, m = now.length, all = n + m;
  if (!ties.length || Math.min(n, m) < tests.tied) return exactP(rank, n);
  const u = rank.slice(0, n).reduce((a, b) => a + b, 0) / 2 - n * (n + 1) / 2;
  const tied = ties.reduce((a, t) => a + t ** 3 - t, 0) / (all * (all - 1));
  const sigma = Math.sqrt(n * m / 12 * (all + 1 - tied));
  return sigma > 0 ? Math.min(1, 2 * upperTail((Math.max(u, n * m - u) - n * m / 2 - 0.5) / sigma)) : 1;
}

function ratioOf(base, now, tests) {
  const steps = base.flatMap(a => now.map(b => Math.log(b) - Math.log(a))).sort((a, b) => a - b);
  const cut = tests.cuts[`${base.length},${now.length}`], enough = Math.min(base.length, now.length) >= 2;
  return { ratio: median(now) / median(base), estimate: Math.exp(median(steps)),
    p: enough ? rankTest(base, now, tests) : null,
    low: enough && cut != null ? Math.exp(steps[cut]) : null,
    high: enough && cut != null ? Math.exp(steps[steps.length - 1 - cut]) : null };
}

// base, now: [status, message, values] or undefined → what follows without any number.
function outcome(base, now) {
  const absent = s => !s ? "absent" : s[0] === "skipped" ? `skipped (${s[1]})` : s[0];
  const failed = s => s && (s[0] === "error" || s[0] === "invalid"), ok = s => s && s[0] === "ok";
  if (failed(now)) return [failed(base) ? "still failing" : "broke", now[1]];
  if (failed(base)) return ok(now) ? ["fixed", base[1]] : ["not comparable", `failed in A, ${absent(now)} in B`];
  if (!ok(base) && !ok(now)) return ["not comparable", `${absent(base)} in A, ${absent(now)} in B`];
  if (!ok(now)) return ["missing", `measured in A, ${absent(now)} in B`];
  return ok(base) ? ["unclear", ""] : ["new", `${absent(base)} in A`];
}

// rows: [{name, base, now, margin, refused}] → the same with word, reason, p, adjusted and ratio.
function judge(rows, tests) {
  for (const row of rows) {
    [row.word, row.reason] = outcome(row.base, row.now);
    if (row.word === "unclear" && row.refused) [row.word, row.reason] = ["not comparable", row.refused];
    if (row.word === "unclear") Object.assign(row, ratioOf(row.base[2], row.now[2], tests));
  }
  const tested = rows.filter(r => r.p != null).sort((a, b) => a.p - b.p);
  let least = 1;
  for (let i = tested.length - 1; i >= 0; i--) tested[i].adjusted = least = Math.min(least, tested[i].p * tested.length / (i + 1));
  for (const row of rows.filter(r => r.word === "unclear")) decide(row, tests.alpha);
  return rows;
}

function decide(row, alpha) {
  const limit = 1 + row.margin, certain = row.adjusted != null && row.adjusted <= alpha;
  if (certain && Math.abs(Math.log(row.estimate)) > Math.log(limit)) {
    row.word = row.estimate > 1 ? "slower" : "faster";
    row.reason = "significant and beyond the margin";
  } else if (row.low !== null && row.low > 1 / limit && row.high < limit) {
    row.word = "same";
    row.reason = "the interval lies inside the margin";
  } else {
    row.reason = row.p === null ? "too few launches for a test" : certain ? "real, about as large as the margin" : "neither inside the margin nor significant";
  }
}
