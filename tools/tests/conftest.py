"""What all tests of the tools get: the import path, the marker, and compare.py as a fixture."""

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[1]

sys.path[:0] = [str(TOOLS), str(TOOLS / "tests")]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: simulations of minutes; run with -m slow")
    config.addinivalue_line("markers", "browser: needs chromium; -m 'not browser' leaves them out")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "slow" not in config.getoption("-m"):
        skip = pytest.mark.skip(reason="slow: run with -m slow")
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(skip)


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
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs compare.py as a user does; gives the finished process, which never shows a traceback.

    With `options` of subprocess.run in a process of its own, else, much faster, in this one.
    """

    def run(*arguments: object, **options: object) -> subprocess.CompletedProcess:
        command = [str(TOOLS / "compare.py"), *map(str, arguments)]
        if options:
            settings = {"capture_output": True, "text": True, "cwd": tmp_path} | options
            done = subprocess.run([sys.executable, *command], check=False, **settings)
        else:
            monkeypatch.chdir(tmp_path)
            monkeypatch.setattr(sys, "argv", command)
            done = in_this_process(command)
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


def in_this_process(command: list[str]) -> subprocess.CompletedProcess:
    import compare
    from benchkit import environment

    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2)]
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        with pytest.raises(SystemExit) as ended:
            environment.run(compare.main)
        for stream in streams:
            stream.flush()
    texts = [stream.buffer.getvalue().decode() for stream in streams]
    return subprocess.CompletedProcess(command, ended.value.code, *texts)
