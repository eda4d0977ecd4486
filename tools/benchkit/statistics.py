"""Samples (one number per launch) → p-values and intervals of the ratio new/base.

Launches are the samples: repetitions inside one process share its memory layout, clocks and
neighbours, so they are collapsed to the launch's median before anything here sees them.
scipy does the tests; what it has not — permutation within blocks — is an exact count here.
scipy and numpy are imported when first needed: they cost most of a second.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise

MIN_TIED_ASYMPTOTIC = 8  # launches a side from which the tie-corrected normal p-value is used
BLOCK = 4  # launches in one ABBA block
DRIFTING = 1.4  # von Neumann ratio below which the run is cut into short blocks


@dataclass(frozen=True, slots=True)
class Ratio:
    """new/base: of medians, Hodges–Lehmann estimate and its interval (None: too few samples)."""

    of_medians: float
    estimate: float
    low: float | None
    high: float | None
    p: float | None
    test: str  # what gave p, or why there is none


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def spread(values: Sequence[float]) -> float | None:
    """Coefficient of variation (sample standard deviation / mean); None below two values."""
    if len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)) / mean


def warm_up(values: Sequence[float]) -> int:
    """How many leading repetitions of one launch are a warm-up: at least two, each lower than the
    one before it, all above everything in the launch's second half by more than 1 %."""
    ceiling = max(values[len(values) // 2 :], default=math.inf) * 1.01
    count = 0
    while count < len(values) // 2 and values[count] > ceiling:
        if count and values[count] >= values[count - 1]:
            break
        count += 1
    return count if count >= 2 else 0


def smallest_p(base: int, new: int) -> float:
    """The smallest two-sided p-value that a rank test on so many launches can give."""
    return min(1.0, 2 / math.comb(base + new, base)) if base and new else 1.0


def launches_needed(family: int, alpha: float) -> int:
    """Launches a side from which one change among `family` rows can survive the correction."""
    return next(n for n in range(2, 100) if smallest_p(n, n) <= alpha / max(1, family))


# ---- independent sides ------------------------------------------------------------------------


def compare(base: Sequence[float], new: Sequence[float], confidence: float = 0.95) -> Ratio:
    """Two independent samples of positive numbers: Mann–Whitney and the interval it inverts to."""
    of_medians = median(new) / median(base)
    logs_base, logs_new = list(map(math.log, base)), list(map(math.log, new))
    differences = sorted(b - a for b in logs_new for a in logs_base)
    estimate = math.exp(median(differences))
    if min(len(base), len(new)) < 2:
        return Ratio(of_medians, estimate, None, None, None, "1 sample: no test")
    p, test = _mann_whitney(base, new)
    cut = interval_cut(len(base), len(new), confidence)
    if cut is None:
        return Ratio(of_medians, estimate, None, None, p, test)
    low, high = differences[cut], differences[-1 - cut]
    return Ratio(of_medians, estimate, math.exp(low), math.exp(high), p, test)


def _mann_whitney(base: Sequence[float], new: Sequence[float]) -> tuple[float, str]:
    from scipy import stats

    if len({*base, *new}) == len(base) + len(new):
        u = sum(b < a for a in base for b in new)
        return _exact_p(u, len(base), len(new)), "exact Mann-Whitney"
    if min(len(base), len(new)) >= MIN_TIED_ASYMPTOTIC:
        p = float(stats.mannwhitneyu(base, new, method="asymptotic").pvalue)
        return (1.0 if math.isnan(p) else p), "Mann-Whitney with tie correction"
    return _permutation_within([*base, *new], [len(base) + len(new)], len(base)), (
        "exact permutation of tied ranks"
    )


@lru_cache(maxsize=4096)  # without ties p depends on U alone, and U takes few values
def _exact_p(u: int, base: int, new: int) -> float:
    """Two-sided p when u of the base × new pairs are the wrong way round and no values are tied."""
    from scipy import stats

    # Samples whose U statistic is u: `full` of the first lie above all of the second.
    full, rest = divmod(u, new)
    first = [new + 1.0] * full + [rest + 0.5] + [-1.0] * base
    first = [value + i * 1e-9 for i, value in enumerate(first[:base])]
    second = [float(i) for i in range(1, new + 1)]
    return float(stats.mannwhitneyu(first, second, method="exact").pvalue)


@lru_cache(maxsize=256)
def interval_cut(base: int, new: int, confidence: float) -> int | None:
    """How many of the sorted pairwise differences lie outside the interval at each end."""
    inside = (u for u in range(base * new // 2 + 1) if _exact_p(u, base, new) > 1 - confidence)
    cut = next(inside, base * new // 2 + 1) - 1
    return cut if cut >= 0 else None


# ---- interleaved sides ------------------------------------------------------------------------


def compare_interleaved(
    base: Sequence[float], new: Sequence[float], blocks: Sequence[int], confidence: float = 0.95
) -> Ratio:
    """Two samples measured in turns; sample i of both sides belongs to the same stretch of time.

    `blocks` are the numbers of pairs in each stretch; whatever drifts between stretches cancels.
    p: aligned ranks (log time minus its block's mean), permuted exactly within the blocks.
    Interval: Walsh averages of the paired log ratios, cut as the signed-rank test inverts.
    """
    logs_base, logs_new = list(map(math.log, base)), list(map(math.log, new))
    d = [b - a for a, b in zip(logs_base, logs_new, strict=True)]
    walsh = sorted((d[i] + d[j]) / 2 for i in range(len(d)) for j in range(i, len(d)))
    estimate, of_medians = math.exp(median(walsh)), median(new) / median(base)
    if len(d) < 2:
        return Ratio(of_medians, estimate, None, None, None, "1 sample: no test")
    aligned: list[float] = []
    for start, stop in pairwise(accumulate(blocks, initial=0)):
        both = logs_base[start:stop] + logs_new[start:stop]
        centre = math.fsum(both) / len(both)
        aligned += [round(value - centre, 12) for value in both]  # ties stay ties
    p = _permutation_within(aligned, [2 * pairs for pairs in blocks])
    cut = _signed_rank_cut(len(d), confidence)
    low, high = (None, None) if cut is None else (math.exp(walsh[cut]), math.exp(walsh[-1 - cut]))
    sizes = "+".join(str(2 * pairs) for pairs in blocks)
    return Ratio(of_medians, estimate, low, high, p, f"exact permutation in blocks of {sizes}")


def drifts(rows: Sequence[Sequence[float]]) -> bool:
    """Whether the machine drifted; `rows`: per benchmark the mean log time of each pair, in order.

    Von Neumann's ratio, pooled: about 2 for independent values, near 0 under drift. A pair's mean
    does not tell its sides apart, so a decision by it leaves the permutation test exact.
    """
    steps = spreads = 0.0
    for row in rows:
        mean = math.fsum(row) / len(row)
        total = math.fsum((value - mean) ** 2 for value in row)
        if total > 0:
            steps += math.fsum((b - a) ** 2 for a, b in pairwise(row)) / total
            spreads += 1
    return spreads > 0 and steps / spreads < DRIFTING


def choose_blocks(pairs: int, threshold: float, drifting: bool) -> list[int]:
    """How to cut the run into blocks (of pairs) for the permutation test.

    Without drift one block finds most. Under drift the shortest blocks whose smallest p-value still
    lies below `threshold`: short blocks take out fast drift, long ones reach smaller p-values.
    """
    for size in range(BLOCK // 2, pairs // 2 + 1) if drifting else ():
        blocks = [size] * (pairs // size)
        for extra in range(pairs % size):
            blocks[-1 - extra % len(blocks)] += 1
        if 2 / math.prod(math.comb(2 * b, b) for b in blocks) <= threshold:
            return blocks
    return [pairs] if pairs else []


def _permutation_within(values: Sequence[float], sizes: Sequence[int], first: int = 0) -> float:
    """Exact two-sided p of the rank sum of side one, when sides are exchangeable within blocks.

    `values` holds block after block, in each side one's values before side two's; side one has
    `first` of a block's values (0: half). Counts every arrangement; ties share their mean rank.
    """
    import numpy as np
    from scipy import stats

    ranks = np.rint(2 * stats.rankdata(values)).astype(int)  # doubled: half ranks become whole
    total, observed, start = np.ones(1), 0, 0
    for size in sizes:
        block, take = ranks[start : start + size], first or size // 2
        observed += int(block[:take].sum())
        total = np.convolve(total, _sums(tuple(sorted(block.tolist())), take))
        start += size
    sums = np.arange(len(total))
    centre = float((sums * total).sum() / total.sum())
    extreme = np.abs(sums - centre) >= abs(observed - centre) - 1e-6
    return min(1.0, float(total[extreme].sum() / total.sum()))


@lru_cache(maxsize=1024)  # without ties one block has the same ranks in every benchmark
def _sums(ranks: tuple[int, ...], take: int) -> object:
    """How many subsets of `take` ranks have each sum."""
    import numpy as np

    counts = np.zeros((take + 1, int(sum(ranks)) + 1))
    counts[0, 0] = 1
    for rank in ranks:
        counts[1:, rank:] += counts[:-1, : counts.shape[1] - rank].copy()
    return counts[take]


@lru_cache(maxsize=64)
def _signed_rank_cut(pairs: int, confidence: float) -> int | None:
    """How many of the sorted Walsh averages lie outside the interval at each end."""
    from scipy import stats

    cut, top = None, pairs * (pairs + 1) // 2
    for w in range(top // 2 + 1):
        # Signed ranks whose positive sum is w: take ranks from the top while they fit.
        signs, rest = [], w
        for rank in range(pairs, 0, -1):
            signs.append(rank if rank <= rest else -rank)
            rest -= rank if rank <= rest else 0
        if stats.wilcoxon(signs, method="exact").pvalue > 1 - confidence:
            break
        cut = w
    return cut


# ---- families ---------------------------------------------------------------------------------


def adjust(p_values: Sequence[float]) -> list[float]:
    """Benjamini–Hochberg over one family of tests."""
    from scipy import stats

    return [float(p) for p in stats.false_discovery_control(p_values)] if p_values else []
