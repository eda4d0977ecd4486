"""Measuring with a program that plays Google Benchmark: order, failure, interruption, git."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from documents import FAKE, TOOLS

from benchkit import launching


@pytest.fixture
def programs(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("base.py", "new.py"):
        shutil.copy(FAKE, tmp_path / name)
    return tmp_path / "base.py", tmp_path / "new.py"


def test_the_schedule_is_abba_with_a_random_start() -> None:
    orders = {tuple(launching.schedule(5, random.Random(seed))) for seed in range(200)}
    assert len(orders) == 2**3
    for order in orders:
        assert sum(order) == 5
        for block in (order[0:4], order[4:8]):
            assert block in ((0, 1, 1, 0), (1, 0, 0, 1))


@pytest.mark.parametrize(("first", "most", "steps"), [
    (10, 10, [(0, 10)]), (10, 20, [(0, 10), (10, 6), (16, 4)]), (4, 5, [(0, 4), (4, 1)]),
])  # fmt: skip
def test_looks_are_fixed_in_advance(first: int, most: int, steps: list) -> None:
    plan = launching.Plan(first, most)
    assert list(plan.steps()) == steps and plan.looks == len(steps)


def test_exact_filters_select_nothing_else() -> None:
    import re

    pattern = launching.exact_filter(["a/n:1", "b(x)"])
    assert [bool(re.search(pattern, name)) for name in ("a/n:1", "b(x)", "a/n:16", "ba/n:1")] == [
        True, True, False, False,
    ]  # fmt: skip


def test_two_programs(compare, programs, tmp_path: Path) -> None:
    env = os.environ | {"FAKE_SLOW": "1.1", "FAKE_WHERE": "Packed/n:256"}
    keep = tmp_path / "kept"
    arguments = ("--launches", 8, "--keep", keep, "--json", "-")
    done = compare("benchmarks", *programs, *arguments, "--benchmark_min_time=0.01", env=env)
    report = json.loads(done.stdout)
    slower = [b["name"] for b in report["benchmarks"] if b["verdict"] == "slower"]
    assert done.returncode == 1 and slower == ["SGEMM/CPU/Packed/n:256/real_time"]
    assert "blocks" in report["benchmarks"][0]["test"] and "left" in done.stderr
    assert len(list(keep.rglob("*.json"))) == 16
    # What was kept gives the same verdicts again: the turns are in the launches' contexts.
    again = json.loads(compare("benchmarks", keep / "base", keep / "new", "--json", "-").stdout)
    assert [b["p"] for b in again["benchmarks"]] == [b["p"] for b in report["benchmarks"]]
    assert compare("benchmarks", *programs, "--keep", keep).returncode == 2


def test_until_clear_goes_on_with_the_unclear_ones(compare, programs, tmp_path: Path) -> None:
    env = os.environ | {"FAKE_SLOW": "1.5", "FAKE_WHERE": "Packed", "FAKE_NOISE": "0.04"}
    arguments = ("--launches", 6, "--until-clear", "--max-launches", 12, "--json", "-")
    done = compare("benchmarks", *programs, *arguments, env=env)
    report = json.loads(done.stdout)
    launches = {b["name"]: b["base"]["launches"] for b in report["benchmarks"]}
    assert report["looks"] == 3
    assert {launches[name] for name in launches if "Packed" in name} == {6}
    assert max(launches[name] for name in launches if "Ikj" in name) > 6


def test_filters_of_one_program(compare, programs) -> None:
    done = compare("filters", programs[0], "Ikj", "Packed", "--launches", 5, "--json", "-")
    names = {b["name"] for b in json.loads(done.stdout)["benchmarks"]}
    assert names == {f"SGEMM/CPU/[Ikj vs. Packed]/n:{n}" for n in (64, 256)}


def test_a_program_against_a_stored_result(compare, programs, tmp_path: Path) -> None:
    compare("benchmarks", *programs, "--launches", 5, "--keep", tmp_path / "kept")
    done = compare("benchmarks", tmp_path / "kept/base", programs[1], "--launches", 5)
    assert done.returncode == 0 and "same" in done.stdout


def test_a_program_against_itself_is_a_floor(
    compare, programs, tmp_path: Path, monkeypatch
) -> None:
    """The sides differ by 1.2 %, more than the margin of 0.5 %; the program from itself by more."""
    monkeypatch.setenv("FAKE_NOISE", "0.03")
    itself = compare("benchmarks", programs[0], programs[0], "--launches", 6, "--keep", "floor")
    assert "both programs are identical" in itself.stderr and "--floor" in itself.stdout
    monkeypatch.setenv("FAKE_NOISE", "0.001")
    monkeypatch.setenv("FAKE_SLOW", "1.012")
    arguments = ("--launches", 6, "--margin", "0.5", "--floor", tmp_path / "floor", "--json", "-")
    done = compare("benchmarks", *programs, *arguments)
    held = {b["held_back"] for b in json.loads(done.stdout)["benchmarks"]}
    assert done.returncode == 0 and held == {"slower"}, done.stdout


def test_the_users_own_context_stays(compare, programs, tmp_path: Path) -> None:
    env = os.environ | {"BENCHMARK_CONTEXT": "room=cold"}
    compare("benchmarks", *programs, "--launches", 1, "--keep", tmp_path / "kept", env=env)
    for file in (tmp_path / "kept").rglob("*.json"):
        context = json.loads(file.read_text())["context"]
        assert context["room"] == "cold" and "launch_turn" in context


@pytest.mark.parametrize(
    ("env", "flags", "sentence"),
    [
        ({"FAKE_FAIL": "3"}, (), "exit code 3; it said: device lost"),
        ({"FAKE_FAIL": "1"}, (), "exit code 1"),
        ({}, ("--benchmark_filter=nothing",), "did the filter match any benchmark"),
        ({}, ("--benchmark_out=x.json",), "is set per launch"),
    ],
)
def test_failures_are_sentences(compare, programs, env: dict, flags: tuple, sentence: str) -> None:
    done = compare("benchmarks", *programs, "--launches", 2, *flags, env=os.environ | env)
    assert done.returncode == 2 and sentence in done.stderr


def test_not_a_program(compare, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF other architecture")
    broken.chmod(0o755)
    done = compare("benchmarks", broken, broken)
    assert done.returncode == 2 and "cannot be run" in done.stderr


@pytest.mark.parametrize("asked", [True, False])
def test_ctrl_c_keeps_what_was_measured(programs, tmp_path: Path, asked: bool) -> None:
    keep = tmp_path / "kept"
    keep.mkdir()
    command = [sys.executable, TOOLS / "compare.py", "benchmarks", *programs]
    command += ["--keep", keep] if asked else []
    env = os.environ | {"FAKE_SLEEP": "0.2", "TMPDIR": str(keep)}
    process = subprocess.Popen(
        [*map(str, command), "--launches", "50"], env=env, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        # A job in the background of a shell inherits that it ignores the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    while len(list(keep.rglob("launch-*.json"))) < 9:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in errors
    assert "are kept in" in errors and "benchmarks:" in out
    assert len(list(keep.rglob("launch-*.json"))) >= 9
    assert not list(keep.rglob("*.partial"))


@pytest.fixture
def heeded():
    """Both signals do something, also where these tests are a job in the background of a shell."""
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for one, handler in before.items():
        signal.signal(one, handler)


@pytest.mark.usefixtures("heeded")
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["before", "started", "ended"])
def test_no_moment_is_too_early_or_too_late_to_interrupt(
    programs, tmp_path: Path, monkeypatch, moment: str, by: signal.Signals
) -> None:
    """The signal comes while the process is being started, or while its result is looked at."""
    processes = []

    class Started(subprocess.Popen):
        def __init__(self, *words: object, **settings: object) -> None:
            if moment == "before":
                os.kill(os.getpid(), by)
            super().__init__(*words, **settings)
            processes.append(self)
            if moment == "started":
                os.kill(os.getpid(), by)

    monkeypatch.setattr(subprocess, "Popen", Started)
    check = launching._check
    if moment == "ended":
        monkeypatch.setattr(
            launching, "_check", lambda *words: (os.kill(os.getpid(), by), check(*words))
        )
    else:
        monkeypatch.setenv("FAKE_SLEEP", "60")
    handlers = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(KeyboardInterrupt):
        launching.run(launching.Program(programs[0]), tmp_path / "one.json", "session.0")
    assert processes[0].returncode == (0 if moment == "ended" else -signal.SIGTERM)
    assert (tmp_path / "one.json").exists() == (moment == "ended")
    assert not list(tmp_path.glob("*.partial"))
    assert handlers == [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]


# ---- commits ----------------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits; the second one's program is slower. Building copies the script."""
    root = tmp_path / "repo"
    root.mkdir()
    source = FAKE.read_text()
    slow = source.replace("1e-3 * random", "(1.2e-3 if 'Packed' in name else 1e-3) * random")
    git(root, "init", "-q", "-b", "main")
    for text in (source, slow):
        (root / "program.py").write_text(text)
        git(root, "add", "-A")
        git(root, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "change")
    return root


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", root, *arguments], check=True, capture_output=True, text=True
    ).stdout


BUILD = (
    "--build",
    "mkdir -p out && cp program.py out/bench && chmod +x out/bench",
    "--program",
    "out/bench",
)


def test_commits(compare, repository: Path) -> None:
    (repository / "program.py").write_text("the user is working here")
    arguments = (*BUILD, "--launches", 6, "--json", "-")
    done = compare("commits", *arguments, cwd=repository)
    report = json.loads(done.stdout)
    slower = {b["name"] for b in report["benchmarks"] if b["verdict"] == "slower"}
    assert done.returncode == 1 and slower == {
        f"SGEMM/CPU/Packed/n:{n}/real_time" for n in (64, 256)
    }
    assert "uncommitted changes" in done.stderr
    assert (repository / "program.py").read_text() == "the user is working here"
    assert len(list((repository / ".cache").rglob("launch-*.json"))) == 12
    again = compare("commits", "HEAD~1..HEAD", *arguments, cwd=repository)
    assert "building" not in again.stderr and again.returncode == 1


def test_the_same_commit_twice_is_said_to_be_noise(compare, repository: Path) -> None:
    done = compare("commits", "HEAD", "HEAD", *BUILD, "--launches", 4, cwd=repository)
    assert done.returncode == 0 and "every difference is noise" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nonsense", "HEAD"), "no such revision"),
        (("--exec=x..HEAD",), "unknown|no such revision|ambiguous|not"),
        (("HEAD~1", "HEAD", "--build", "false"), "building .* failed .exit code 1"),
        (("HEAD~1", "HEAD", "--build", "true", "--program", "out"), "it makes no out"),
    ],
)
def test_commits_that_cannot_be_compared(
    compare, repository: Path, arguments: tuple, sentence: str
) -> None:
    import re

    done = compare("commits", *arguments, "--launches", 1, cwd=repository)
    assert done.returncode == 2 and re.search(sentence, done.stderr), done.stderr


def test_outside_a_repository(compare, tmp_path: Path) -> None:
    done = compare(
        "commits", cwd=tmp_path, env=os.environ | {"GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    )
    assert done.returncode == 2 and "git:" in done.stderr
