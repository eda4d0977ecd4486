"""Two sides of launches → one word per benchmark, with its reason and what would settle it.

A word is only given when it is earned: "slower" needs a corrected p-value and a change beyond the
margin, "same" an interval inside the margin; everything else is "unclear". Pure functions.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from benchkit import machines, margins, samples, statistics
from benchkit.errors import NOT_COMPARABLE, OK, REGRESSION
from benchkit.reading import Launch
from benchkit.samples import TIME, Sample
from benchkit.statistics import Ratio

# Worst first: the order of every report.
WORDS = (
    "broke",
    "missing",
    "slower",
    "still failing",
    "not comparable",
    "unclear",
    "new",
    "fixed",
    "faster",
    "same",
)
MEASURED = ("slower", "faster", "same", "unclear")
FAIL_ON = ("slower", "broke", "missing")
# Which way a counter is better; a counter that fits neither gets no verdict.
HIGHER = re.compile(r"FLOP|per_second|/s$|[GMKT]i?Bps$|pct_peak|throughput", re.IGNORECASE)
LOWER = re.compile(r"time|seconds|latency|err|bytes_used|allocs", re.IGNORECASE)
SAME_NUMBERS = 0.003  # medians this close make a rename likely
FAR = 100  # more launches than this is no advice


@dataclass(frozen=True, slots=True)
class Settings:
    """How strict: `looks` is how often the data may be looked at before stopping (α is shared)."""

    alpha: float = 0.05
    confidence: float = 0.95
    rules: tuple[margins.Rule, ...] = tuple(margins.defaults())
    metric: str = TIME
    looks: int = 1
    test: bool = True
    allow_different_machine: bool = False

    @property
    def level(self) -> float:
        return self.alpha / self.looks


@dataclass(slots=True)
class Verdict:
    """One benchmark (and one metric of it): the word, why, and the numbers behind it."""

    key: str
    word: str
    reason: str
    base: Sample
    new: Sample
    metric: str = TIME
    next_step: str = ""
    margin: float = 0.0
    ratio: Ratio | None = None
    p_adjusted: float | None = None
    notes: list[str] = field(default_factory=list)
    others: "list[Verdict]" = field(default_factory=list)  # the counters of the same benchmark

    @property
    def run_name(self) -> str:
        """The name a program knows the benchmark by."""
        return (
            self.key.removesuffix(f" #{self.new.occurrence + 1}")
            if self.new.occurrence
            else self.key
        )


@dataclass(slots=True)
class Report:
    """All verdicts of a comparison, worst first, and what holds for all of them."""

    base_label: str
    new_label: str
    verdicts: list[Verdict]
    differences: list[machines.Difference]
    warnings: list[str]
    settings: Settings
    family: int
    geomean: Ratio | None = None
    geomean_rows: int = 0

    def count(self, word: str) -> int:
        return sum(verdict.word == word for verdict in self.verdicts)

    @property
    def comparable(self) -> bool:
        """False when nothing could be compared, or what differs was not allowed by a flag."""
        common = any(v.word not in ("missing", "new") for v in self.verdicts)
        refused = any(d.level == machines.REFUSE for d in self.differences)
        return common and (self.settings.allow_different_machine or not refused)

    def exit_code(self, fail_on: Sequence[str] = FAIL_ON) -> int:
        if not self.comparable:
            return NOT_COMPARABLE
        context = "context" in fail_on and bool(self.differences)
        return REGRESSION if context or any(self.count(word) for word in fail_on) else OK


def judge(
    base: Sequence[Launch], new: Sequence[Launch], settings: Settings, labels: tuple[str, str]
) -> Report:
    """The whole comparison. Launches with an `index` on both sides are taken as interleaved."""
    differences = machines.guard(base, new)
    base, new = _in_order(base), _in_order(new)
    verdicts, family = _judge_metric(base, new, settings, differences)
    for metric in _directed(base, new):
        if metric != settings.metric:
            _attach(
                verdicts, _judge_metric(base, new, replace(settings, metric=metric), differences)[0]
            )
    _note_renames(verdicts)
    verdicts.sort(key=_severity)
    report = Report(
        *labels,
        verdicts,
        differences,
        list(dict.fromkeys(w for launch in (*base, *new) for w in launch.warnings)),
        settings,
        family,
    )
    report.warnings += _doubts(base, new, report)
    report.geomean, report.geomean_rows = _geomean(verdicts, settings, _interleaved(base, new))
    return report


# ---- one metric -------------------------------------------------------------------------------


def _judge_metric(
    base: Sequence[Launch],
    new: Sequence[Launch],
    settings: Settings,
    differences: Sequence[machines.Difference],
) -> tuple[list[Verdict], int]:
    old, now = samples.collect(base, settings.metric), samples.collect(new, settings.metric)
    verdicts = [_by_status(key, old.get(key), now.get(key), settings) for key in {**old, **now}]
    for verdict in verdicts:
        _guard(verdict, (base, new), settings, differences)
    measured = [verdict for verdict in verdicts if verdict.word == "unclear"]
    family = sum(_testable(verdict) for verdict in measured)
    design = Design.of(measured, _interleaved(base, new), settings.level / max(1, family))
    for verdict in measured:
        verdict.ratio = ratio(verdict.base, verdict.new, settings, design)
    _adjust(measured)
    for verdict in measured:
        _decide(verdict, settings, family)
        verdict.notes += _notes(verdict)
    return verdicts, family


def _by_status(key: str, base: Sample | None, new: Sample | None, settings: Settings) -> Verdict:
    """The word that follows from what was measured at all; "unclear" where a ratio is possible."""
    known = base or new
    assert known is not None
    base, new = base or Sample(key, known.fields), new or Sample(key, known.fields)
    word, reason = _outcome(base, new, settings.metric)
    margin = margins.margin(settings.rules, key, settings.metric)
    return Verdict(key, word, reason, base, new, settings.metric, margin=margin)


def _outcome(base: Sample, new: Sample, metric: str) -> tuple[str, str]:
    failed = ("error", "invalid")
    if new.status in failed:
        word = "still failing" if base.status in failed else "broke"
        return word, f"fails in NEW: {new.message}"
    if base.status in failed:
        if new.status == "ok":
            return "fixed", f"failed in BASE: {base.message}"
        return "not comparable", f"failed in BASE, {_why_absent(new)} in NEW"
    if "ok" not in (base.status, new.status):
        return "not comparable", f"{_why_absent(base)} in BASE, {_why_absent(new)} in NEW"
    if new.status != "ok":
        return "missing", f"measured in BASE, {_why_absent(new)} in NEW"
    if base.status != "ok":
        return "new", f"{_why_absent(base)} in BASE"
    if not base.values or not new.values:
        side = "BASE" if not base.values else "NEW"
        return "not comparable", f"no usable value of '{metric}' in {side}"
    return "unclear", ""


def _why_absent(sample: Sample) -> str:
    return f"skipped ({sample.message})" if sample.status == "skipped" else sample.status


def _guard(
    verdict: Verdict,
    sides: tuple[Sequence[Launch], Sequence[Launch]],
    settings: Settings,
    differences: Sequence[machines.Difference],
) -> None:
    if verdict.word != "unclear":
        return
    why = machines.refused(differences, verdict.base.fields.side)
    if why and not settings.allow_different_machine:
        verdict.word, verdict.reason = "not comparable", why
        verdict.next_step = (
            "measure both sides on one machine, or allow it: --allow-different-machine"
        )
    elif max(verdict.base.threads, verdict.new.threads) > 1:
        versions = [machines.library_version(side) for side in sides]
        if len({version is not None and version >= (1, 9) for version in versions}) > 1:
            verdict.word = "not comparable"
            verdict.reason = (
                "real_time of threaded rows means another thing from Google Benchmark 1.9 on"
            )


# ---- numbers ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Design:
    """What all tests of a family share: whether the sides took turns, how blocks are cut."""

    interleaved: bool = False
    threshold: float = 1.0  # the p-value that one change alone must reach
    drifting: bool = False

    @classmethod
    def of(cls, measured: Sequence[Verdict], interleaved: bool, threshold: float) -> "Design":
        rows = [
            v for v in measured if interleaved and v.base.unit == v.new.unit == samples.BY_LAUNCH
        ]
        pairs = [_pairs(v.base, v.new) for v in rows]
        logs = [[math.log(old * now) / 2 for old, now in row] for row in pairs if len(row) > 2]
        return cls(interleaved, threshold, statistics.drifts(logs))


def _pairs(base: Sample, new: Sample) -> list[tuple[float, float]]:
    """Values of both sides from the same stretch of time, in order."""
    old = dict(zip(base.places, base.values, strict=True))
    now = dict(zip(new.places, new.values, strict=True))
    return [(old[place], now[place]) for place in sorted(old.keys() & now.keys())]


def ratio(base: Sample, new: Sample, settings: Settings, design: Design) -> Ratio:
    """new/base with p-value and interval, paired where the launches took turns."""
    if samples.BY_AGGREGATE in (base.unit, new.unit):
        point = statistics.compare(base.values[:1], new.values[:1])
        return replace(point, test="aggregates only: no significance test")
    by_launch = base.unit == new.unit == samples.BY_LAUNCH
    pairs = _pairs(base, new) if design.interleaved and by_launch else []
    if len(pairs) < 2:
        result = statistics.compare(base.values, new.values, settings.confidence)
    else:
        blocks = statistics.choose_blocks(len(pairs), design.threshold, design.drifting)
        old, now = zip(*pairs, strict=True)
        result = statistics.compare_interleaved(old, now, blocks, settings.confidence)
    return result if settings.test else replace(result, p=None, test="no test (--no-utest)")


def _adjust(measured: Sequence[Verdict]) -> None:
    tested = [v for v in measured if v.ratio is not None and v.ratio.p is not None]
    for verdict, p in zip(tested, statistics.adjust([v.ratio.p for v in tested]), strict=True):
        verdict.p_adjusted = p


def _testable(verdict: Verdict) -> bool:
    return min(len(verdict.base.values), len(verdict.new.values)) >= 2


def _decide(verdict: Verdict, settings: Settings, family: int) -> None:
    """Turns the numbers into the word, the reason and the next step."""
    r, margin, level = verdict.ratio, verdict.margin, settings.level
    assert r is not None
    percent = f"{(r.of_medians - 1) * 100:+.1f} %"
    beyond = abs(math.log(r.estimate)) > math.log1p(margin)
    certain = verdict.p_adjusted is not None and verdict.p_adjusted <= level
    inside = r.low is not None and r.high is not None and _inside(r.low, r.high, margin)
    if certain and beyond:
        better = (r.estimate > 1) == bool(higher_is_better(verdict.metric))
        verdict.word = "faster" if better else "slower"
        verdict.reason = (
            f"{percent}, adjusted p {verdict.p_adjusted:.2g}, beyond the margin of {margin:.1%}"
        )
    elif inside:
        verdict.word = "same"
        real = f"; a real change of {percent}, too small to matter" if certain else ""
        verdict.reason = f"the {settings.confidence:.0%} interval is inside ±{margin:.1%}{real}"
    else:
        verdict.word = "unclear"
        verdict.reason = _why_unclear(verdict, percent, level, family)
        verdict.next_step = _next_step(verdict, level, family)


def _inside(low: float, high: float, margin: float) -> bool:
    return low > 1 / (1 + margin) and high < 1 + margin


def _why_unclear(verdict: Verdict, percent: str, level: float, family: int) -> str:
    r, base, new = verdict.ratio, verdict.base, verdict.new
    assert r is not None
    few, smallest = min(len(base.values), len(new.values)), math.inf
    if few >= 2:
        smallest = statistics.smallest_p(len(base.values), len(new.values))
    large = abs(r.of_medians - 1) > 5 * verdict.margin
    lead = f"a large {percent}, but " if large else f"{percent}; "
    count = f"{len(base.values)} v {len(new.values)} {base.unit}"
    significant = verdict.p_adjusted is not None and verdict.p_adjusted <= level
    cases = (
        (samples.BY_AGGREGATE in (base.unit, new.unit), "aggregates only: no significance test"),
        (few < 2, f"1 {(base if len(base.values) < 2 else new).unit[:-1]}: no test"),
        (r.p is None, r.test),
        (smallest > level, f"too few {base.unit}: min p {smallest:.2f} at {count}"),
        (
            smallest * family > level,
            f"{count} cannot reach α over {family} rows: min p {smallest:.2g}",
        ),
        (significant, f"a real change, about as large as the margin of {verdict.margin:.1%}"),
        (True, f"neither inside ±{verdict.margin:.1%} nor significant over {family} rows"),
    )
    return lead + next(sentence for applies, sentence in cases if applies)


def _next_step(verdict: Verdict, level: float, family: int) -> str:
    """How many launches would probably settle it, from how the interval shrinks with √n."""
    r, have = verdict.ratio, min(verdict.base.launches, verdict.new.launches)
    assert r is not None
    floor = statistics.launches_needed(family, level)
    if (
        r.low is None
        or r.high is None
        or samples.BY_REPETITION in (verdict.base.unit, verdict.new.unit)
    ):
        return f"measure at least {floor} launches a side"
    half = math.log(r.high / r.low) / 2
    room = abs(math.log1p(verdict.margin) - abs(math.log(r.estimate)))
    need = have * (half / room) ** 2 if room > 0 else math.inf
    if need > FAR + have:
        return "more launches will hardly settle it: quieten the machine or widen the margin"
    return f"about {max(1, floor - have, math.ceil(need) - have)} more launches a side"


def _notes(verdict: Verdict) -> list[str]:
    notes = []
    for name, sample in (("BASE", verdict.base), ("NEW", verdict.new)):
        if sample.warm_up:
            notes.append(
                f"repetitions drift downward in {name}: warm-up, {sample.warm_up} left out"
            )
    return notes


# ---- everything together ----------------------------------------------------------------------


def higher_is_better(metric: str) -> bool | None:
    """True for rates, False for costs, None when nobody can know."""
    if metric == TIME:
        return False
    return True if HIGHER.search(metric) else False if LOWER.search(metric) else None


def _directed(base: Sequence[Launch], new: Sequence[Launch]) -> list[str]:
    common = set(samples.counters(base)) & set(samples.counters(new))
    return sorted(metric for metric in common if higher_is_better(metric) is not None)


def _attach(verdicts: Sequence[Verdict], others: Sequence[Verdict]) -> None:
    by_key = {verdict.key: verdict for verdict in verdicts}
    for other in others:
        if other.word in MEASURED:
            by_key[other.key].others.append(other)


def _note_renames(verdicts: Sequence[Verdict]) -> None:
    """A benchmark that vanished and a new one of the same problem with the same numbers."""
    come = [v for v in verdicts if v.word == "new" and v.base.status == "absent"]
    for old in verdicts:
        if old.word != "missing" or old.new.status != "absent" or not old.base.median:
            continue
        for now in come:
            same_problem = old.base.fields.group() == now.new.fields.group()
            if same_problem and abs((now.new.median or 0) / old.base.median - 1) < SAME_NUMBERS:
                old.notes.append(f"renamed to {now.key}? It has the same numbers")


def _in_order(launches: Sequence[Launch]) -> list[Launch]:
    if all(launch.index is not None for launch in launches):
        return sorted(launches, key=lambda launch: launch.index or 0)
    return list(launches)


def _interleaved(base: Sequence[Launch], new: Sequence[Launch]) -> bool:
    """Whether launch i of both sides ran next to each other, the sides taking turns."""
    if len(base) != len(new) or len(base) < 2:
        return False
    order = [(launch.index, side) for side in (0, 1) for launch in (base, new)[side]]
    if any(index is None for index, _ in order) or len({index for index, _ in order}) < len(order):
        return False
    sides = [side for _, side in sorted(order)]
    return all(
        {first, second} == {0, 1} for first, second in zip(sides[::2], sides[1::2], strict=True)
    )


def _doubts(base: Sequence[Launch], new: Sequence[Launch], report: Report) -> list[str]:
    doubts = []
    if {launch.identity for launch in base} & {launch.identity for launch in new}:
        doubts.append("the same launch is on both sides")
    if report.family and any(
        samples.BY_REPETITION in (v.base.unit, v.new.unit) for v in report.verdicts
    ):
        doubts.append(
            "one launch a side: repetitions inside one process are not independent, the noise from "
            "launch to launch is not seen; several launches a side give verdicts to rely on"
        )
    return doubts


def _geomean(
    verdicts: Sequence[Verdict], settings: Settings, interleaved: bool
) -> tuple[Ratio | None, int]:
    """Geometric mean of the ratio over the rows measured on both sides, and nothing else."""
    rows = [v for v in verdicts if v.word in MEASURED and v.metric == settings.metric]
    if not rows:
        return None, 0
    mean = math.exp(math.fsum(math.log(v.ratio.of_medians) for v in rows if v.ratio) / len(rows))
    shape = {(tuple(v.base.places), tuple(v.new.places), v.base.unit, v.new.unit) for v in rows}
    if (
        len(shape) > 1
        or rows[0].base.unit != samples.BY_LAUNCH
        or rows[0].new.unit != samples.BY_LAUNCH
    ):
        return Ratio(mean, mean, None, None, None, "no interval: the rows differ in launches"), len(
            rows
        )
    base, new = (
        _launch_means([side(v) for v in rows]) for side in (lambda v: v.base, lambda v: v.new)
    )
    design = Design(interleaved, settings.level)
    return replace(ratio(base, new, settings, design), of_medians=mean), len(rows)


def _launch_means(rows: Sequence[Sample]) -> Sample:
    logs = [[math.log(v) for v in sample.values] for sample in rows]
    means = [math.exp(math.fsum(launch) / len(rows)) for launch in zip(*logs, strict=True)]
    return Sample(
        "geomean",
        rows[0].fields,
        status="ok",
        values=means,
        places=rows[0].places,
        launches=len(means),
    )


def _severity(verdict: Verdict) -> tuple[int, float, str]:
    size = abs(math.log(verdict.ratio.estimate)) if verdict.ratio else 0.0
    return WORDS.index(verdict.word), -size, verdict.key
