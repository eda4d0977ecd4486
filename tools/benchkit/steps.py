"""A series of nights → the nights at which its level changed. Numbers only: no names, no states.

Segmentation by ruptures (PELT with the L2 cost, KernelCPD in C) on log values, after a Hampel clip.
It was chosen over Apache Otava's algorithm by simulation (results/nightly/README.md): with the clip
both find every true step, Otava's t-test alarms in more noise series, and its package brings cloud
clients and a pinned numpy. A step needs NIGHTS nights on its new level before it exists.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

VERSION = 2  # of these rules: what an index remembers of others is not used
NIGHTS = 3  # on the new level: fewer is a spike
BEFORE = 5  # nights on the old level: fewer is no level yet
CLIP = 3.0  # robust sigmas around the local median beyond which a night is clipped
WILD = 4.0  # robust sigmas beyond which an outlier says nothing more about the noise
WINDOW = 5  # nights of the local median: spikes of up to two nights vanish in it
PENALTY = 25.0  # what a step must explain, in variances of the noise
FLOOR = 5e-4  # the noise is never taken for smaller (relative): timers and rounding
FEW = 3.0  # nights: how fast the mistrust of a sigma from few nights fades
PENDING = 4.0  # robust sigmas from which one or two last nights are worth a look


@dataclass(frozen=True, slots=True)
class Step:
    """The level changed at `index` (into the values given) from `before` to `after`."""

    index: int
    before: float
    after: float
    confirmed: bool
    p: float | None = None  # how often noise alone makes one anywhere in the series, if confirmed

    @property
    def ratio(self) -> float:
        return self.after / self.before


def find(values: Sequence[float | None], margin: float) -> list[Step]:
    """All steps beyond `margin` (a fraction), in order; None is a night without a value.

    The last one may be unconfirmed: one or two nights far off the level, which wait for more.
    """
    places = [i for i, value in enumerate(values) if value is not None and value > 0]
    if len(places) < BEFORE + 1:
        return []
    logs = np.log([values[i] for i in places])
    clipped, sigma = clip(logs)
    bounds = _merge(clipped, [0, *_split(clipped, sigma), len(logs)], sigma, margin)
    levels = [float(np.median(logs[a:b])) for a, b in itertools.pairwise(bounds)]
    parts = [logs[a:b] for a, b in itertools.pairwise(bounds)]
    means = [float(clipped[a:b].mean()) for a, b in itertools.pairwise(bounds)]
    tried = len(logs) - BEFORE - NIGHTS + 1
    steps = []
    for i, at in enumerate(bounds[1:-1]):
        p = _chance(parts[i : i + 2], abs(means[i + 1] - means[i]), sigma, tried)
        steps.append(Step(places[at], math.exp(levels[i]), math.exp(levels[i + 1]), True, p))
    pending = _pending(logs[bounds[-2] :], sigma, margin)
    if pending:
        new = float(np.median(logs[-pending:]))
        steps.append(Step(places[-pending], math.exp(levels[-1]), math.exp(new), False))
    return steps


def drift(values: Sequence[float | None], margin: float) -> float | None:
    """The slow change over the whole series as a ratio, when a line explains it; else None."""
    logs = np.log([value for value in values if value is not None and value > 0])
    if len(logs) < 2 * BEFORE:
        return None
    nights = np.arange(len(logs))
    slope, start = np.polyfit(nights, logs, 1)
    total, rest = float(np.var(logs)), float(np.var(logs - (slope * nights + start)))
    change = slope * (len(logs) - 1)
    explains = total > 0 and rest < 0.3 * total
    return math.exp(change) if explains and abs(change) > math.log1p(margin) else None


def clip(logs: np.ndarray) -> tuple[np.ndarray, float]:
    """Hampel: nights far from the median of their neighbours are moved nearer; and the noise."""
    if len(logs) < 3:
        return logs.copy(), FLOOR
    starts = np.clip(np.arange(len(logs)) - WINDOW // 2, 0, max(0, len(logs) - WINDOW))
    centre = np.median(logs[starts[:, None] + np.arange(min(WINDOW, len(logs)))], axis=1)
    sigma = noise(logs)
    return np.clip(logs, centre - CLIP * sigma, centre + CLIP * sigma), sigma


def noise(logs: np.ndarray) -> float:
    """Robust sigma from night to night; the largest of three distances, so that noise which
    remembers the night before is not taken for small, and more while there are few nights."""
    jumps = [np.abs(logs[lag:] - logs[:-lag]) for lag in (1, 2, 3) if len(logs) > lag + 1]
    sigma = max(1.4826 * float(np.median(jump)) / math.sqrt(2) for jump in jumps)
    return max(FLOOR, sigma * (1 + FEW / len(logs)))


def _split(logs: np.ndarray, sigma: float) -> list[int]:
    from ruptures import KernelCPD

    if len(logs) < BEFORE + NIGHTS:
        return []
    detector = KernelCPD(kernel="linear", min_size=NIGHTS).fit((logs / sigma).reshape(-1, 1))
    return [at for at in detector.predict(pen=PENALTY) if at < len(logs)]


def _merge(logs: np.ndarray, bounds: list[int], sigma: float, margin: float) -> list[int]:
    """Takes out, weakest first, what is no step: too small, too short, or a line explains it."""
    bounds = list(bounds)
    while len(bounds) > 2:
        parts = [logs[a:b] for a, b in itertools.pairwise(bounds)]
        weak = []
        for i, (old, new) in enumerate(itertools.pairwise(parts), 1):
            size = abs(float(np.median(new) - np.median(old)))
            first = i == 1 and len(old) < BEFORE
            noise = max(
                sigma,
                math.sqrt(
                    (np.var(old) * len(old) + np.var(new) * len(new))
                    / max(1, len(old) + len(new) - 2)
                ),
            )
            small = size < math.log1p(margin) or size < 1.5 * noise
            if first or small or _line_explains(old, new):
                weak.append((size, i))
        if not weak:
            break
        del bounds[min(weak)[1]]
    return bounds


def _line_explains(old: np.ndarray, new: np.ndarray) -> bool:
    both = np.concatenate([old, new])
    nights = np.arange(len(both))
    line = np.polyval(np.polyfit(nights, both, 1), nights)
    step = np.concatenate([np.full(len(old), old.mean()), np.full(len(new), new.mean())])
    return float(((both - line) ** 2).sum()) <= float(((both - step) ** 2).sum())


def _chance(parts: Sequence[np.ndarray], size: float, sigma: float, places: int) -> float:
    """p of Student's t for the levels of two pieces that lie `size` apart. Its noise counts
    outliers up to WILD sigmas (heavy tails make steps of their own), its nights are fewer when each
    remembers the one before (lag-1 correlation), and the step could have been at any of `places`
    (Bonferroni).
    """
    from scipy.special import stdtr

    apart = np.concatenate([part - np.median(part) for part in parts])
    noise_ = np.clip(apart, -WILD * sigma, WILD * sigma)
    squares, free = float((noise_**2).sum()), len(noise_) - 2
    memory = max(0.0, float((noise_[1:] * noise_[:-1]).sum()) / squares) if squares else 0.0
    deviation = max(FLOOR, math.sqrt(squares / free))
    wider = sum(1 / len(part) for part in parts) * (1 + memory) / (1 - memory)
    return min(1.0, 2 * float(stdtr(free, -size / (deviation * math.sqrt(wider)))) * places)


def _pending(logs: np.ndarray, sigma: float, margin: float) -> int:
    """How many last nights (one or two) lie together far off the level before them."""
    for count in (2, 1):
        if len(logs) < BEFORE + count:
            continue
        before = logs[:-count]
        level = float(np.median(before))
        noise = max(sigma, 1.4826 * float(np.median(np.abs(before - level))))
        off = (logs[-count:] - level) / max(PENDING * noise, math.log1p(margin))
        if (off > 1).all() or (off < -1).all():
            return count
    return 0
