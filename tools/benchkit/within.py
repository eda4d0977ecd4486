"""One run → how much faster each variant is than a baseline of the same problem, with intervals.

Both contestants come from the same launches, so the launches pair them: what slowed a launch down
slowed both. A speed-up above 1 is faster than the baseline.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchkit import rendering, roofline, samples, statistics, tables
from benchkit.errors import UserError
from benchkit.reading import Launch
from benchkit.samples import Sample


@dataclass(frozen=True, slots=True)
class Contestant:
    """A benchmark and its baseline; `speed_up`: baseline time / own time."""

    sample: Sample
    baseline: Sample
    speed_up: float | None = None
    low: float | None = None
    high: float | None = None
    remark: str = ""
    percent: float | None = None  # of its roof


def race(launches: Sequence[Launch], pattern: str, confidence: float = 0.95) -> list[Contestant]:
    """Every benchmark against the one of its problem and size whose name the pattern finds."""
    try:
        baseline = re.compile(pattern)
    except re.error as error:
        raise UserError(f"--baseline {pattern!r} is not a regular expression: {error}") from error
    found, percents = samples.collect(launches), samples.collect(launches, roofline.OF_ROOF)
    groups: dict[tuple[object, ...], list[Sample]] = {}
    for sample in found.values():
        groups.setdefault(sample.fields.group(), []).append(sample)
    result: list[Contestant] = []
    for group in groups.values():
        chosen = [sample for sample in group if baseline.search(sample.key)]
        if len(chosen) > 1:
            names = ", ".join(sample.key for sample in chosen)
            raise UserError(f"--baseline {pattern!r} finds more than one of one problem: {names}")
        result += [_against(sample, chosen[0], confidence) for sample in group if chosen]
    if not result:
        raise UserError(f"--baseline {pattern!r} finds no benchmark of this run")
    return [replace(one, percent=percents[one.sample.key].median) for one in result]


def _against(sample: Sample, baseline: Sample, confidence: float) -> Contestant:
    for one, name in ((sample, ""), (baseline, "the baseline ")):
        if not one.values:
            return Contestant(sample, baseline, remark=f"{name}{one.status}: {one.message}".strip())
    if sample is baseline:
        return Contestant(sample, baseline, 1.0, remark="baseline")
    common = sorted(set(sample.places) & set(baseline.places))
    if sample.unit == baseline.unit == samples.BY_LAUNCH and len(common) > 1:
        own, other = (dict(zip(s.places, s.values, strict=True)) for s in (sample, baseline))
        result = statistics.compare_interleaved(
            [own[p] for p in common], [other[p] for p in common], [len(common)], confidence
        )
    else:
        result = statistics.compare(sample.values, baseline.values, confidence)
    count = len(sample.values)
    counted = f"{count} {sample.unit if count != 1 else sample.unit.removesuffix('s')}"
    return Contestant(
        sample,
        baseline,
        result.of_medians,
        result.low,
        result.high,
        counted if result.low is not None else f"{counted}: no interval",
    )


# ---- output -----------------------------------------------------------------------------------

COLUMNS = (
    "benchmark",
    "baseline",
    "time",
    "baseline time",
    "speed-up",
    "interval",
    "% of roof",
    "remark",
)


def records(race: Sequence[Contestant]) -> list[dict[str, Any]]:
    return [
        {
            "name": c.sample.key,
            "baseline": c.baseline.key,
            "seconds": c.sample.median,
            "baseline_seconds": c.baseline.median,
            "speed_up": c.speed_up,
            "low": c.low,
            "high": c.high,
            "percent_of_roof": c.percent,
            "remark": c.remark,
        }
        for c in race
    ]


def as_json(race: Sequence[Contestant]) -> str:
    return json.dumps({"schema": 1, "contestants": records(race)}, indent=1, allow_nan=False) + "\n"


def as_csv(race: Sequence[Contestant]) -> str:
    lines = records(race)
    return tables.csv_text([lines[0], *(line.values() for line in lines)])


def markdown(race: Sequence[Contestant]) -> str:
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS)]
    lines += ["| " + " | ".join(map(rendering.escape_markdown, _cells(c))) + " |" for c in race]
    return "\n".join(lines) + "\n"


def terminal(race: Sequence[Contestant], width: int | None, colour: bool) -> str:
    lines = [
        (cells, "green" if (c.speed_up or 0) > 1 else "") for c in race if (cells := _cells(c))
    ]
    return rendering.table(COLUMNS, lines, width, colour)


def _cells(c: Contestant) -> tuple[str, ...]:
    show = rendering.quantity
    speed = "–" if c.speed_up is None else f"{c.speed_up:.3f}×"
    interval = "–" if c.low is None or c.high is None else f"{c.low:.3f} … {c.high:.3f}"
    names = (rendering.printable(c.sample.key), rendering.printable(c.baseline.key))
    return (
        *names,
        show(c.sample.median),
        show(c.baseline.median),
        speed,
        interval,
        "–" if c.percent is None else f"{c.percent:.3g}",
        rendering.printable(c.remark),
    )
