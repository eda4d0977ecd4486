"""nightly.py as a user runs it, with a program that plays Google Benchmark."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import synthesise
from documents import FAKE, TOOLS, document, entry
from scipy import stats

from benchkit import alarms, history, journal, reading, unclear
from benchkit.index import Index
from benchkit.site import pages

EXAMPLES = TOOLS.parent / "results" / "nightly"
README = (EXAMPLES / "README.md").read_text()
CONFIG = """
machine = "m"
launches = 3
[[family]]
name = "Small"
n = [64]
filter = "n:64/"
[[family]]
name = "Large"
filter = "n:256/"
"""


@pytest.fixture
def nightly(tmp_path: Path):
    """Runs nightly.py with its results under tmp_path; gives the finished process."""
    (tmp_path / "night.toml").write_text(CONFIG)
    shutil.copy(FAKE, tmp_path / "new.py")

    def run(
        *arguments: object, cwd: Path = tmp_path, **environment: str
    ) -> subprocess.CompletedProcess:
        done = subprocess.run(
            command(tmp_path, *arguments),
            capture_output=True,
            text=True,
            cwd=cwd,
            env={**os.environ, **environment},
            check=False,
        )
        assert "Traceback" not in done.stderr and "internal error" not in done.stderr
        return done

    return run


def command(folder: Path, *arguments: object) -> list[str]:
    own = ["--index", folder / "index.sqlite", "--results", folder / "results"]
    return [sys.executable, str(TOOLS / "nightly.py"), *map(str, own), *map(str, arguments)]


def nights(folder: Path) -> list[Path]:
    return sorted((folder / "results" / "m").glob("*_*"))


def test_a_night(nightly, tmp_path: Path) -> None:
    done = nightly("--config", "night.toml", "--program", "new.py")
    assert done.returncode == 0, done.stderr
    (night,) = nights(tmp_path)
    assert len(list(night.glob("*.json"))) == 6
    log = journal.read(night)
    assert log.state == "complete"
    assert {event["event"] for event in log.events} >= {"before", "after"}
    assert "load" in log.notes[0]


def spread_of(night: Path, family: str) -> list[list[str]]:
    """The names of the rows in every launch of a family."""
    files = sorted(night.glob(f"{family}-*.json"))
    return [[row["name"] for row in json.loads(f.read_text())["benchmarks"]] for f in files]


def test_rows_that_are_unclear_are_measured_again_and_no_others(nightly, tmp_path: Path) -> None:
    arguments = ("--config", "night.toml", "--program", "new.py")
    (tmp_path / "night.toml").write_text("extra = 2\n" + CONFIG)
    unsteady = "SGEMM/CPU/Packed/n:256/real_time"
    for environment in ({}, {"FAKE_UNSTEADY": "Packed/n:256"}):
        assert nightly(*arguments, **environment, FAKE_NOISE="0.0001").returncode == 0
    first, second = nights(tmp_path)
    assert [len(spread_of(first, family)) for family in ("Small", "Large")] == [3, 3]
    assert len(spread_of(second, "Small")) == 3
    large = spread_of(second, "Large")
    assert [len(names) for names in large[:3]] == [2] * 3 and large[3:] == [[unsteady]] * 2
    log = journal.read(second)
    assert log.state == "complete" and log.unclear == {"Large": [unsteady]}
    assert "Large: 1 rows were unclear" in " ".join(log.notes) and unsteady in " ".join(log.notes)
    # Killed before the last launch, the night goes on with the rows that it had chosen.
    lines = (second / journal.NAME).read_text().splitlines(keepends=True)
    (second / journal.NAME).write_text("".join(line for line in lines if '"end"' not in line))
    (second / "Large-004.json").unlink()
    second.rename(second.with_name(second.name.split("_")[0] + "_unknown0.partial"))
    # Rows that moved for sure are clear; without the choice there would be nothing to measure.
    assert nightly(*arguments, FAKE_NOISE="0.0001", FAKE_SLOW="1.5").returncode == 0
    assert spread_of(nights(tmp_path)[1], "Large") == large


def test_what_is_clear_and_what_is_not() -> None:
    def night(*seconds: float, **context: object) -> list[reading.Launch]:
        documents = (document([entry("A/CPU/x/real_time", s)], **context) for s in seconds)
        return [reading.parse(json.dumps(d).encode()) for d in documents]

    past = [night(1.0, 1.001, 0.999)] * 3
    assert unclear.rows(night(0.995, 1.0, 1.005), past) == []  # inside the margin of 2 %
    assert unclear.rows(night(1.05, 1.1, 1.2), past) == []  # beyond it
    for values in ((0.9, 1.0, 1.1), (1.0, 1.01, 1.03), (0.97, 0.99, 1.0)):
        assert unclear.rows(night(*values), past) == ["A/CPU/x/real_time"]
    assert unclear.rows(night(0.9, 1.1), []) == []
    other = [night(1.0, 1.001, cpu_model="another")]
    assert unclear.rows(night(0.9, 1.1, cpu_model="this"), other) == []
    for count in (6, 9, 10, 25):
        values = [float(i) for i in range(count)]
        assert unclear._interval(values) == tuple(
            stats.quantile_test(values).confidence_interval(unclear.CONFIDENCE)
        )


def test_temperature_and_clocks_of_nvidia_gpus_are_noted(nightly, tmp_path: Path) -> None:
    """nvidia-smi speaks NVML; this one plays it."""
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(
        "#!/bin/sh\n"
        'test "$2" = --format=csv,noheader || exit 2\n'
        'test "$1" = "--query-gpu=name,driver_version,clocks.sm,clocks.mem,temperature.gpu,'
        'power.draw,pstate" || exit 2\n'
        "echo 'NVIDIA H200, 570.1, 1980 MHz, 3201 MHz, 31, 77.5 W, P0'\n"
    )
    smi.chmod(0o755)
    path = f"{smi.parent}:{os.environ['PATH']}"
    nightly("--config", "night.toml", "--program", "new.py", "--launches", "1", PATH=path)
    (night,) = nights(tmp_path)
    noted = [event["gpus"] for event in journal.read(night).events if "gpus" in event]
    assert len(noted) == 2  # before and after
    assert noted[0][0]["temperature.gpu"] == "31" and noted[0][0]["clocks.sm"] == "1980 MHz"
    assert "name NVIDIA H200, driver_version 570.1" in journal.read(night).notes[0]
    smi.write_text("#!/bin/sh\nexit 9\n")  # the driver is broken: the night is not
    done = nightly("--config", "night.toml", "--program", "new.py", "--launches", "1", PATH=path)
    assert done.returncode == 0 and len(nights(tmp_path)) == 2


def test_a_family_that_crashes_is_lost_and_the_night_is_not(nightly, tmp_path: Path) -> None:
    (tmp_path / "crash.py").write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        f"if any('n:256' in a for a in sys.argv): os.abort()\n"
        f"os.execv('{tmp_path}/new.py', sys.argv)\n"
    )
    (tmp_path / "crash.py").chmod(0o755)
    done = nightly("--config", "night.toml", "--program", "crash.py")
    assert done.returncode == 4 and "SIGABRT" in done.stderr
    (night,) = nights(tmp_path)
    assert sorted(f.name for f in night.glob("*.json")) == [f"Small-00{i}.json" for i in range(3)]
    assert "Large: 0 of 3" in journal.read(night).message


def test_no_rows_and_all_skipped_have_states_of_their_own(nightly, tmp_path: Path) -> None:
    (tmp_path / "night.toml").write_text('machine="m"\n[[family]]\nname="A"\nfilter="Nope"\n')
    assert nightly("--config", "night.toml", "--program", "new.py").returncode == 6
    row = entry("A/n:1", error_occurred=True, error_message="skipped: no device")
    skip = json.dumps(document([row]))
    (tmp_path / "skip.py").write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"out = [a for a in sys.argv if a.startswith('--benchmark_out=')][0].split('=')[1]\n"
        f"open(out, 'w').write({skip!r})\n"
    )
    (tmp_path / "skip.py").chmod(0o755)
    assert nightly("--config", "night.toml", "--program", "skip.py").returncode == 7
    assert [journal.read(night).state for night in nights(tmp_path)] == ["no rows", "all skipped"]


def test_a_launch_that_hangs_is_ended(nightly, tmp_path: Path) -> None:
    (tmp_path / "night.toml").write_text("limit = 0.5\n" + CONFIG)
    done = nightly("--config", "night.toml", "--program", "new.py", FAKE_SLEEP="60")
    assert done.returncode == 6 and "was ended after 0.5 s" in done.stderr


def test_a_killed_night_goes_on(nightly, tmp_path: Path) -> None:
    arguments = ("--config", "night.toml", "--program", "new.py")
    slow = {**os.environ, "FAKE_SLEEP": "0.4"}
    first = subprocess.Popen(
        command(tmp_path, *arguments), cwd=tmp_path, env=slow, stderr=subprocess.PIPE
    )
    wait_for(lambda: list((tmp_path / "results").rglob("Small-000.json")))
    second = nightly(*arguments)
    assert second.returncode == 3 and "another night" in second.stderr
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    (left,) = nights(tmp_path)
    assert left.name.endswith(".partial")
    kept = (left / "Small-000.json").read_bytes()
    assert nightly(*arguments).returncode == 0
    (night,) = nights(tmp_path)
    assert (night / "Small-000.json").read_bytes() == kept
    assert len(list(night.glob("*.json"))) == 6 and not list(night.glob("*.partial"))


def test_an_interrupted_night_says_so(nightly, tmp_path: Path) -> None:
    slow = {**os.environ, "FAKE_SLEEP": "0.4"}
    arguments = ("--config", "night.toml", "--program", "new.py")
    process = subprocess.Popen(
        command(tmp_path, *arguments), cwd=tmp_path, env=slow, stderr=subprocess.PIPE
    )
    wait_for(lambda: list((tmp_path / "results").rglob("Small-000.json")))
    process.terminate()
    assert b"interrupted" in process.communicate()[1]
    assert process.returncode == 130


def wait_for(condition, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("launchs = 3", "unknown key 'launchs'"),
        ("launches = '3'", "wrong type"),
        ("launches = 0", "must be positive"),
        ("extra = -1", "must not be negative"),
        ("machine = '../x'", "cannot be the name of a folder"),
        ("[[family]]\nfilter = 'x'", "'name' is missing"),
        ("[[family]]\nname = 'a'\nflags = ['--benchmark_out=x']", "this flag is set per launch"),
        ("[[family]]\nname = 'a'\n[[family]]\nname = 'a'", "same name"),
        ("= 3", "TOML"),
    ],
)
def test_bad_configurations_are_named(nightly, tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "night.toml").write_text(text)
    done = nightly("--config", "night.toml", "--program", "new.py")
    assert done.returncode == 2 and complaint in done.stderr


def test_backfill_builds_commits_and_keeps_failed_ones(
    nightly, tmp_path: Path, git_commits
) -> None:
    repo = tmp_path / "repo"
    shas = git_commits(repo, 4)
    # The third commit does not build; its night is there and says so.
    build = f'build = "git log -1 --format=%s | grep -qv 2 && cp {FAKE} bench"\nprogram = "bench"\n'
    (tmp_path / "night.toml").write_text(build + CONFIG)
    arguments = ("--config", "../night.toml", "--commits", f"{shas[0]}..HEAD")
    done = nightly(*arguments, cwd=repo)
    assert done.returncode == 5, done.stderr
    logs = [journal.read(night) for night in nights(tmp_path)]
    assert sorted(log.sha for log in logs) == sorted(shas[1:])
    assert {log.sha: log.state for log in logs}[shas[2]] == "did not build"
    again = nightly(*arguments, cwd=repo)
    assert again.returncode == 0 and len(nights(tmp_path)) == 3


def history_of(folder: Path, levels: list[float]) -> None:
    for day, seconds in enumerate(levels):
        place = folder / "results" / "m" / f"2026-01-{day + 1:02d}T020000_{day:08x}"
        place.mkdir(parents=True)
        rows = [entry("SGEMM/CPU/Ikj/n:64/real_time", seconds * (1 + day % 3 / 1000))]
        context = {"date": f"2026-01-{day + 1:02d}T02:00:00+00:00", "git_sha": f"{day:08x}"}
        (place / "CPU-000.json").write_text(json.dumps(document(rows, **context)))


def test_packing_old_nights_changes_nothing_that_is_shown(nightly, tmp_path: Path) -> None:
    results, index = tmp_path / "results", Index(tmp_path / "index.sqlite")
    synthesise.write_results(results, 5, 8)
    old, *_, young = sorted((results / "SYNTHETIC-1").iterdir())
    young.rename(young.with_name("2199" + young.name[4:]))

    def site() -> list[str]:
        """What is written anew."""
        index.ingest(results)
        past = history.load(index, history.Order())
        rules = alarms.Rules()
        return pages.build(index, past, alarms.find(past, rules), rules, tmp_path / "site")

    assert site()
    before = {file: file.read_bytes() for file in results.rglob("*.json")}
    prune = ("--prune", "30", "--machine", "SYNTHETIC-1")
    assert "would pack 60 files of 3 nights" in nightly(*prune).stdout
    assert {file: file.read_bytes() for file in results.rglob("*.json")} == before
    # As a kill between packing and removing leaves it.
    shutil.copy(old / "CPU-000.json", tmp_path / "kept.json")
    assert "packed 60 files of 3 nights" in nightly(*prune, "--yes").stdout
    packed_once = (old / "CPU-000.json.gz").read_bytes()
    shutil.copy(tmp_path / "kept.json", old / "CPU-000.json")
    assert "packed 1 files" in nightly(*prune, "--yes").stdout
    assert (old / "CPU-000.json.gz").read_bytes() == packed_once
    assert "packed 0 files" in nightly(*prune, "--yes").stdout
    left, packed = list(results.rglob("*.json")), list(results.rglob("*.json.gz"))
    assert (len(left), len(packed)) == (20, 60)
    after = {file.with_suffix("") for file in packed} | set(left)
    assert after == before.keys()
    assert all(reading.load(str(file)) == before[file.with_suffix("")] for file in packed)
    assert site() == [] and index.complaints() == []


@pytest.fixture
def checkout(tmp_path: Path, git_commits) -> Path:
    """A repository with these tools, whose program is the fake and whose night takes a moment."""
    repo = tmp_path / "repo"
    git_commits(repo, 1)
    shutil.copytree(TOOLS, repo / "tools", ignore=shutil.ignore_patterns("tests", "__pycache__"))
    (repo / ".venv").symlink_to(sys.prefix)
    (repo / "results" / "nightly").mkdir(parents=True)
    shutil.copy(EXAMPLES / "night_check.py", repo / "results" / "nightly")
    build = f'build = "cp {FAKE} bench"\nprogram = "bench"\n'
    (repo / "results" / "nightly" / "night.toml").write_text(build + CONFIG)
    return repo


def test_the_example_for_slurm_measures_a_night_without_slurm(checkout: Path) -> None:
    (script,) = re.findall(r"```sh\n(#!/bin/bash\n#SBATCH .*?)```", README, re.DOTALL)
    done = subprocess.run(["bash"], input=script, cwd=checkout, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    (night,) = (checkout / "results" / "local").glob("*_*")
    assert journal.read(night).state == "complete" and len(list(night.glob("*.json"))) == 6


def test_the_example_for_reframe(checkout: Path) -> None:
    """Loaded and run where ReFrame is installed (pip install reframe-hpc); else read as Python."""
    check = checkout / "results" / "nightly" / "night_check.py"
    compile(check.read_text(), check.name, "exec")
    if not (reframe := shutil.which("reframe")):
        pytest.skip("ReFrame is not installed; night_check.py was only compiled")
    command = [
        reframe,
        "-c",
        str(check),
        "-r",
        "--performance-report",
        "--prefix",
        checkout / "out",
    ]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SGEMM/CPU/Ikj/n=64/real_time" in done.stdout
    (night,) = (checkout / "results" / "generic-default").glob("*_*")
    assert journal.read(night).state == "complete"


def test_exit_code_is_1_on_a_confirmed_regression_only(nightly, tmp_path: Path) -> None:
    history_of(tmp_path, [1e-3] * 12 + [1.3e-3] * 2)
    done = nightly("--check", "--machine", "m")
    assert done.returncode == 0 and "provisional" in done.stdout
    shutil.rmtree(tmp_path / "results")
    history_of(tmp_path, [1e-3] * 12 + [1.3e-3] * 3)
    done = nightly("--check", "--machine", "m")
    assert done.returncode == 1 and "confirmed" in done.stdout and "0000000c" in done.stdout
    (tmp_path / "results" / "acknowledged.toml").write_text(
        '[[acknowledged]]\nbenchmarks = "Ikj"\ncommit = "0000000c"\nreason = "needed"\n'
    )
    done = nightly("--check", "--machine", "m")
    assert done.returncode == 0 and "acknowledged" in done.stdout
