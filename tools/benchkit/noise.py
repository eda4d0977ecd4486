"""How much the launches of one side vary: what every verdict has to be seen against.

Pure functions. What the launches do not tell is None, never 0.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchkit import machines, samples
from benchkit.reading import Launch
from benchkit.samples import Sample
from benchkit.statistics import median

Range = tuple[float, float]
FEWEST = 4  # launches from which two halves say anything about drift


@dataclass(frozen=True, slots=True)
class Noise:
    """One side; spreads and drift are medians over its benchmarks, ranges (lowest, highest)."""

    between: float | None = None  # coefficient of variation from launch to launch
    within: float | None = None  # … of the repetitions inside a launch
    drift: float | None = None  # second half of the launches / first half − 1
    load: Range | None = None  # load average of a minute per CPU, as each launch began
    mhz: Range | None = None  # clock of the CPU, as the library saw it at each launch


def of(launches: Sequence[Launch], measured: Iterable[Sample]) -> Noise:
    """The noise of these launches (in the order they ran) and of the samples taken from them."""
    measured = list(measured)
    return Noise(
        _median(sample.between for sample in measured),
        _median(sample.within for sample in measured),
        _median(map(_drift, measured)),
        _range(map(machines.load, launches)),
        _range(launch.context.get("mhz_per_cpu") for launch in launches),
    )


def _drift(sample: Sample) -> float | None:
    values, half = sample.values, len(sample.values) // 2
    if sample.unit != samples.BY_LAUNCH or len(values) < FEWEST:
        return None
    return median(values[-half:]) / median(values[:half]) - 1


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _range(values: Iterable[object]) -> Range | None:
    known = [
        float(value)
        for value in values
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    ]
    return (min(known), max(known)) if known else None
