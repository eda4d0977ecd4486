"""dashboard.py as a user runs it: what it writes, what it leaves alone, what it refuses."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import synthesise
from documents import CASES, TOOLS, document, entry

from benchkit import alarms, history
from benchkit.index import Index
from benchkit.site import data, pages


@pytest.fixture
def dashboard(tmp_path: Path):
    """Runs dashboard.py; gives the finished process, which never shows a traceback."""

    def run(*arguments: object) -> subprocess.CompletedProcess:
        command = [
            sys.executable,
            TOOLS / "dashboard.py",
            *arguments,
            "--index",
            tmp_path / "i.sqlite",
        ]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr and "internal error" not in done.stderr
        return done

    return run


def overview(site: Path) -> dict:
    text = (site / "index.html").read_text()
    return json.loads(re.search(r'id="overview">(.*?)</script>', text)[1])


def test_one_file_that_asks_nobody_for_anything(dashboard, tmp_path: Path) -> None:
    assert dashboard(CASES / "H-01" / "hist", "-o", tmp_path / "site").returncode == 0
    assert [file.name for file in (tmp_path / "site").iterdir()] == ["index.html"]
    page = (tmp_path / "site" / "index.html").read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert re.findall(r"(?:src|href)=.?(?:https?:)?//", page) == []
    assert len(overview(tmp_path / "site")["machines"][0]["nights"]) == 4


def test_the_case_of_commits(dashboard, tmp_path: Path) -> None:
    dashboard(CASES / "H-03" / "hist", "-o", tmp_path / "site")
    (machine,) = overview(tmp_path / "site")["machines"]
    assert [n["sha"] for n in machine["nights"]] == ["c1", "c2", "c3", "gone9"]
    assert machine["nights"][3]["apart"] and machine["unmeasured"] == ["c4"]


def test_the_case_of_renames(dashboard, tmp_path: Path) -> None:
    dashboard(CASES / "H-05" / "hist", "-o", tmp_path / "site")
    (series,) = overview(tmp_path / "site")["machines"][0]["series"]
    assert series["formerly"] == ["SGEMM/ocl_naive/n:256/manual_time"]
    shutil.copytree(CASES / "H-05" / "hist", tmp_path / "elsewhere")
    dashboard(tmp_path / "elsewhere", "-o", tmp_path / "site2")
    assert [s["state"] for s in overview(tmp_path / "site2")["machines"][0]["series"]] == [
        "new",
        "stale",
    ]


def test_nothing_is_written_again_and_a_night_writes_its_machine(dashboard, tmp_path: Path) -> None:
    synthesise.write_results(tmp_path / "r", 12, 12, machines=2)
    later = tmp_path / "r" / "SYNTHETIC-2" / "2026-01-12T020000_"
    (night,) = later.parent.glob(later.name + "*")
    night.rename(tmp_path / night.name)
    dashboard(tmp_path / "r", "-o", tmp_path / "site")
    assert "0 files written" in dashboard(tmp_path / "r", "-o", tmp_path / "site").stderr
    (tmp_path / night.name).rename(night)
    assert "1 files written" in dashboard(tmp_path / "r", "-o", tmp_path / "site").stderr


def test_points_of_the_roofline_are_judged_as_in_the_reports(dashboard, tmp_path: Path) -> None:
    roofs = {"Fma/n:1": {"GFLOP/s": 60000.0}, "Copy/n:9": {"GB/s": 4000.0}}
    roofs |= {"Copy/n:1": {"GB/s": 9000.0}, "LocalMemory/n:1": {"GB/s": 30000.0}}
    rows = [entry(f"Peak/GPU/{name}/manual_time") | rate for name, rate in roofs.items()]
    times = {"Tile16": 0.2e-3, "Tuned": 2 * 1024**3 / 90e12, "Tile16/EndToEnd": 0.5e-3}
    rows += [entry(f"SGEMM/GPU/{name}/n:1024/manual_time", t) for name, t in times.items()]
    rows[-2]["% of roof"] = 100 * 90 / 683  # of memory alone: the program knew the kernel
    (tmp_path / "r" / "m").mkdir(parents=True)
    (tmp_path / "r" / "m" / "one.json").write_text(json.dumps(document(rows)))
    dashboard(tmp_path / "r", "-o", tmp_path / "site")
    (machine,) = overview(tmp_path / "site")["machines"]
    assert machine["roofs"] == {"GPU": {"flops": 6e13, "levels": {"Copy": 4e12}, "local": 3e13}}
    points = {s["variant"]: s["point"] for s in machine["series"] if "point" in s}
    assert points["Tuned"]["bound"] == "matrix units" and points["Tuned"]["percent"] is None
    assert points["Tile16"]["percent"] == pytest.approx(100 * 2 * 1024**3 / 0.2e-3 / 6e13, rel=1e-4)
    assert points.keys() == {"Tuned", "Tile16"} and points["Tile16"]["bound"] == "compute"


def test_rows_that_fail_make_the_exit_code(dashboard, tmp_path: Path) -> None:
    done = dashboard(CASES / "J-08", "-o", tmp_path / "site")
    assert done.returncode == 1
    assert any(
        s["state"] == "failing" for s in overview(tmp_path / "site")["machines"][0]["series"]
    )


@pytest.mark.parametrize(
    "case", ["J-01", "J-03", "J-05", "J-09", "J-11", "J-13", "J-15", "J-16", "J-19", "J-22"]
)
def test_files_from_the_field_are_shown_or_named_and_the_page_is_standard_json(
    dashboard, tmp_path: Path, case: str
) -> None:
    done = dashboard(CASES / case, "-o", tmp_path / "site", "--exports", tmp_path / "x")
    assert done.returncode in (0, 1)
    assert not re.search(r"[:,\[](NaN|-?Infinity)", (tmp_path / "site" / "index.html").read_text())
    assert overview(tmp_path / "site")["machines"] or "warning:" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nowhere", "-o", "site"], "no such folder"),
        (["r", "-o", "r"], "a folder of its own"),
        (["r", "-o", "full"], "nothing is overwritten"),
        (["r", "-o", "site", "--commits-file", "none"], "cannot be read"),
        (["r", "-o", "site", "--aliases", "none"], "no such file"),
        (["r", "-o", "site", "--reference", "("], "not a regular expression"),
    ],
)
def test_bad_usage(
    dashboard, tmp_path: Path, monkeypatch, arguments: list[str], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    done = dashboard(*arguments)
    assert done.returncode == 2 and complaint in done.stderr
    assert (tmp_path / "full" / "thesis.txt").exists()


def test_a_split_site_replaces_what_changed_and_removes_what_is_old(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(pages, "ONE_FILE", 0)
    index = Index(tmp_path / "i.sqlite")
    synthesise.fill(index, 12, 6, 2)

    def build() -> list[str]:
        past = history.load(index, history.Order())
        return pages.build(
            index, past, alarms.find(past, alarms.Rules()), alarms.Rules(), tmp_path / "s"
        )

    assert len(build()) == 2 * 12 + 2 * 6 + 1
    assert build() == []
    index.db.execute("DELETE FROM point WHERE night=12")
    index.db.execute("DELETE FROM night WHERE place='SYNTHETIC-1/11'")
    written = build()
    assert len(written) == 6 + 1 and all("/0-" in name for name in written[:-1])
    assert len(list((tmp_path / "s" / "data").rglob("*.js"))) == 2 * 12 - 1 + 2 * 6


def test_noise_is_that_of_nights_and_of_launches(tmp_path: Path) -> None:
    """The synthetic world has a sigma of 0.6 % from night to night, 0.4 % from launch to launch."""
    index = Index(tmp_path / "i.sqlite")
    synthesise.fill(index, 200, 6, 1)
    (machine,) = history.load(index, history.Order()).machines
    noise = [data.series(index, machine, one, False)["noise"] for one in machine.series]
    nights, launches = np.median(noise, axis=0)
    assert nights == pytest.approx(0.006, rel=0.25) and launches == pytest.approx(0.004, rel=0.25)


def test_numbers_are_rounded_to_digits_and_never_nan() -> None:
    values = np.array([1.23456789e-9, 0.0, np.nan, np.inf, 9.99999999e300])
    assert data.numbers(values, 4) == [1.235e-9, 0.0, None, None, pytest.approx(1e301)]


@pytest.mark.slow
def test_a_year_of_three_machines_keeps_its_first_page_small(tmp_path: Path) -> None:
    index = Index(tmp_path / "i.sqlite")
    synthesise.fill(index, 365, 400, 3)
    past = history.load(index, history.Order())
    found = alarms.find(past, alarms.Rules(), None, index)
    pages.build(index, past, found, alarms.Rules(), tmp_path / "site")
    assert (tmp_path / "site" / "index.html").stat().st_size < 5e6
