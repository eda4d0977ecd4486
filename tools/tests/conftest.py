"""Shared by all tests of the tools: paths, and documents as Google Benchmark writes them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOOLS))
CASES = Path(__file__).parent / "cases"
FAKE = Path(__file__).parent / "fake_bench.py"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: simulations of minutes; run with -m slow")
    config.addinivalue_line("markers", "browser: needs chromium; -m 'not browser' leaves them out")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "slow" not in config.getoption("-m"):
        skip = pytest.mark.skip(reason="slow: run with -m slow")
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(skip)


def entry(name: str, seconds: float = 1e-3, **more: object) -> dict:
    """One repetition row; `more` adds or replaces fields."""
    row = {"name": name, "run_name": name, "run_type": "iteration", "repetitions": 1}
    row |= {"repetition_index": 0, "threads": 1, "iterations": 10}
    return row | {"real_time": seconds * 1e9, "cpu_time": seconds * 1e9, "time_unit": "ns"} | more


def document(rows: list[dict], **context: object) -> dict:
    return {"context": {"host_name": "h", "num_cpus": 2, **context}, "benchmarks": rows}


@pytest.fixture
def save(tmp_path: Path):
    """Saves a document or text under a name in a temporary folder; returns the path."""

    def saved(name: str, content: object) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return saved


@pytest.fixture
def compare(tmp_path: Path):
    """Runs compare.py as a user does; gives the finished process, which never shows a traceback."""

    def run(*arguments: object, **options: object) -> subprocess.CompletedProcess:
        command = [sys.executable, str(TOOLS / "compare.py"), *map(str, arguments)]
        settings = {"capture_output": True, "text": True, "cwd": tmp_path} | options
        done = subprocess.run(command, check=False, **settings)
        assert not any(word in str(done.stderr) for word in ("Traceback", "internal error"))
        return done

    return run


@pytest.fixture
def git_commits():
    """Makes a repository with some commits, subjects "0", "1", …; gives their ids, oldest first."""

    def make(folder: Path, count: int) -> list[str]:
        folder.mkdir()
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]

        def git(*words: str) -> str:
            command = ["git", "-C", str(folder), *identity, *words]
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout

        git("init", "-q")
        for i in range(count):
            git("commit", "-q", "--allow-empty", "-m", str(i))
        return git("rev-list", "--reverse", "HEAD").split()

    return make
