"""What the history asks of git: the order of commits, and what lies between two of them."""

import re
from functools import lru_cache
from pathlib import Path

from benchkit.errors import UserError
from benchkit.history import Order
from benchkit.revisions import Repository

SOURCES = ("kernels/", "cpu/", "gpu/", "bench/", "CMakeLists.txt", "CMakePresets.json")


def order_of(results: Path, commits: str | None = None, branch: str = "HEAD") -> Order:
    """From a file of commits (oldest first) if given or lying there, else from git, else none."""
    for file in (
        [Path(commits)] if commits else [results / "commits.txt", results.parent / "commits.txt"]
    ):
        if commits or file.is_file():
            return Order(_read(file), f"the list {file.name}")
    try:
        repository = Repository.around(results, None)
        lines = repository.git("rev-list", "--topo-order", "--reverse", branch)
        shallow = repository.git("rev-parse", "--is-shallow-repository")
    except UserError:
        return Order()
    return Order(lines.split(), f"git, branch {branch}", shallow.strip() == "true")


class Between:
    """The commits and files between two nights; silent where git does not know them."""

    def __init__(self, results: Path) -> None:
        try:
            self._repository: Repository | None = Repository.around(results, None)
        except UserError:
            self._repository = None
        self.commits = lru_cache(maxsize=None)(self._commits)
        self.files = lru_cache(maxsize=None)(self._files)

    def _commits(self, old: str, new: str) -> tuple[str, ...]:
        """`sha8 subject`, newest first, at most 20."""
        if not _are_commits(old, new):
            return ()
        return self._lines("log", "--format=%h %s", "-n20", f"{old}..{new}")

    def _files(self, old: str, new: str) -> tuple[str, ...]:
        """Changed files that can change a result."""
        if not _are_commits(old, new):
            return ()
        lines = self._lines("diff", "--name-only", old, new)
        return tuple(line for line in lines if line.startswith(SOURCES))

    def _lines(self, *arguments: str) -> tuple[str, ...]:
        if self._repository is None:
            return ()
        try:
            return tuple(self._repository.git(*arguments).splitlines())
        except UserError:
            return ()


def _are_commits(old: str, new: str) -> bool:
    """What a result file calls its commit may be anything, an option of git's too."""
    return old != new and all(re.fullmatch("[0-9a-f]{7,64}", sha) for sha in (old, new))


def _read(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from error
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]
