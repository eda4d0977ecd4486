"""Steps and alarms: the outcomes of case H-08, the error rates, states, causes."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import simulate_alarms
from documents import CASES

from benchkit import alarms, branch, history, names, steps
from benchkit.errors import UserError

SERIES = json.loads((CASES / "H-08" / "series.json").read_text())


@pytest.mark.parametrize("name", sorted(SERIES))
def test_outcome_of_every_named_series(name: str) -> None:
    found = steps.find(SERIES[name], 0.02)
    if name == "step":
        (step,) = found
        assert (step.index, step.confirmed) == (12, True)
        assert step.ratio == pytest.approx(1.15, abs=0.01)
    else:
        assert found == []
    assert (steps.drift(SERIES["drift"], 0.02) or 0) == pytest.approx(1.11, abs=0.02)


def test_error_rates() -> None:
    counts = simulate_alarms.measure(25, simulate_alarms.ours, seed=7)
    assert counts["noise (normal)"] <= 1
    assert counts["two one-night spikes of 8 sigma"] <= 2
    assert counts["step of 3 sigma found"] >= 24


def test_a_step_waits_for_three_nights() -> None:
    rng = np.random.default_rng(3)
    level = list(1e-3 * np.exp(rng.normal(0, 0.004, 30)))
    seen = [steps.find(level + [1.2e-3] * nights, 0.02) for nights in (1, 2, 3)]
    assert [[s.confirmed for s in found] for found in seen] == [[False], [False], [True]]
    assert {found[0].index for found in seen} == {30}


def test_a_change_below_the_margin_is_none() -> None:
    values = [1.0] * 20 + [1.015] * 20
    assert steps.find(values, 0.02) == []
    assert len(steps.find(values, 0.01)) == 1


# ---- alarms of a history ----------------------------------------------------------------------

CPU, GPU, FMA = (
    "SGEMM/CPU/Ikj/n:64/real_time",
    "SGEMM/GPU/Naive/n:64/manual_time",
    "Peak/CPU/Fma/real_time",
)


def past(
    levels: dict[str, list[float]], contexts: dict[int, dict] | None = None, noise: float = 0.003
) -> history.History:
    """A history of one machine; a context holds from its night on."""
    rng = np.random.default_rng(5)
    count = len(next(iter(levels.values())))
    context, nights = {"cpu_model": "c", "cl_driver": "1"}, []
    for i in range(count):
        context = context | (contexts or {}).get(i, {})
        nights.append(
            history.Night(
                i, "m", str(i), f"2026-01-{i + 1:02d}", f"{i:08x}", "complete", "", context, [], i
            )
        )
    series = [
        history.Series("m", name, names.parse(name), [j], *[value] * 3, 1 / value, value * np.nan)
        for j, (name, level) in enumerate(levels.items())
        for value in [np.array(level) * np.exp(rng.normal(0, noise, count))]
    ]
    return history.History([history.Machine("m", nights, series)], "", [], [n.sha for n in nights])


def level(*parts: tuple[int, float]) -> list[float]:
    return [value for count, value in parts for _ in range(count)]


def find(*args: object, **rules: object) -> list[alarms.Alarm]:
    return alarms.find(past(*args), alarms.Rules(**rules))


def test_a_confirmed_slow_down_of_the_code_is_a_regression() -> None:
    (alarm,) = find({CPU: level((20, 1), (5, 1.2)), FMA: level((25, 1))})
    assert (alarm.state, alarm.cause, alarm.night, alarm.regression) == (
        "confirmed",
        "code",
        20,
        True,
    )


def test_a_weak_step_among_many_series_waits_until_it_is_sure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Benjamini–Hochberg over the series of the night: alone, among many, with others."""

    def states(count: int, stepped: int, p: float = 2e-5) -> list[tuple[str, str]]:
        made = {f"SGEMM/CPU/Variant/n:{i}/real_time": level((25, 1)) for i in range(count)}
        steps_of = iter([[steps.Step(20, 1.0, 1.1, True, p)]] * stepped + [[]] * count)
        monkeypatch.setattr(alarms, "_search", lambda *_: next(steps_of))
        return [(alarm.state, alarm.why) for alarm in find(made)]

    assert states(1, 1) == [("confirmed", "")]
    assert states(300, 1) == [("provisional", "not yet sure among 300 series (p 0.006)")]
    assert states(300, 1, 1e-6) == [("confirmed", "")]
    assert states(300, 30) == [("confirmed", "")] * 30


def test_nights_that_remember_the_one_before_make_a_step_less_sure() -> None:
    rng = np.random.default_rng(2)
    shocks = rng.normal(0, 0.02, 60)
    wandering = [0.0]
    for shock in shocks:
        wandering.append(0.7 * wandering[-1] + shock)
    old, new = np.array(wandering[1:41]), np.array(wandering[41:]) + 0.1
    shuffled = rng.permutation(old), rng.permutation(new)
    assert steps._chance((old, new), 0.1, 0.02, 1) > 100 * steps._chance(shuffled, 0.1, 0.02, 1)


def test_what_was_over_before_it_was_sure_is_no_alarm() -> None:
    found = find({CPU: level((20, 1), (3, 1.06), (20, 1))}, None, 0.015)
    assert found == []
    assert len(find({CPU: level((20, 1), (3, 1.3), (20, 1))}, None, 0.015)) == 2


def test_faster_is_no_regression() -> None:
    (alarm,) = find({CPU: level((20, 1), (5, 0.8))})
    assert alarm.state == "confirmed" and not alarm.regression


def test_when_the_reference_moves_it_is_the_machine() -> None:
    found = find({CPU: level((20, 1), (5, 1.2)), FMA: level((20, 1), (5, 1.2))})
    assert [alarm.cause for alarm in found] == ["machine", "machine"]
    assert any(f"{FMA} moved" in alarm.why for alarm in found)
    assert not any(alarm.regression for alarm in found)


def test_a_reference_of_the_other_side_explains_nothing() -> None:
    found = find({GPU: level((20, 1), (5, 1.2)), FMA: level((20, 1), (5, 1.2))})
    assert {a.series: a.cause for a in found}[GPU] == "code"


def test_a_step_taken_back_is_resolved() -> None:
    found = find({CPU: level((15, 1), (5, 1.2), (5, 1))})
    assert {(a.night, a.state) for a in found} == {(15, "resolved"), (20, "confirmed")}
    assert not any(alarm.regression for alarm in found)


def test_a_driver_change_starts_a_new_segment_for_gpu_rows_only() -> None:
    levels = {name: level((15, 1), (10, 1.3)) for name in (CPU, GPU)}
    assert [a.series for a in find(levels, {15: {"cl_driver": "2"}})] == [CPU]


def test_what_else_changed_stands_beside_the_step() -> None:
    (alarm,) = find({CPU: level((15, 1), (10, 1.3))}, {15: {"compiler": "b"}, 0: {"compiler": "a"}})
    assert alarm.changed == ["compiler: a → b"]


def test_commits_and_files_between_the_nights_stand_beside_the_step(
    tmp_path: Path, git_commits
) -> None:
    repo = tmp_path / "repo"
    shas = git_commits(repo, 2)
    (repo / "kernels").mkdir()
    for name in ("kernels/tile.cl", "README.md"):
        (repo / name).write_text("changed")
    git = ["git", "-C", str(repo), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "Tile differently"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    shas.append(head.stdout.strip())
    history_ = past({CPU: level((15, 1), (10, 1.3))})
    for i, night in enumerate(history_.machines[0].nights):
        night.sha = shas[0] if i < 15 else shas[2]
    between = branch.Between(repo)
    (alarm,) = alarms.find(history_, alarms.Rules(), between)
    assert alarm.changed == [
        f"commit {shas[2][:7]} Tile differently",
        f"commit {shas[1][:7]} 1",
        "files: kernels/tile.cl",
    ]
    assert between.commits(shas[0], "0" * 40) == between.files(shas[0], "0" * 40) == ()
    hostile = f"--output={tmp_path / 'written'}"
    assert between.commits(hostile, shas[1]) == between.files(hostile, shas[1]) == ()
    assert not list(tmp_path.glob("written*"))
    assert branch.Between(tmp_path).commits(*shas[:2]) == ()  # no repository


def test_acknowledged_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "acknowledged.toml"
    file.write_text('[[acknowledged]]\nbenchmarks = "Ikj"\ncommit = "0000000f"\nreason = "safer"\n')
    known = alarms.read_acknowledgements(file)
    (alarm,) = find({CPU: level((15, 1), (10, 1.3))}, None, known=known)
    assert (alarm.state, alarm.why, alarm.regression) == ("acknowledged", "safer", False)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1", "unknown key 'x'"),
        ('[[acknowledged]]\nbenchmarks = "("\ncommit = "1"\nreason = "r"', "regular expression"),
        ('[[acknowledged]]\nbenchmarks = "a"\ncommit = "1"', "'reason' is missing"),
        ("[[acknowledged", "TOML"),
    ],
)
def test_bad_acknowledgements_are_named(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(UserError, match=complaint):
        alarms.read_acknowledgements(tmp_path / "a.toml")
