"""One run → how much faster its benchmarks are than each other, with intervals.

A group is benchmarks that differ in one field alone (`by`) and one of them is its baseline. They
come from the same launches, so the launches pair them: what slowed a launch down slowed both. A
speed-up above 1 is faster than the baseline.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from benchkit import rendering, roofline, samples, statistics, tables
from benchkit.errors import UserError
from benchkit.reading import Launch
from benchkit.samples import Sample

IMPL = "impl"  # side and variant together: the ways to compute the same thing
# What differs along with a field: device time and wall time are clocks of a side, not of a problem.
ALONG = {
    IMPL: ("side", "variant", "clock"),
    "side": ("side", "clock"),
    "end_to_end": ("end_to_end", "clock"),
}


@dataclass(frozen=True, slots=True)
class Result:
    """Baseline time / own time and its interval, or why there is none."""

    speed_up: float | None = None
    low: float | None = None
    high: float | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A benchmark against the baseline of its group."""

    sample: Sample
    baseline: Sample
    value: str  # of the field in which they differ
    result: Result
    percent: float | None = None  # of its roof


@dataclass(frozen=True, slots=True)
class Group:
    """Benchmarks that differ in one field; `label` is what they share."""

    label: str
    contestants: list[Contestant]


@dataclass(frozen=True, slots=True)
class Race:
    """All groups of a run; `left_out`: those in which the pattern finds no baseline."""

    by: str
    confidence: float
    groups: list[Group]
    left_out: int = 0


def race(
    launches: Sequence[Launch], by: str, pattern: str | None, confidence: float = 0.95
) -> Race:
    """Each group's benchmarks against the one whose name the pattern finds, or its first one."""
    groups = _groups(samples.collect(launches).values(), by)
    percents = _percents(launches)
    result = []
    for group in groups:
        if baseline := _baseline(group, pattern):
            contestants = [
                Contestant(
                    one,
                    baseline,
                    value(one, by),
                    _against(one, baseline, confidence),
                    percents.get(one.key),
                )
                for one in group
            ]
            result.append(Group(_label(baseline, by), _ranked(contestants)))
    if not result:
        raise UserError(f"--baseline {pattern!r} finds no benchmark of this run")
    return Race(by, confidence, result, len(groups) - len(result))


# ---- groups -----------------------------------------------------------------------------------


def _facts(sample: Sample) -> dict[str, object]:
    """The fields of a benchmark; parameters have their own names."""
    name = sample.fields
    alone = not name.side and not name.variant  # BM_Tile/64: a name and nothing else
    facts = {
        "op": "" if alone else name.op,
        "side": name.side,
        "variant": name.op if alone else name.variant,
        "end_to_end": "yes" if name.end_to_end else "no",
        "n": name.n,
        "threads": sample.threads,
        "clock": name.clock,
    }
    return facts | {key if key not in facts else f"{key}:": v for key, v in name.params.items()}


def value(sample: Sample, by: str) -> str:
    """What a benchmark has in the field."""
    facts = _facts(sample)
    parts = [facts["side"], facts["variant"]] if by == IMPL else [facts[by]]
    return "/".join(str(part) for part in parts if part not in ("", None)) or "–"


def _groups(found: Iterable[Sample], by: str) -> list[list[Sample]]:
    """Benchmarks that differ in the field and in nothing else, of two values or more."""
    found = list(found)
    if contests := _contests(found, by):
        return contests
    known = dict.fromkeys([IMPL, *(key for sample in found for key in _facts(sample))])
    differ = [field for field in known if _contests(found, field)]
    what = (
        "no two benchmarks of this run differ in nothing else" if by in known else "no such field"
    )
    listed = f"; fields that tell some apart: {', '.join(differ)}" if differ else ""
    raise UserError(f"--by {by}: {what}{listed}")


def _contests(found: Sequence[Sample], by: str) -> list[list[Sample]]:
    groups: dict[tuple[tuple[str, object], ...], list[Sample]] = {}
    along = ALONG.get(by, (by,))
    for sample in found:
        facts = _facts(sample)
        if by == IMPL or by in facts:
            shared = tuple(sorted((k, str(v)) for k, v in facts.items() if k not in along))
            groups.setdefault(shared, []).append(sample)
    return [group for group in groups.values() if len({value(one, by) for one in group}) > 1]


def _baseline(group: Sequence[Sample], pattern: str | None) -> Sample | None:
    if pattern is None:
        return next((sample for sample in group if sample.values), group[0])
    try:
        chosen = [sample for sample in group if re.search(pattern, sample.key)]
    except re.error as error:
        raise UserError(f"--baseline {pattern!r} is not a regular expression: {error}") from error
    if len(chosen) > 1:
        names = ", ".join(sample.key for sample in chosen)
        raise UserError(f"--baseline {pattern!r} finds more than one of one group: {names}")
    return chosen[0] if chosen else None


def _label(sample: Sample, by: str) -> str:
    """What the benchmarks of a group have in common."""
    facts = _facts(sample)
    shared = {key: v for key, v in facts.items() if key not in ALONG.get(by, (by,))}
    plain = [str(shared.pop(key, "")) for key in ("op", "side", "variant")]
    end_to_end = "EndToEnd" if shared.pop("end_to_end", "no") == "yes" else ""
    clock = str(shared.pop("clock", ""))
    shared = {k: v for k, v in shared.items() if v is not None and (k, v) != ("threads", 1)}
    return " ".join(
        filter(None, [*plain, end_to_end, *(f"{k}:{v}" for k, v in shared.items()), clock])
    )


def _ranked(group: list[Contestant]) -> list[Contestant]:
    """Sizes and counts in their order, everything else fastest first; the unmeasured come last."""
    try:
        return sorted(group, key=lambda one: float(one.value))
    except ValueError:
        return sorted(group, key=lambda one: -(one.result.speed_up or 0.0))


# ---- numbers ----------------------------------------------------------------------------------


def _percents(launches: Sequence[Launch]) -> dict[str, float]:
    """Percent of the measured roof: what the program says, else by the run's own Peak rows."""
    known = {one.key: one.percent for one in roofline.points(launches) if one.percent}
    said = samples.collect(launches, roofline.OF_ROOF)
    return known | {key: one.median for key, one in said.items() if one.median}


def _against(sample: Sample, baseline: Sample, confidence: float) -> Result:
    for one, name in ((sample, ""), (baseline, "the baseline ")):
        if one.doubt:
            return Result(remark=f"{name}cannot be true: {one.doubt}")
        if not one.values:
            return Result(remark=f"{name}{one.status}: {one.message}".strip())
    if sample is baseline:
        return Result(1.0, remark="baseline")
    common = sorted(set(sample.places) & set(baseline.places))
    if sample.unit == baseline.unit == samples.BY_LAUNCH and len(common) > 1:
        own, other = (dict(zip(s.places, s.values, strict=True)) for s in (sample, baseline))
        ratio = statistics.compare_interleaved(
            [own[p] for p in common], [other[p] for p in common], [len(common)], confidence
        )
    else:
        ratio = statistics.compare(sample.values, baseline.values, confidence)
    count = len(sample.values)
    counted = f"{count} {sample.unit if count != 1 else sample.unit.removesuffix('s')}"
    remark = counted if ratio.low is not None else f"{counted}: no interval"
    return Result(ratio.of_medians, ratio.low, ratio.high, remark)


# ---- output -----------------------------------------------------------------------------------

COLUMNS = ("time ± CV", "speed-up", "interval", "% of roof", "remark")


def records(race: Race) -> list[dict[str, Any]]:
    return [
        {
            "name": c.sample.key,
            "baseline": c.baseline.key,
            "by": race.by,
            "group": group.label,
            "value": c.value,
            "seconds": c.sample.median,
            "baseline_seconds": c.baseline.median,
            "speed_up": c.result.speed_up,
            "low": c.result.low,
            "high": c.result.high,
            "percent_of_roof": c.percent,
            "remark": c.result.remark,
        }
        for group in race.groups
        for c in group.contestants
    ]


def as_json(race: Race) -> str:
    """The document of within.schema.json."""
    settings = {"schema": 1, "by": race.by, "confidence": race.confidence}
    return json.dumps({**settings, "contestants": records(race)}, indent=1, allow_nan=False) + "\n"


def as_csv(race: Race) -> str:
    lines = records(race)
    return tables.csv_text([lines[0], *(line.values() for line in lines)])


def markdown(race: Race) -> str:
    text = []
    for group in race.groups:
        heads = [race.by, *COLUMNS]
        text += [f"### {rendering.escape_markdown(_title(group, race.by))}", ""]
        text += ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
        rows = (map(rendering.escape_markdown, _cells(c)) for c in group.contestants)
        text += [*("| " + " | ".join(row) + " |" for row in rows), ""]
    return "\n".join(text)


def terminal(race: Race, width: int | None, colour: bool) -> str:
    text = []
    for group in race.groups:
        lines = [
            (_cells(c), "green" if (c.result.speed_up or 0) > 1 else "") for c in group.contestants
        ]
        table = rendering.table((race.by, *COLUMNS), lines, width, colour)
        text.append(f"{_title(group, race.by)}\n{table}")
    return "\n".join(text)


def _title(group: Group, by: str) -> str:
    baseline = group.contestants[0].baseline
    words = f"{group.label or 'all'} by {by}, baseline {value(baseline, by)}"
    return rendering.printable(words)


def _cells(c: Contestant) -> tuple[str, ...]:
    r = c.result
    return (
        rendering.printable(c.value),
        rendering.measured(c.sample, samples.TIME),
        "–" if r.speed_up is None else f"{r.speed_up:.3f}×",
        "–" if r.low is None or r.high is None else f"{r.low:.3f} … {r.high:.3f}",
        "–" if c.percent is None else f"{c.percent:.3g}",
        rendering.printable(r.remark),
    )
