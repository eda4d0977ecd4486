"""The statistics against scipy, against known values, and against each other."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from benchkit import statistics

RNG = np.random.default_rng(7)


def sample(size: int, scale: float = 1.0) -> list[float]:
    return list(scale * RNG.lognormal(0, 0.02, size))


@pytest.mark.parametrize("n", [2, 3, 5, 8, 10, 15])
def test_p_is_scipys_exact_p(n: int) -> None:
    base, new = sample(n), sample(n + 1, 1.01)
    expected = stats.mannwhitneyu(base, new, method="exact").pvalue
    assert statistics.compare(base, new).p == pytest.approx(expected, rel=1e-12)
    blocks = statistics._permutation_within([*base, *new], [2 * n + 1], n)
    assert blocks == pytest.approx(expected, rel=1e-12)


def test_tied_p_is_scipys_tie_corrected_p() -> None:
    base, new = [1.0, 1.0, 1.01, 1.02] * 3, [1.01, 1.01, 1.02, 1.02] * 3
    expected = stats.mannwhitneyu(base, new, method="asymptotic").pvalue
    assert statistics.compare(base, new).p == pytest.approx(expected, rel=1e-12)


def test_few_tied_values_are_permuted_exactly() -> None:
    base, new = [1.0, 2.0, 2.0, 3.0], [2.0, 3.0, 3.0, 4.0, 4.0]
    ranks = stats.rankdata([*base, *new])
    centre = ranks.mean() * len(base)
    expected = stats.permutation_test(
        (ranks[:4], ranks[4:]),
        lambda a, _: abs(a.sum() - centre),
        n_resamples=np.inf,
        alternative="greater",
        vectorized=False,
    ).pvalue
    assert statistics.compare(base, new).p == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("n", "p"), [(3, 0.10), (4, 0.029), (5, 0.0079), (6, 0.0022), (8, 0.00016), (10, 1.1e-5)]
)
def test_smallest_p(n: int, p: float) -> None:
    assert statistics.smallest_p(n, n) == pytest.approx(p, rel=0.05)
    apart = statistics.compare(range(1, n + 1), range(100, 100 + n))
    assert apart.p == pytest.approx(statistics.smallest_p(n, n), rel=1e-12)


def test_launches_needed_grow_with_the_family() -> None:
    assert [statistics.launches_needed(rows, 0.05) for rows in (1, 100, 400)] == [4, 8, 9]


def test_interval_and_test_agree() -> None:
    """The interval excludes 1 exactly when the test rejects at the same level."""
    for _ in range(200):
        result = statistics.compare(sample(9), sample(8, 1.02))
        assert (result.p <= 0.05) == (not result.low <= 1 <= result.high)


def test_swapping_the_sides_inverts_the_ratio() -> None:
    base, new = sample(10), sample(10, 1.2)
    there, back = statistics.compare(base, new), statistics.compare(new, base)
    assert there.p == back.p
    assert there.estimate == pytest.approx(1 / back.estimate)
    assert there.low == pytest.approx(1 / back.high)


def test_interleaved_interval_inverts_the_signed_rank_test() -> None:
    for _ in range(100):
        base, new = sample(10), sample(10, 1.01)
        result = statistics.compare_interleaved(base, new, [2] * 5)
        p = stats.wilcoxon(np.log(new) - np.log(base), method="exact").pvalue
        assert (p <= 0.05) == (not result.low <= 1 <= result.high)


def test_interleaving_sees_through_drift() -> None:
    """A 3 % change under a 30 % drift: pairs see it, independent samples cannot."""
    drift = np.repeat(np.linspace(1, 1.3, 5), 2)
    base, new = drift * sample(10), drift * 1.05 * np.array(sample(10))
    paired = statistics.compare_interleaved(base, new, [2] * 5)
    assert paired.p < 0.05 < statistics.compare(base, new).p
    assert paired.high - paired.low < 0.1


def test_blocks_are_as_short_as_the_threshold_allows() -> None:
    for family in (1, 40, 100, 400):
        for drifting in (False, True):
            blocks = statistics.choose_blocks(10, 0.05 / family, drifting)
            smallest = 2 / math.prod(math.comb(2 * b, b) for b in blocks)
            assert sum(blocks) == 10 and smallest <= 0.05 / family
    assert statistics.choose_blocks(10, 0.05 / 40, False) == [10]
    assert statistics.choose_blocks(10, 0.05 / 40, True) == [2] * 5
    assert statistics.choose_blocks(3, 0.05 / 400, True) == [3]


def test_drift_is_noticed_and_noise_is_not() -> None:
    noise = [list(RNG.normal(size=10)) for _ in range(40)]
    assert not statistics.drifts(noise) and not statistics.drifts([])
    assert statistics.drifts([[3 * i + value for i, value in enumerate(row)] for row in noise])


def test_warm_up_is_a_falling_start_and_nothing_else() -> None:
    assert statistics.warm_up([1980, 1710, 1430, 1260, 1204, 1201, 1199, 1202, 1200, 1203]) == 4
    assert statistics.warm_up([1200, 1201, 1199, 1202, 1200, 1203]) == 0
    assert statistics.warm_up([1500, 1200, 1201, 1199]) == 0  # one outlier is no warm-up
    assert statistics.warm_up([]) == 0


def test_adjusted_p_values_are_ordered_as_the_raw_ones() -> None:
    raw = sorted(RNG.uniform(size=50))
    adjusted = statistics.adjust(raw)
    assert all(a <= b for a, b in pairwise(adjusted))
    assert all(a >= p for a, p in zip(adjusted, raw, strict=True))
    assert statistics.adjust([]) == []


def test_identical_values_are_no_evidence() -> None:
    assert statistics.compare([1.0] * 10, [1.0] * 10).p == 1.0
    assert statistics.compare_interleaved([1.0] * 10, [1.0] * 10, [2] * 5).p == 1.0
