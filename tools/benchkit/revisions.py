"""Git revisions → built programs, in worktrees under a cache; the user's tree is only read."""

import fcntl
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchkit.errors import UserError

BUILD = "cmake --preset release && cmake --build --preset release --target bench"
PROGRAM = "build/release/bench"


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a revision becomes a program: a shell command run in the worktree and what it makes."""

    build: str = BUILD
    program: str = PROGRAM


@dataclass(frozen=True, slots=True)
class Repository:
    root: Path
    cache: Path

    @classmethod
    def around(cls, folder: Path, cache: str | None) -> "Repository":
        """The repository that contains `folder`."""
        root = Path(_git(folder, "rev-parse", "--show-toplevel"))
        return cls(root, Path(cache).resolve() if cache else root / ".cache" / "commits")

    def resolve(self, revision: str) -> str:
        """A full commit id; anything git understands as a commit is allowed."""
        return _git(
            self.root,
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            revision + "^{commit}",
        )

    def merge_base(self, new: str) -> str:
        """Where NEW left the main line (its upstream, else origin/main, main, master)."""
        for line in (
            "@{upstream}",
            "origin/HEAD",
            "origin/main",
            "main",
            "origin/master",
            "master",
        ):
            try:
                base = _git(self.root, "merge-base", self.resolve(line), new)
            except UserError:
                continue
            if base != new:
                return base
        try:
            return self.resolve(new + "~1")
        except UserError as error:
            raise UserError(
                f"{new[:12]} has no earlier commit to compare with; name BASE"
            ) from error

    def git(self, *arguments: str) -> str:
        """What a git command prints; UserError with its message when it fails."""
        return _git(self.root, *arguments)

    def describe(self, commit: str) -> str:
        return _git(self.root, "log", "-1", "--format=%h (%s)", commit)

    def uncommitted(self) -> bool:
        return bool(_git(self.root, "status", "--porcelain", "--untracked-files=no"))

    def build(self, commit: str, recipe: Recipe, say: Callable[[str], None]) -> Path:
        """The program of a commit: from the cache, or built in a worktree there."""
        tree = self.cache / commit[:12]
        program = tree / recipe.program
        stamp = self.cache / f"{commit[:12]}.built"
        self.cache.mkdir(parents=True, exist_ok=True)
        with _locked(self.cache / "lock"):
            if program.exists() and stamp.exists() and stamp.read_text() == recipe.build:
                return program
            if not (tree / ".git").exists():
                _git(self.root, "worktree", "prune")
                _git(self.root, "worktree", "add", "--force", "--detach", str(tree), commit)
            say(f"building {self.describe(commit)}")
            log = self.cache / f"{commit[:12]}.log"
            with log.open("wb") as out:
                code = subprocess.run(
                    recipe.build,
                    shell=True,
                    cwd=tree,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    check=False,
                ).returncode
            if code or not program.exists():
                what = f"exit code {code}" if code else f"it makes no {recipe.program}"
                tail = " | ".join(log.read_text(errors="replace").splitlines()[-3:])
                raise UserError(f"building {commit[:12]} failed ({what}): {tail}; all of it: {log}")
            stamp.write_text(recipe.build)
        return program


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One build at a time in one cache."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"git cannot be run: {error.strerror}") from error
    if done.returncode:
        said = " ".join(done.stderr.split()) or "no such revision"
        raise UserError(f"git: {said}: {shlex.join(arguments)}")
    return done.stdout.strip()
