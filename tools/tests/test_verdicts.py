"""Verdicts: the cases of the field, every word with its reason, the guard and the margins."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from documents import CASES, NAME, document, entry, launches, noisy

from benchkit import deciding, machines, margins, reading, verdicts
from benchkit.errors import UserError
from benchkit.reading import Launch

SETTINGS = verdicts.Settings()


def judge(base: list[Launch], new: list[Launch], **settings: object) -> verdicts.Report:
    return verdicts.judge(base, new, replace(SETTINGS, **settings), ("base", "new"))


def case(name: str, new: str = "new.json", old: str = "old.json") -> verdicts.Report:
    sides = [reading.read([CASES / name / file]) for file in (old, new)]
    return judge(*sides)


def words(report: verdicts.Report) -> dict[str, str]:
    return {verdict.key: verdict.word for verdict in report.verdicts}


# ---- the cases --------------------------------------------------------------------------------


def test_a_real_change_too_small_to_matter_is_same() -> None:  # C-01
    (verdict,) = case("C-01").verdicts
    assert verdict.word == "same" and "too small to matter" in verdict.reason
    assert verdict.ratio.of_medians == pytest.approx(1.0020, abs=1e-4)
    assert verdict.ratio.p == pytest.approx(4.7e-5, rel=0.01)


def test_one_repetition_is_no_test() -> None:  # C-03
    report = case("C-03")
    assert set(words(report).values()) == {"unclear"} and report.exit_code() == 0
    assert all("1 repetition: no test" in verdict.reason for verdict in report.verdicts)
    assert all(verdict.ratio.p is None for verdict in report.verdicts)


def test_large_but_too_few_is_shown_as_unclear() -> None:  # C-04
    (verdict,) = case("C-04").verdicts
    assert verdict.word == "unclear" and "min p 0.10" in verdict.reason
    assert "a large +49.5 %" in verdict.reason and "4 launches" in verdict.next_step


def test_units_are_converted() -> None:  # C-06
    by_word = {verdict.word: verdict for verdict in case("C-06").verdicts}
    assert by_word["same"].ratio.of_medians == pytest.approx(1, abs=1e-4)
    assert by_word["same"].ratio.p == pytest.approx(0.94, abs=0.01)
    assert by_word["slower"].ratio.of_medians == pytest.approx(1.111, abs=1e-3)


def test_what_came_and_went_is_listed() -> None:  # C-09
    report = case("C-09")
    counts = {word: report.count(word) for word in verdicts.WORDS if report.count(word)}
    assert counts == {"missing": 2, "new": 2, "same": 1}
    assert report.exit_code() == 1 and report.geomean_rows == 1
    assert any("renamed to SGEMM/ocl_basic" in note for v in report.verdicts for note in v.notes)


def test_nothing_in_common_is_not_comparable() -> None:  # C-09
    report = case("C-09", new="new_disjoint.json")
    assert report.exit_code() == 3 and report.geomean is None


def test_a_broken_benchmark_has_no_ratio() -> None:  # C-10
    report = case("C-10")
    broke = report.verdicts[0]
    assert broke.word == "broke" and broke.ratio is None and report.exit_code() == 1


def test_direction_is_per_metric() -> None:  # C-12
    (verdict,) = case("C-12").verdicts
    (counter,) = verdict.others
    assert verdict.word == counter.word == "faster" and counter.metric == "GFLOPS"
    assert verdict.ratio.of_medians == pytest.approx(0.501, abs=1e-3)
    assert counter.ratio.of_medians == pytest.approx(1.997, abs=1e-3)


def test_a_cold_start_is_no_regression() -> None:  # C-14
    (verdict,) = case("C-14").verdicts
    assert verdict.word == "same" and verdict.ratio.of_medians == pytest.approx(1, abs=2e-3)
    assert any("drift downward" in note and "warm-up" in note for note in verdict.notes)


def test_a_regression_and_its_mirror() -> None:  # C-20
    there, back = case("C-20"), case("C-20", new="old.json", old="new.json")
    assert (
        words(there) == {"SGEMM/cpu_blocked/n:256/real_time": "slower"} and there.exit_code() == 1
    )
    assert back.verdicts[0].word == "faster" and back.exit_code() == 0
    assert back.verdicts[0].ratio.of_medians == pytest.approx(0.8295, abs=1e-4)
    twice = case("C-20", new="old.json")
    assert twice.verdicts[0].ratio.of_medians == 1.0 and twice.exit_code() == 0
    assert "the same launch is on both sides" in twice.warnings


def test_aggregates_alone_are_no_test() -> None:  # J-11
    sides = [reading.read([CASES / "J-11/run.json"]) for _ in range(2)]
    for verdict in judge(*sides).verdicts:
        assert verdict.ratio.of_medians == 1.0 and verdict.ratio.p is None
        assert "aggregates only: no significance test" in verdict.reason


# ---- every word -------------------------------------------------------------------------------

BAD = [None] * 4
OK = noisy(count=8)


@pytest.mark.parametrize(
    ("base", "new", "word"),
    [
        (noisy(1e-3), noisy(1.1e-3, seed=2), "slower"),
        (noisy(1.1e-3), noisy(1e-3, seed=2), "faster"),
        (noisy(1e-3), noisy(1.001e-3, seed=2), "same"),
        (noisy(spread=0.2), noisy(spread=0.2, seed=2), "unclear"),
        (OK, BAD, "broke"),
        (OK, [*OK[:3], None], "broke"),
        (BAD, OK, "fixed"),
        (BAD, BAD, "still failing"),
    ],
)
def test_words(base: list, new: list, word: str) -> None:
    report = judge(launches(base), launches(new))
    (verdict,) = report.verdicts
    assert verdict.word == word and verdict.reason
    assert report.exit_code() == (1 if word in ("slower", "broke", "still failing") else 0)


def test_unclear_says_what_it_would_take() -> None:
    base, new = noisy(spread=0.03), noisy(spread=0.03, seed=3)
    (verdict,) = judge(launches(base), launches(new)).verdicts
    assert verdict.word == "unclear" and "more launches a side" in verdict.next_step


def test_few_launches_for_many_rows_are_said_to_be_few() -> None:
    names = [f"SGEMM/CPU/V{i}/n:64/real_time" for i in range(100)]

    def side(level: float, seed: int) -> list[Launch]:
        per_row = [launches(noisy(level, 5, seed=seed + i), name) for i, name in enumerate(names)]
        merged = [
            replace(group[0], rows=[la.rows[0] for la in group])
            for group in zip(*per_row, strict=True)
        ]
        return merged

    one_slow = side(1e-3, 500)
    for launch, slow in zip(one_slow, noisy(1.2e-3, 5, seed=9), strict=True):
        launch.rows[0].seconds = slow
    first = next(v for v in judge(side(1e-3, 1), one_slow).verdicts if v.key == names[0])
    assert first.word == "unclear" and "cannot reach α over 100 rows" in first.reason


@pytest.mark.parametrize(
    ("base", "new", "word"),
    [
        ("ok", "skipped", "missing"), ("skipped", "ok", "new"), ("skipped", "error", "broke"),
        ("skipped", "skipped", "not comparable"), ("error", "skipped", "not comparable"),
    ],
)  # fmt: skip
def test_skipped_rows(base: str, new: str, word: str) -> None:
    import json

    fields = {
        "ok": {}, "skipped": {"skipped": True, "skip_message": "no OpenCL", "real_time": 0.0},
        "error": {"error_occurred": True, "error_message": "-54", "real_time": 0.0},
    }  # fmt: skip
    texts = [
        json.dumps(document([entry(NAME, **fields[status]), entry("other")]))
        for status in (base, new)
    ]
    report = judge(*([reading.parse(text.encode())] for text in texts))
    assert words(report)[NAME] == word


def test_interleaved_launches_are_paired() -> None:
    """Under a drift far larger than the change, only the pairs can tell."""
    base, new = launches([1e-3 * (1 + 0.05 * i) for i in range(10)]), launches([
        1.05e-3 * (1 + 0.05 * i) * (1 + 0.001 * (i % 3)) for i in range(10)
    ])  # fmt: skip
    assert judge(base, new).verdicts[0].word == "unclear"
    for i in range(10):
        first, second = (base[i], new[i]) if i % 2 else (new[i], base[i])
        first.index, second.index = 2 * i, 2 * i + 1
    (verdict,) = judge(base, new).verdicts
    assert verdict.word == "slower" and "blocks" in verdict.ratio.test


def test_a_time_that_beats_the_measured_peak_is_no_verdict() -> None:
    base, new = launches(noisy(1e-3)), launches(noisy(1e-5))
    label = "suspicious: 9000 GFLOP/s is faster than the measured peak of 800"
    for count, word in ((4, "faster"), (5, "not comparable")):
        for launch in new[:count]:
            launch.rows[0].label = label
        (verdict,) = judge(base, new).verdicts
        assert verdict.word == word
    assert "NEW cannot be true: suspicious: 9000 GFLOP/s" in verdict.reason


def test_a_megabyte_of_error_text_is_cut_in_the_report() -> None:
    base, new = launches(OK), launches(BAD)
    new[0].rows[0].message = "x\n" * 500_000
    (verdict,) = judge(base, new).verdicts
    assert verdict.word == "broke" and len(verdict.reason) < 600


@pytest.mark.parametrize(("base", "new"), [(10, 12), (1, 10), (12, 8)])
def test_different_numbers_of_launches(base: int, new: int) -> None:
    sides = launches(noisy(count=base)), launches(noisy(1.3e-3, new, seed=2))
    (verdict,) = judge(*sides).verdicts
    assert (verdict.word, len(verdict.base.values)) == ("unclear" if base == 1 else "slower", base)


def test_the_geomean_is_over_common_rows_and_has_an_interval() -> None:
    def side(level: float, seed: int, names: list[str]) -> list[Launch]:
        rows = [launches(noisy(level, seed=seed + i), name) for i, name in enumerate(names)]
        return [
            replace(group[0], rows=[launch.rows[0] for launch in group])
            for group in zip(*rows, strict=True)
        ]

    report = judge(side(1e-3, 1, ["a", "b", "old"]), side(1.1e-3, 9, ["a", "b", "new"]))
    assert report.geomean_rows == 2
    assert 1.09 < report.geomean.low < 1.1 < report.geomean.high < 1.11


def test_one_giant_outlier_changes_nothing() -> None:
    new = noisy(seed=2)
    new[3] *= 1000
    (verdict,) = judge(launches(noisy()), launches(new)).verdicts
    assert verdict.word == "same" and verdict.ratio.of_medians == pytest.approx(1, abs=0.01)


def test_two_clock_states_are_noise_not_change() -> None:
    rng = random.Random(5)
    sides = [launches([rng.choice((1e-3, 1.3e-3)) for _ in range(10)]) for _ in range(2)]
    assert judge(*sides).verdicts[0].word == "unclear"


def test_the_order_of_arguments_is_a_rename() -> None:
    sides = [launches(OK, f"BM/{arguments}") for arguments in ("M:64/N:32", "N:32/M:64")]
    (missing,) = (v for v in judge(*sides).verdicts if v.word == "missing")
    assert any("renamed to BM/N:32/M:64" in note for note in missing.notes)


def test_the_same_commit_is_said_to_be_noise() -> None:
    sides = [launches(noisy(seed=s), git_sha="abc", git_dirty="false") for s in (1, 2)]
    assert any("same commit" in warning for warning in judge(*sides).warnings)
    other = launches(noisy(seed=3), git_sha="def", git_dirty="false")
    assert not any("same commit" in warning for warning in judge(sides[0], other).warnings)


@pytest.mark.parametrize(
    ("metric", "higher"),
    [
        ("time", False), ("GFLOP/s", True), ("GFLOPS", True), ("GB/s", True), ("GBps", True),
        ("% of roof", True), ("pct_peak", True), ("items_per_second", True),
        ("max_bytes_used", False), ("FLOP/byte", None), ("wg", None),
    ],
)  # fmt: skip
def test_which_way_a_metric_is_better(metric: str, higher: bool | None) -> None:
    assert deciding.higher_is_better(metric) is higher


# ---- guard ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "old", "new", "level"),
    [
        ("cpu_model", "A", "B", "refuse"), ("build_type", "Release", "Debug", "refuse"),
        ("cl_device", "H200", "PoCL", "refuse"), ("threads", "2", "4", "refuse"),
        ("batch", "1", "20", "refuse"),
        ("compiler", "gcc 12", "gcc 13", "warn"), ("cl_driver", "1", "2", "warn"),
        ("library_build_type", "debug", "release", "warn"),
        ("cpu_scaling_enabled", True, False, "warn"),
    ],
)  # fmt: skip
def test_guard(key: str, old: object, new: object, level: str) -> None:
    base, other = launches(OK, **{key: old}), launches(OK, **{key: new})
    found = [d for d in machines.guard(base, other) if d.key == key]
    assert found[0].level == level and str(old).lower() in found[0].sentence.lower()
    report = judge(base, other)
    concerned = level == "refuse"
    assert report.exit_code() == (3 if concerned else 0)
    assert judge(base, other, allow_different_machine=True).exit_code() == 0
    cpu_row_refused = concerned and not key.startswith("cl_") and key != "batch"
    assert (report.verdicts[0].word == "not comparable") == cpu_row_refused


def test_threaded_rows_across_the_change_of_meaning() -> None:
    old, new = launches(OK, library_version="v1.8.4"), launches(OK, library_version="v1.9.0")
    assert judge(old, new).verdicts[0].word != "not comparable"
    for launch in (*old, *new):
        launch.rows[0].threads = 4
    assert judge(old, new).verdicts[0].word == "not comparable"


# ---- margins ----------------------------------------------------------------------------------


def test_default_margins() -> None:
    rules = margins.defaults()
    for name, expected in ((NAME, 0.02), ("SGEMM/GPU/Row/n:8/manual_time", 0.03)):
        assert margins.margin(rules, name, "time") == expected


def test_margin_files(save) -> None:
    path = save("m.toml", '[[margin]]\nbenchmarks = "Ikj"\npercent = 50\nmetric = "time"\n')
    rules = (*margins.defaults(), *margins.read(str(path)))
    report = judge(launches(noisy(1e-3)), launches(noisy(1.2e-3)), rules=rules)
    assert report.verdicts[0].word == "same"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[[margin]]\nbenchmark = 'x'\npercent = 1", r"\[\[margin\]\] 1: unknown key 'benchmark'"),
        ("[[margin]]\nbenchmarks = 'x'", "'percent' is missing"),
        ("[[margin]]\nbenchmarks = '('\npercent = 1", "not a regular expression"),
        ("[[margin]]\nbenchmarks = 'x'\npercent = -1", "between 0 and 100"),
        ("[[margin]]\nbenchmarks = 'x'\npercent = true", "between 0 and 100"),
        ("margins = 1", "unknown key 'margins'"),
        ("", "no .*margin"),
        ("x = ", "not valid TOML"),
    ],
)
def test_margin_files_are_strict(save, text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        margins.read(str(save("m.toml", text)))


def test_missing_margin_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        margins.read(str(tmp_path / "absent.toml"))
