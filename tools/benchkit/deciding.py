"""Numbers of one benchmark → ratio, word, reason and what would settle it. Pure functions.

A word is only given when it is earned: "slower" needs a corrected p-value and a change beyond the
margin, "same" an interval inside the margin; everything else is "unclear".
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchkit import samples, statistics
from benchkit.report import Settings, Verdict
from benchkit.samples import TIME, Sample
from benchkit.statistics import Ratio

# Which way a counter is better; a counter that fits neither gets no verdict.
HIGHER = re.compile(r"FLOPS?$|per_second|/s$|[GMKT]i?Bps$|pct_|^% of|throughput", re.IGNORECASE)
LOWER = re.compile(r"time|seconds|latency|err|bytes_used|allocs", re.IGNORECASE)
FAR = 100  # more launches than this is no advice


def higher_is_better(metric: str) -> bool | None:
    """True for rates, False for costs, None when nobody can know."""
    if metric == TIME:
        return False
    return True if HIGHER.search(metric) else False if LOWER.search(metric) else None


@dataclass(frozen=True, slots=True)
class Design:
    """What all tests of a family share: whether the sides took turns, how blocks are cut."""

    level: float
    family: int = 1
    interleaved: bool = False
    drifting: bool = False

    @classmethod
    def of(cls, measured: Sequence[Verdict], interleaved: bool, level: float) -> "Design":
        family = sum(min(len(v.base.values), len(v.new.values)) >= 2 for v in measured)
        rows = [v for v in measured if v.base.unit == v.new.unit == samples.BY_LAUNCH]
        pairs = [_pairs(v.base, v.new) for v in rows] if interleaved else []
        logs = [[math.log(old * now) / 2 for old, now in row] for row in pairs if len(row) > 2]
        return cls(level, family, interleaved, statistics.drifts(logs))

    @property
    def threshold(self) -> float:
        """The p-value that one change alone must reach to survive the correction."""
        return self.level / max(1, self.family)


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


def adjust(measured: Sequence[Verdict]) -> None:
    tested = [v for v in measured if v.ratio is not None and v.ratio.p is not None]
    for verdict, p in zip(tested, statistics.adjust([v.ratio.p for v in tested]), strict=True):
        verdict.p_adjusted = p


def decide(verdict: Verdict, settings: Settings, design: Design) -> None:
    """Turns the numbers into the word, the reason and the next step."""
    r, margin, level = verdict.ratio, verdict.margin, design.level
    assert r is not None
    percent = f"{(r.of_medians - 1) * 100:+.1f} %"
    beyond = abs(math.log(r.estimate)) > math.log1p(margin)
    certain = verdict.p_adjusted is not None and verdict.p_adjusted <= level
    inside = r.low is not None and r.high is not None and _inside(r.low, r.high, margin)
    if certain and beyond:
        higher = higher_is_better(verdict.metric)
        if verdict.metric == settings.metric and settings.better:
            higher = settings.better == "higher"
        better = (r.estimate > 1) == bool(higher)
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
        verdict.reason = _why_unclear(verdict, percent, design)
        verdict.next_step = _next_step(verdict, design)


def _inside(low: float, high: float, margin: float) -> bool:
    return low > 1 / (1 + margin) and high < 1 + margin


def _why_unclear(verdict: Verdict, percent: str, design: Design) -> str:
    level, family = design.level, design.family
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


def _next_step(verdict: Verdict, design: Design) -> str:
    """How many launches would probably settle it, from how the interval shrinks with √n."""
    r, have = verdict.ratio, min(verdict.base.launches, verdict.new.launches)
    assert r is not None
    floor = statistics.launches_needed(design.family, design.level)
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


def notes(verdict: Verdict) -> list[str]:
    notes = []
    for name, sample in (("BASE", verdict.base), ("NEW", verdict.new)):
        if sample.warm_up:
            notes.append(
                f"repetitions drift downward in {name}: warm-up, {sample.warm_up} left out"
            )
    return notes
