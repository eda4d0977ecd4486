"""Programs → launches: two sides take turns (ABBA, random start), a process and a JSON a launch.

Nothing measured is lost: each launch is kept as its own file as soon as it is complete, and Ctrl-C
ends the measuring, not the report.
"""

import contextlib
import filecmp
import os
import random
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchkit import reading
from benchkit.errors import UserError
from benchkit.reading import Launch

BASE, NEW = 0, 1
NAMES = ("base", "new")
# Flags that the launcher sets itself; from the user they would overwrite one launch with another.
OWN_FLAGS = (
    "--benchmark_out",
    "--benchmark_out_format",
    "--benchmark_format",
    "--benchmark_list_tests",
)
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Program:
    """An executable of one side with the flags of every launch."""

    path: Path
    flags: tuple[str, ...] = ()
    limit: float | None = None  # seconds a launch may take


@dataclass(frozen=True, slots=True)
class Plan:
    """How many launches a side, and at which counts the data may be looked at (α is shared)."""

    first: int
    most: int
    EXTRA_LOOKS = 2

    def steps(self) -> Iterator[tuple[int, int]]:
        """(launches a side so far, launches a side to add), look by look."""
        yield 0, self.first
        done = self.first
        size = -(-max(0, self.most - self.first) // self.EXTRA_LOOKS)
        size += size % 2  # whole ABBA blocks
        while done < self.most:
            yield done, min(size, self.most - done)
            done += size

    @property
    def looks(self) -> int:
        return sum(1 for _ in self.steps())


@dataclass(slots=True)
class Session:
    """The launches of both sides so far, in `folder`/base and `folder`/new."""

    programs: tuple[Program, Program]
    folder: Path
    progress: Progress
    coin: random.Random = field(default_factory=random.Random)
    launches: tuple[list[Launch], list[Launch]] = field(default_factory=lambda: ([], []))
    identity: str = field(default_factory=lambda: secrets.token_hex(4))
    started: int = 0
    interrupted: bool = False

    def measure(self, pairs: int, only: Sequence[str] | None = None) -> None:
        """Adds `pairs` launches a side, of all benchmarks or of the run names in `only`."""
        order = list(schedule(pairs, self.coin))
        flags = () if only is None else (f"--benchmark_filter={exact_filter(only)}",)
        try:
            for done, side in enumerate(order):
                self.progress(NAMES[side], done, len(order))
                self._launch(side, flags)
            self.progress("", len(order), len(order))
        except KeyboardInterrupt:
            self.interrupted = True

    def _launch(self, side: int, flags: Sequence[str]) -> None:
        program, index = self.programs[side], self.started
        file = self.folder / NAMES[side] / f"launch-{index:03d}.json"
        run(Program(program.path, (*program.flags, *flags)), file, f"{self.identity}.{index}")
        launch = reading.parse(file.read_bytes(), str(file))
        launch.session, launch.index = self.identity, index
        self.started += 1
        self.launches[side].append(launch)

    def measure_until(self, plan: "Plan", unclear: Callable[[], Sequence[str] | None]) -> None:
        """Measures `plan.first` pairs, then adds to the benchmarks that `unclear` still names
        (None: all) at the plan's fixed looks, until none is left or the plan ends."""
        for already, pairs in plan.steps():
            only = unclear() if already else None
            if self.interrupted or (only is not None and not only):
                return
            self.measure(pairs, only)

    def balanced(self) -> tuple[list[Launch], list[Launch]]:
        """Both sides; after an interruption without the launch whose partner is missing."""
        pairs = min(map(len, self.launches))
        return self.launches[BASE][:pairs], self.launches[NEW][:pairs]


def alone(program: Program, count: int, folder: Path, progress: Progress) -> list[Launch]:
    """Launches of one program, for the comparison with a stored result."""
    launches, identity = [], secrets.token_hex(4)
    for index in range(count):
        progress(program.path.name, index, count)
        file = folder / f"launch-{index:03d}.json"
        run(program, file, f"alone-{identity}.{index}")
        launches.append(reading.parse(file.read_bytes(), str(file)))
    progress("", count, count)
    return launches


def schedule(pairs: int, rng: random.Random) -> Iterator[int]:
    """The order of sides: blocks of ABBA or BAAB, by the coin; an odd pair comes last."""
    for start in range(0, pairs, 2):
        first = rng.choice((BASE, NEW))
        yield from (first, 1 - first)
        if start + 1 < pairs:
            yield from (1 - first, first)


def exact_filter(run_names: Sequence[str]) -> str:
    """A --benchmark_filter that selects these run names and nothing else."""
    return "^(" + "|".join(map(re.escape, run_names)) + ")$"


def run(program: Program, file: Path, turn: str) -> None:
    """One process launch; its complete result appears under `file`, or UserError says why.

    `turn` (session.index) goes into the result's context, so that stored launches are paired again.
    A program may end with 1 when rows failed: its file is complete and says which.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(file.name + ".partial")
    command = [
        program.path.name,  # what the result will call its executable: no path of this machine
        *program.flags,
        f"--benchmark_out={partial}",
        "--benchmark_out_format=json",
    ]
    # By environment, not by flag: versions that do not know it do not stumble over it.
    own = os.environ.get("BENCHMARK_CONTEXT")
    context = f"{own},launch_turn={turn}" if own else f"launch_turn={turn}"
    environment = {**os.environ, "BENCHMARK_CONTEXT": context}
    with _Interruptible(program) as launch:
        errors = launch.finish(command, environment)
        if launch.asked and launch.process.returncode:
            partial.unlink(missing_ok=True)
            raise KeyboardInterrupt
        if launch.overdue:
            partial.unlink(missing_ok=True)
            raise UserError(f"{program.path}: was ended after {program.limit:g} s")
        _check(program, launch.process.returncode, errors, partial)
        partial.replace(file)


class _Interruptible:
    """One process; while it is there, Ctrl-C (or SIGTERM) ends it, a second one kills it.

    Only when the block has ended is the interruption raised: at whatever moment it comes, no
    process is left running and no result half named.
    """

    def __init__(self, program: Program) -> None:
        self.program, self.asked, self.overdue = program, 0, False
        self.process: subprocess.Popen | None = None
        self.handlers: dict[signal.Signals, object] = {}

    def __enter__(self) -> "_Interruptible":
        for one in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(one) != signal.SIG_IGN:
                self.handlers[one] = signal.signal(one, self._ask)
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        for one, handler in self.handlers.items():
            signal.signal(one, handler)
        if self.asked and kind is None:
            raise KeyboardInterrupt

    def finish(self, command: list[str], environment: dict[str, str]) -> str:
        """Runs the process to its end; what it said on stderr."""
        try:
            self.process = subprocess.Popen(
                command,
                executable=self.program.path,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise UserError(f"{self.program.path}: cannot be run: {error.strerror}") from error
        if self.asked:
            self._end(signal.SIGTERM)
        try:
            errors = self.process.communicate(timeout=self.program.limit)[1]
        except subprocess.TimeoutExpired:
            self.overdue = True
            self._end(signal.SIGKILL)
            errors = self.process.communicate()[1]
        return errors.decode(errors="replace")

    def _ask(self, *_: object) -> None:
        self.asked += 1
        self._end(signal.SIGTERM if self.asked == 1 else signal.SIGKILL)

    def _end(self, by: signal.Signals) -> None:
        if self.process:
            with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
                os.killpg(self.process.pid, by)


def _check(program: Program, code: int, errors: str, result: Path) -> None:
    tail = " ".join(errors.split())[-300:]
    said = f"; it said: {tail}" if tail else ""
    if code < 0:
        name = signal.Signals(-code).name
        raise UserError(f"{program.path}: was ended by {name}{said}")
    empty = not result.exists() or not result.stat().st_size
    if code > 1 or (code == 1 and empty):
        raise UserError(f"{program.path}: ended with exit code {code}{said}")
    if empty:
        raise UserError(
            f"{program.path}: wrote no result: did the filter match any benchmark?{said}"
        )


def check_flags(flags: Sequence[str]) -> None:
    """Refuses flags that the launcher needs for itself."""
    for flag in flags:
        if flag.split("=")[0] in OWN_FLAGS:
            raise UserError(
                f"{flag}: this flag is set per launch; use --keep DIR to keep the results"
            )


def is_program(path: str) -> bool:
    """An executable file (that is not a result somebody made executable)."""
    file = Path(path)
    if not file.is_file() or not os.access(file, os.X_OK):
        return False
    try:
        with file.open("rb") as stream:
            return not stream.read(64).lstrip().startswith((b"{", b"["))
    except OSError:  # executable but not readable: still a program
        return True


def identical(one: str, other: str) -> bool:
    """Whether two programs have the same content."""
    return filecmp.cmp(one, other, shallow=False)


class Clock:
    """Progress lines with the time left, from the launches already done."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say, self.start = say, time.monotonic()

    def __call__(self, side: str, done: int, total: int) -> None:
        if done == 0:
            self.start = time.monotonic()
        if done == total:
            self.say(f"{total} launches in {duration(time.monotonic() - self.start)}")
            return
        each = (time.monotonic() - self.start) / done if done else 0.0
        left = f", about {duration(each * (total - done))} left" if done else ""
        self.say(f"launch {done + 1} of {total} ({side}){left}")


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours} h {minutes:02d} min"
        if hours
        else f"{minutes} min {rest:02d} s"
        if minutes
        else f"{rest} s"
    )
