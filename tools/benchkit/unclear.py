"""Tonight's launches and the last nights' → the rows that a night measures again, and no others.

A row is clear when the interval of tonight's median lies inside the margin around the level of the
last nights, or altogether beyond it. Nights of another machine or driver say nothing about it.
"""

from collections.abc import Iterable, Sequence

from benchkit import machines, margins, samples
from benchkit.reading import Launch
from benchkit.statistics import median

NIGHTS = 5  # finished ones that make the level
CONFIDENCE = 0.95


def rows(tonight: Sequence[Launch], past: Iterable[Sequence[Launch]]) -> list[str]:
    """Names, as the program knows them, of rows that may or may not have moved."""
    levels: dict[str, list[float]] = {}
    for night in past:
        differences = machines.guard(night, tonight)
        for key, sample in samples.collect(night).items():
            if sample.values and not machines.refused(differences, sample.fields.side):
                levels.setdefault(key, []).append(median(sample.values))
    rules = margins.defaults()
    return [
        key.removesuffix(f" #{sample.occurrence + 1}")
        for key, sample in samples.collect(tonight).items()
        if sample.values and key in levels
        and _open(sample.values, median(levels[key]), margins.margin(rules, key, samples.TIME))
    ]  # fmt: skip


def _open(values: Sequence[float], level: float, margin: float) -> bool:
    """Whether the interval of the median holds values on both sides of a border of the margin."""
    low, high = _interval(values)
    return any(low < border < high for border in (level / (1 + margin), level * (1 + margin)))


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Of the median, from order statistics; of few values that is all of them."""
    from scipy.special import bdtr

    count = len(values)
    outside = sum(bdtr(k, count, 0.5) <= (1 - CONFIDENCE) / 2 for k in range(count // 2))
    cut = max(0, outside - 1)
    ordered = sorted(values)
    return ordered[cut], ordered[-1 - cut]
