"""Results folders → histories: the cases of the field, and what people do to such folders."""

import json
import shutil
import sqlite3
import subprocess
from pathlib import Path

import numpy as np
import pytest
from documents import CASES, document, entry

from benchkit import alarms, branch, history, journal
from benchkit.errors import UserError
from benchkit.index import Index

NAME = "SGEMM/CPU/Ikj/n:64/real_time"


def load(results: Path, index: Path, **options: object) -> history.History:
    taken = Index(index / "index.sqlite")
    taken.ingest(results)
    return history.load(taken, options.pop("order", history.Order()), **options)


def night(folder: Path, day: int, seconds: float = 1e-3, **context: object) -> Path:
    """A night of three launches, as nightly.py leaves it."""
    context = {"date": f"2026-03-{day:02d}T02:00:00+00:00", "cpu_model": "c"} | context
    sha = str(context.setdefault("git_sha", f"{day:08x}"))
    place = folder / f"2026-03-{day:02d}T020000_{sha[:8]}"
    place.mkdir(parents=True)
    for launch in range(3):
        rows = [entry(NAME, seconds * (1 + launch / 1000), **{"GFLOP/s": 5.0})]
        text = json.dumps(document(rows, launch_id=f"{day}{launch}", **context))
        (place / f"CPU-{launch:03d}.json").write_text(text)
    return place


# ---- the cases --------------------------------------------------------------------------------


def test_a_night_is_a_point_not_a_commit_not_a_day_not_a_copy(tmp_path: Path) -> None:
    past = load(CASES / "H-01" / "hist", tmp_path)
    assert len(past.machines[0].nights) == 4
    assert np.isfinite(past.machines[0].series[0].value).sum() == 4
    assert "counted once" in past.warnings[0]


def test_order_is_that_of_commits(tmp_path: Path) -> None:
    results = CASES / "H-03" / "hist"
    past = load(results, tmp_path, order=branch.order_of(results))
    machine = past.machines[0]
    assert [n.sha for n in machine.nights] == ["c1", "c2", "c3", "gone9"]
    assert [n.apart for n in machine.nights] == [False, False, False, True]
    value = machine.series[0].value
    assert value[2] / value[1] == pytest.approx(1.2, abs=0.05)
    assert past.unmeasured(machine) == ["c4"]
    assert machine.last(machine.series[0]) == 2  # gone9 is not what the page calls today


def test_without_commits_order_is_by_date_and_says_so(tmp_path: Path) -> None:
    past = load(CASES / "H-03" / "hist", tmp_path)
    assert [n.sha for n in past.machines[0].nights] == ["c2", "c3", "c1", "gone9"]
    assert "order of date" in past.order and "no list of commits" in past.order


def test_a_renamed_benchmark_keeps_its_line_and_units_convert(tmp_path: Path) -> None:
    aliases = history.read_aliases(CASES / "H-05" / "aliases.json")
    past = load(CASES / "H-05" / "hist", tmp_path, aliases=aliases)
    (series,) = past.machines[0].series
    assert series.value == pytest.approx(np.full(6, 3e-4), rel=0.05)
    assert alarms.find(past, alarms.Rules()) == []


def test_without_the_map_it_is_two_series_and_no_alarm(tmp_path: Path) -> None:
    past = load(CASES / "H-05" / "hist", tmp_path)
    assert past.warnings == []
    assert len(past.machines[0].series) == 2
    assert alarms.find(past, alarms.Rules()) == []


# ---- what happens to results folders ----------------------------------------------------------


def test_ingest_is_idempotent_and_incremental(tmp_path: Path) -> None:
    results = tmp_path / "results"
    for day in (1, 2, 3):
        night(results / "m", day)
    index = Index(tmp_path / "i.sqlite")
    assert [index.ingest(results), index.ingest(results)] == [3, 0]
    night(results / "m", 4)
    assert index.ingest(results) == 1
    rebuilt = Index(tmp_path / "j.sqlite")
    rebuilt.ingest(results)
    pasts = [history.load(i, history.Order()) for i in (index, rebuilt)]
    assert (
        pasts[0].machines[0].series[0].value.tolist()
        == pasts[1].machines[0].series[0].value.tolist()
    )
    shutil.rmtree(results / "m" / "2026-03-02T020000_00000002")
    index.ingest(results)
    assert len(history.load(index, history.Order()).machines[0].nights) == 3


def test_a_night_outlives_one_of_its_files(tmp_path: Path) -> None:
    index, place = Index(tmp_path / "i.sqlite"), night(tmp_path / "r" / "m", 1)
    index.ingest(tmp_path / "r")
    (place / "CPU-002.json").unlink()
    index.ingest(tmp_path / "r")
    (found,) = history.load(index, history.Order()).machines[0].nights
    assert found.place == "m/" + place.name


def test_a_copy_takes_the_place_of_its_original(tmp_path: Path) -> None:
    index, folder = Index(tmp_path / "i.sqlite"), tmp_path / "r" / "m"
    shutil.copytree(CASES / "H-01" / "hist", folder)
    index.ingest(tmp_path / "r")
    (folder / "1_bbbb222.json").unlink()
    index.ingest(tmp_path / "r")
    assert len(history.load(index, history.Order()).machines[0].nights) == 4
    assert index.complaints() == []


def test_a_machine_that_gets_another_name_keeps_its_nights(tmp_path: Path) -> None:
    index = Index(tmp_path / "i.sqlite")
    for day in (1, 2):
        night(tmp_path / "r" / "b", day)
    index.ingest(tmp_path / "r")
    for old, new in (("b", "c"), ("c", "a")):  # behind and before its old place
        (tmp_path / "r" / old).rename(tmp_path / "r" / new)
        index.ingest(tmp_path / "r")
        (machine,) = history.load(index, history.Order()).machines
        assert machine.name == new and np.isfinite(machine.series[0].value).all()
        assert index.complaints() == []


@pytest.mark.parametrize(
    ("named", "place"), [("{night}-{file}", "{night}"), ("{night}_2t_{launch}.json", "{night}_2t")]
)
def test_files_named_after_one_night_are_its_launches(
    tmp_path: Path, named: str, place: str
) -> None:
    folder = tmp_path / "r" / "m"
    for day in (1, 2):
        for launch, file in enumerate(night(tmp_path / "made", day).glob("*.json")):
            folder.mkdir(parents=True, exist_ok=True)
            facts = {"night": f"2026-03-0{day}_0000000{day}", "file": file.name}
            file.rename(folder / named.format(**facts, launch=launch))
    past = load(tmp_path / "r", tmp_path)
    assert [n.place for n in past.machines[0].nights] == [
        "m/" + place.format(night=night) for night in ("2026-03-01_00000001", "2026-03-02_00000002")
    ]
    assert past.machines[0].series[0].value == pytest.approx([1.001e-3, 1.001e-3])


def test_numbered_files_in_a_dated_folder_are_launches_of_its_machine(tmp_path: Path) -> None:
    """As compare.py --keep and shell loops leave them."""
    (made,) = [night(tmp_path / "made", 1)]
    folder = tmp_path / "r" / "m" / "2026-03-01_study"
    for stem in ("1t_BLIS_", "1t_MKL_", "again/launch-"):
        for launch in (1, 2, 3):
            file = folder / f"{stem}{launch:02d}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            context = {"launch_id": f"{stem}{launch}", "date": "2026-03-01T02:00:00+00:00"}
            file.write_text(json.dumps(document([entry(NAME, 1e-3)], **context)))
    (folder / "alone.json").write_bytes((made / "CPU-000.json").read_bytes())
    (machine,) = load(tmp_path / "r", tmp_path).machines
    assert machine.name == "m"
    places = {n.place.removeprefix("m/2026-03-01_study/") for n in machine.nights}
    assert places == {"1t_BLIS", "1t_MKL", "again/launch", "alone.json"}


def test_half_written_files_and_strangers_are_named_and_the_rest_stands(tmp_path: Path) -> None:
    results = tmp_path / "results"
    place = night(results / "m", 1)
    (place / "CPU-003.json").write_text('{"context": {}, "benchmarks": [')
    (results / "m" / "notes.json").write_text('{"a": 1}')
    (results / "m" / "empty.json").write_text("")
    unfinished = night(results / "m", 2)
    unfinished.rename(unfinished.with_name(unfinished.name + ".partial"))
    past = load(results, tmp_path)
    assert len(past.machines[0].nights) == 1
    said = "\n".join(past.warnings)
    assert "truncated after 0" in said and "not Google Benchmark output" in said
    assert "empty result" in said


def test_a_truncated_launch_is_marked_for_ever(tmp_path: Path) -> None:
    shutil.copytree(CASES / "J-03", tmp_path / "results" / "m")
    past = load(tmp_path / "results", tmp_path)
    assert past.machines[0].nights[0].state == "partial run"
    assert len(past.machines[0].series) == 2  # five repetitions each
    assert "PARTIAL RUN" in past.warnings[0]


def test_zero_times_of_failed_rows_are_no_points(tmp_path: Path) -> None:
    shutil.copytree(CASES / "J-08", tmp_path / "results" / "m")
    past = load(tmp_path / "results", tmp_path)
    for series in past.machines[0].series:
        assert not (series.value == 0).any()
        assert bool(series.status) != bool(np.isfinite(series.value).any())


def test_clocks_in_the_future_are_noted(tmp_path: Path) -> None:
    night(tmp_path / "r" / "m", 1, date="2199-01-01T00:00:00+00:00")
    night(tmp_path / "r" / "m", 2)
    (machine,) = load(tmp_path / "r", tmp_path).machines
    assert [n.date[:4] for n in machine.nights] == ["2026", "2199"]
    assert "in the future" in machine.nights[1].notes[-1]
    # In order of date it would be the last night for ever; in that of commits it has its place.
    assert machine.on_branch == 1 and machine.last(machine.series[0]) == 0
    order = history.Order(["00000002" + "0" * 32, "00000001" + "0" * 32], "a list")
    (machine,) = load(tmp_path / "r", tmp_path, order=order).machines
    assert [n.date[:4] for n in machine.nights] == ["2026", "2199"] and machine.on_branch == 2


def test_dates_of_all_kinds_are_put_in_order(tmp_path: Path) -> None:
    """The hour that comes twice, no zone (taken for UTC), no date; all are shown."""
    dates = ("2026-10-25T02:30:00+01:00", "2026-10-25T02:30:00+02:00", "2026-10-25 01:00:00", "?")
    for day, date in enumerate(dates, 1):
        night(tmp_path / "r" / "m", day, date=date)
    nights = load(tmp_path / "r", tmp_path).machines[0].nights
    assert [n.date[11:16] for n in nights] == ["", "00:30", "01:00", "01:30"]
    assert nights[0].notes[-1] == "it has no date"


def test_a_night_without_rows_is_there_with_its_state(tmp_path: Path) -> None:
    place = tmp_path / "r" / "m" / "2026-03-01T020000_0000000a"
    journal.append(place, "end", sha="0000000a", state="did not build", message="syntax error")
    (place / journal.NAME).open("a").write('{"event": "la')  # killed while writing
    (found,) = load(tmp_path / "r", tmp_path).machines[0].nights
    assert (found.state, found.message) == ("did not build", "syntax error")
    assert "damaged" in found.notes[0]


def test_two_writers_at_once_leave_a_whole_index(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    for day in range(1, 15):
        night(tmp_path / "r" / "m", day)

    def write(_: int) -> None:
        Index(tmp_path / "i.sqlite").ingest(tmp_path / "r")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2)))
    past = history.load(Index(tmp_path / "i.sqlite"), history.Order())
    assert np.isfinite(past.machines[0].series[0].value).sum() == 14


def test_an_index_of_an_older_version_is_rebuilt_a_foreign_file_refused(tmp_path: Path) -> None:
    old = sqlite3.connect(tmp_path / "old.sqlite")
    old.execute("PRAGMA user_version = 1")
    old.close()
    night(tmp_path / "r" / "m", 1)
    assert Index(tmp_path / "old.sqlite").ingest(tmp_path / "r") == 1
    (tmp_path / "text").write_text("this is no database, it is a text of some length" * 9)
    with pytest.raises(UserError, match="not a usable index"):
        Index(tmp_path / "text")


def test_renames_in_a_circle_are_refused() -> None:
    with pytest.raises(UserError, match="circle"):
        history.renamed("a", {"a": "b", "b": "a"})


def test_a_shallow_clone_sets_no_night_apart(tmp_path: Path, git_commits) -> None:
    """It does not know the commits before its own, which are on the branch all the same."""
    shas, shallow = git_commits(tmp_path / "repo", 3), tmp_path / "shallow"
    clone = ["git", "clone", "-q", "--depth", "1", f"file://{tmp_path / 'repo'}", str(shallow)]
    subprocess.run(clone, check=True)
    for day, sha in zip((1, 2, 3), shas, strict=True):
        night(shallow / "results" / "m", day, git_sha=sha)
    past = load(shallow / "results", tmp_path, order=branch.order_of(shallow / "results"))
    assert [n.sha for n in past.machines[0].nights] == shas
    assert not any(n.apart for n in past.machines[0].nights)
    assert "order of date" in past.order and "shallow" in past.order


def test_order_of_a_git_repository_and_force_pushed_commits(tmp_path: Path, git_commits) -> None:
    shas = git_commits(tmp_path / "repo", 3)
    for day, sha in zip((3, 2, 1), [*shas[:2], "f" * 40], strict=True):
        night(tmp_path / "repo" / "results" / "m", day, git_sha=sha)
    order = branch.order_of(tmp_path / "repo" / "results")
    past = load(tmp_path / "repo" / "results", tmp_path, order=order)
    assert [n.sha for n in past.machines[0].nights] == [*shas[:2], "f" * 40]
    assert past.machines[0].nights[2].apart
    assert past.unmeasured(past.machines[0]) == [shas[2]]
