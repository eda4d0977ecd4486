"""The A/A floor and the noise of a comparison: planted machines that differ from themselves."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace

import jsonschema
import pytest
from documents import NAME, TOOLS, document, entry, launches, noisy

from benchkit import floors, noise, rendering, samples, verdicts
from benchkit.errors import UserError
from benchkit.reading import Launch

SCHEMA = json.loads((TOOLS / "benchkit/comparison.schema.json").read_text())


def recording(times: Sequence[float], session: str = "day", **context: object) -> list[Launch]:
    made = launches(list(times), **context)
    for index, launch in enumerate(made):
        launch.session, launch.index = session, index
    return made


def days(*levels: float, count: int = 20, **context: object) -> list[Launch]:
    """Recordings of one program; the machine has another level each day."""
    return [
        launch
        for day, level in enumerate(levels)
        for launch in recording(noisy(level, count, seed=day), f"day {day}", **context)
    ]


def judge(base: list[Launch], new: list[Launch], floor: list[Launch] | None, **settings: object):
    """The only verdict, and the report."""
    strict = replace(verdicts.Settings(), **settings)
    floor = floors.of(floor) if floor else None
    report = verdicts.judge(base, new, strict, ("base", "new"), floor)
    return report.verdicts[0], report


RESTLESS = days(1e-3, 1.05e-3, 0.97e-3)  # differs from itself by up to 8 %
BASE = launches(noisy(seed=11))


# ---- what a floor does to a word ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "without", "word"),
    [
        (1.20e-3, "slower", "slower"), (0.8e-3, "faster", "faster"),
        (1.05e-3, "slower", "unclear"), (0.95e-3, "faster", "unclear"),
        (1.001e-3, "same", "same"),
    ],
)  # fmt: skip
def test_a_change_no_larger_than_the_machines_own_is_not_confirmed(
    level: float, without: str, word: str
) -> None:
    new = launches(noisy(level, seed=12))
    assert judge(BASE, new, None)[0].word == without
    verdict, report = judge(BASE, new, RESTLESS)
    assert verdict.word == word and 0.07 < verdict.floor < 0.10
    assert verdict.held_back == (without if word != without else "")
    assert report.exit_code() == (1 if word == "slower" else 0)


def test_what_is_held_back_is_never_silent() -> None:
    verdict, report = judge(BASE, launches(noisy(1.05e-3, seed=12)), RESTLESS)
    assert "would be slower (+4.8 %" in verdict.reason and "A/A floor" in verdict.reason
    assert any("1 unclear by the A/A floor alone: 1 would be slower" in w for w in report.warnings)
    assert report.exit_code(("unclear",)) == 1
    note = rendering.annotations(report, report.verdicts, verdicts.FAIL_ON)
    assert "::warning" in note and "would be slower" in note


def test_same_stays_and_is_marked_by_a_floor_wider_than_the_margin() -> None:
    new = launches(noisy(1.001e-3, seed=12))
    (note,) = judge(BASE, new, RESTLESS)[0].notes
    assert "more than the margin" in note
    assert not judge(BASE, new, days(1e-3, 1e-3))[0].notes


def test_a_quiet_machine_takes_nothing_back() -> None:
    quiet = days(1e-3, 1e-3, 1e-3)
    verdict, report = judge(BASE, launches(noisy(1.03e-3, seed=12)), quiet)
    assert verdict.word == "slower" and verdict.floor < 0.02 and report.floor == 20


def test_the_counters_of_a_benchmark_are_held_back_with_it() -> None:
    def rate(made: list[Launch]) -> list[Launch]:
        for launch in made:
            launch.rows[0].counters["GFLOP/s"] = 1 / launch.rows[0].seconds
        return made

    sides = rate(launches(noisy(seed=1))), rate(launches(noisy(1.05e-3, seed=2)))
    verdict, _ = judge(*sides, rate(days(1e-3, 1.05e-3, 0.97e-3)))
    assert [o.word for o in verdict.others] == [verdict.word] == ["unclear"]
    assert verdict.others[0].held_back == "slower"


# ---- as the comparison was measured -------------------------------------------------------------


def test_sides_in_turns_have_the_floor_of_turns() -> None:
    """A machine that gets slower all the time: turns do not see it, halves do."""
    slope = [level * (1 + 0.01 * i) for i, level in enumerate(noisy(count=20, spread=0.002))]
    floor = floors.of(recording(slope))
    turns, halves = (floors.reaches(floor, "time", verdicts.Settings(), t) for t in (True, False))
    assert turns[NAME] < 0.015 and halves[NAME] > 0.08


def test_recordings_of_several_commits_are_compared_each_with_itself() -> None:
    floor = days(1e-3, git_sha="a") + [
        replace(launch, session="later") for launch in days(2e-3, git_sha="b")
    ]
    reach = floors.reaches(floors.of(floor), "time", verdicts.Settings(), False)
    assert reach[NAME] < 0.02


@pytest.mark.parametrize(
    ("floor", "sentence"),
    [
        (days(1e-3, git_sha="a") + days(1e-3, git_sha="b"), "different commits .*one program"),
        (days(1e-3, count=7), "no recording of 8 launches .*--keep DIR"),
    ],
)
def test_what_is_no_floor(floor: list[Launch], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        floors.of(floor)


def test_a_floor_that_falls_short_says_so() -> None:
    sides = BASE, launches(noisy(1.05e-3, seed=12))
    short = [w for w in judge(*sides, days(1e-3, count=12))[1].warnings if "floor" in w]
    assert short == [
        "the A/A floor has 6 launches a side, the comparison 10: the floor is wider than need be"
    ]
    for launch in (others := days(1e-3, 1.05e-3)):
        launch.rows[0].run_name = "another"
    verdict, report = judge(*sides, others)
    assert verdict.word == "slower" and verdict.floor is None
    assert "the A/A floor says nothing of 1 of 1 benchmarks" in report.warnings


# ---- another machine ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "word", "code"),
    [
        ("cpu_model", "slower", 3),  # no floor, and the gate says that it is none
        ("cl_device", "unclear", 3),  # this row is a CPU's: only GPU rows lose their floor
        ("compiler", "unclear", 0),  # a warning
    ],
)
def test_a_floor_of_another_machine(key: str, word: str, code: int) -> None:
    sides = [launches(noisy(level, seed=7), **{key: "A"}) for level in (1e-3, 1.05e-3)]
    floor = days(1e-3, 1.05e-3, 0.97e-3, **{key: "B"})
    verdict, report = judge(*sides, floor)
    assert (verdict.word, report.exit_code()) == (word, code)
    assert any("A/A floor: " in d.sentence and "B → A" in d.sentence for d in report.differences)
    allowed, report = judge(*sides, floor, allow_different_machine=True)
    assert (allowed.word, report.exit_code()) == ("unclear", 0)


# ---- the command line ---------------------------------------------------------------------------


@pytest.fixture
def stored(save):
    """(base, new, floor) as folders of files, NEW 5 % slower, the floor of a restless machine."""
    folders = []
    for name, levels in (("base", [1]), ("new", [1.05]), ("floor", [1, 1.05, 0.97])):
        for day, level in enumerate(levels):
            for i, seconds in enumerate(noisy(level * 1e-3, seed=len(name) + day)):
                turn = {"launch_turn": f"{name}{day}.{i}", "load_avg": [0.5 + i, 1, 1]}
                context = {"cpu_model": "x", "build_type": "Release", "mhz_per_cpu": 2000 + i}
                path = save(
                    f"{name}/{day}-{i}.json", document([entry(NAME, seconds)], **context, **turn)
                )
        folders.append(path.parent)
    return folders


def test_a_floor_is_in_every_output(compare, stored) -> None:
    base, new, floor = stored
    assert compare("benchmarks", base, new).returncode == 1
    for form in ("csv", "markdown", "junit", "html", "annotations"):
        done = compare("benchmarks", base, new, "--floor", floor, f"--{form}", "-")
        assert done.returncode == 0 and "would be slower" in done.stdout
    assert "A/A" in compare("benchmarks", base, new, "--floor", floor).stdout.splitlines()[1]
    assert NAME in compare("benchmarks", base, new, "--floor", floor, "--only-changed").stdout
    report = json.loads(compare("benchmarks", base, new, "--floor", floor, "--json", "-").stdout)
    jsonschema.validate(report, SCHEMA)
    (row,) = report["benchmarks"]
    assert row["held_back"] == "slower" and 0.05 < row["floor"] < 0.1
    assert report["floor_launches"] == 10


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("benchmarks", "base", "new", "--floor", "absent"), "absent: no such file"),
        (("benchmarks", "base", "new", "--floor", ""), "an empty name is no file"),
        (("benchmarks", "base", "new", "--floor", "base/0-1.json"), "no recording of 8 launches"),
        (("filters", "base", "Ikj", "Ikj", "--floor", "floor"), "different benchmarks"),
    ],
)
def test_floors_that_cannot_be_used(compare, stored, arguments: tuple, sentence: str) -> None:
    done = compare(*arguments)
    assert done.returncode == 2 and sentence in done.stderr


# ---- noise --------------------------------------------------------------------------------------


def test_noise_is_measured() -> None:
    rng = random.Random(1)
    times = [1e-3 * (1 + 0.02 * i) * rng.lognormvariate(0, 1e-4) for i in range(10)]
    made = launches(times, load_avg=[3.0, 1, 1], mhz_per_cpu=2000)
    made[0].context |= {"load_avg": [1.0], "mhz_per_cpu": 2600}
    found = noise.of(made, samples.collect(made).values())
    assert found.drift == pytest.approx(1.14 / 1.04 - 1, abs=0.002)
    assert found.between == pytest.approx(0.0605 / 1.09, abs=0.001) and found.within is None
    assert (found.load, found.mhz) == ((0.5, 1.5), (2000, 2600))


@pytest.mark.parametrize("context", [{}, {"load_avg": [], "mhz_per_cpu": "fast"}])
def test_noise_that_nobody_knows_is_none(context: dict) -> None:
    made = launches([1e-3, 1e-3], **context)
    assert noise.of(made, samples.collect(made).values()) == noise.Noise(between=0.0)


@pytest.mark.parametrize("form", ["terminal", "markdown", "html", "json"])
def test_noise_is_in_every_output(compare, stored, form: str) -> None:
    base, new, _ = stored
    text = compare(
        "benchmarks", base, new, *(() if form == "terminal" else (f"--{form}", "-"))
    ).stdout
    if form == "json":
        sides = json.loads(text)["noise"]
        assert sides["base"]["load"] == [0.25, 4.75] and sides["new"]["mhz"] == [2000, 2009]
        assert 0.003 < sides["base"]["between"] < 0.008 and sides["new"]["drift"] is not None
        return
    for words in (
        "median CV from launch to launch: BASE 0.", "drift from the first half",
        "load average per CPU when launches began: BASE 0.25 … 4.75, NEW 0.25 … 4.75",
        "CPU clock in MHz: BASE 2000 … 2009",
    ):  # fmt: skip
        assert words in text
    assert " ms ±0." in text  # and each row has its own


@pytest.mark.parametrize("width", [100, 160])
def test_a_screen_has_room_for_every_cell(width: int) -> None:
    report = judge(BASE, launches(noisy(1.05e-3, seed=12)), RESTLESS)[1]
    text = rendering.terminal(report, report.verdicts, width, False)
    (cells,) = (rendering.cells(v, report) for v in report.verdicts)
    text = text[: text.index("\nwarning: ")]
    assert len(lines := text.splitlines()) > 5 and max(map(len, lines)) <= width
    assert all(cell in text for one in cells[2:-1] for cell in one.split(" ±"))
    assert all(word in text for word in cells[-1].split())


def test_many_warnings_do_not_push_the_noise_out_of_the_comment() -> None:
    report = judge(BASE, BASE, None)[1]
    report.warnings += [f"warning {i}" for i in range(50)]
    text = rendering.markdown(report, report.verdicts)
    assert "noise: median CV" in text and "more warnings are in the JSON" in text
    assert "warning 49" not in text


def test_a_failed_selftest_of_the_clocks_is_said() -> None:
    failed = launches(noisy(), selftest="failed: wall/event 1.4")
    _, report = judge(BASE, failed, None)
    assert any("NEW: the clocks failed" in d.sentence for d in report.differences)
    assert report.exit_code() == 0
