"""One side's launches → one sample per benchmark: what was measured, how often, or why it was not.

The sample is one number per launch (the median of its repetitions). With a single launch there is
nothing but its repetitions; they are used, and the sample says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchkit import names
from benchkit.reading import Launch, Row
from benchkit.statistics import median, spread, warm_up

TIME, CPU_TIME = "time", "cpu_time"
BY_LAUNCH, BY_REPETITION, BY_AGGREGATE = "launches", "repetitions", "aggregates"


@dataclass(slots=True)
class Sample:
    """One benchmark on one side. `values` and `places` (in the interleaved order) go together."""

    key: str
    fields: names.Name
    occurrence: int = 0
    status: str = "absent"  # "ok", "error", "invalid", "skipped" or "absent"
    message: str = ""
    unit: str = BY_LAUNCH
    values: list[float] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    launches: int = 0
    threads: int = 1
    within: float | None = None  # median spread (CV) of the repetitions inside a launch
    doubt: str = ""  # what the program calls suspicious in half of the rows or more
    warm_up: int = 0  # leading repetitions left out, the most in any launch

    @property
    def median(self) -> float | None:
        return median(self.values) if self.values else None

    @property
    def between(self) -> float | None:
        """Spread (CV) from launch to launch."""
        return spread(self.values) if self.unit == BY_LAUNCH else None


def collect(launches: Sequence[Launch], metric: str = TIME) -> dict[str, Sample]:
    """Samples of all benchmarks of a side by key, in order of appearance."""
    found: dict[str, dict[int, list[Row]]] = {}
    for place, launch in enumerate(launches):
        for row in launch.rows:
            if row.kind != "fit" and row.run_name:
                found.setdefault(row.key, {}).setdefault(place, []).append(row)
    return {key: _sample(key, by_place, metric) for key, by_place in found.items()}


def counters(launches: Sequence[Launch]) -> list[str]:
    """All counters that iteration rows of these launches carry."""
    rows = (row for launch in launches for row in launch.rows if row.kind == "iteration")
    return sorted({key for row in rows for key in row.counters})


def value(row: Row, metric: str) -> float | None:
    """Seconds by the row's own clock or of CPU time, or a counter."""
    times = {TIME: row.seconds, CPU_TIME: row.cpu_seconds}
    return times[metric] if metric in times else row.counters.get(metric)


def _sample(key: str, by_place: dict[int, list[Row]], metric: str) -> Sample:
    rows = [row for rows in by_place.values() for row in rows]
    sample = Sample(key, rows[0].fields, rows[0].occurrence, threads=rows[0].threads or 1)
    sample.status, sample.message = _status(rows)
    if sample.status != "ok":
        return sample
    doubts = [row.label for row in rows if row.suspicious]
    sample.doubt = doubts[0] if 2 * len(doubts) >= len(rows) else ""
    per_launch: list[list[float]] = []
    for place, here in by_place.items():
        values, aggregated = _repetitions(here, metric)
        if not values:
            continue
        cold = warm_up(values)
        sample.warm_up = max(sample.warm_up, cold)
        sample.unit = BY_AGGREGATE if aggregated else sample.unit
        per_launch.append(values[cold:])
        sample.places.append(place)
    sample.launches = len(per_launch)
    spreads = [s for s in map(spread, per_launch) if s is not None]
    sample.within = median(spreads) if spreads else None
    sample.values = [median(values) for values in per_launch]
    if len(per_launch) == 1 and sample.unit == BY_LAUNCH:
        sample.unit, sample.values = BY_REPETITION, per_launch[0]
    elif len(per_launch) > 1:
        sample.unit = BY_LAUNCH
    return sample


def _status(rows: Sequence[Row]) -> tuple[str, str]:
    """The worst that happened: a failed repetition makes the benchmark failed, never n − 1."""
    rows = [row for row in rows if row.kind == "iteration"] or rows
    for status in ("error", "invalid"):
        bad = [row for row in rows if row.status == status]
        if bad:
            count = "" if len(rows) == 1 else f"{len(bad)} of {len(rows)} repetitions: "
            return status, f"{count}{bad[0].message}"
    skipped = [row for row in rows if row.status == "skipped"]
    if skipped and len(skipped) == len(rows):
        return "skipped", skipped[0].message
    return "ok", ""


def _repetitions(rows: Sequence[Row], metric: str) -> tuple[list[float], bool]:
    """Values of one launch in order; without repetition rows the launch's median or mean."""
    runs = [row for row in rows if row.kind == "iteration" and row.status == "ok"]
    runs.sort(key=lambda row: -1 if row.repetition is None else row.repetition)
    values = [v for v in (value(row, metric) for row in runs) if v is not None and v > 0]
    if runs:
        return values, False
    for wanted in ("median", "mean"):
        for row in rows:
            number = value(row, metric)
            if row.kind == "aggregate" and row.aggregate == wanted and number and number > 0:
                return [number], True
    return [], True
