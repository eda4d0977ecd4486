"""One night: the launches of every family of rows in turns, each in a process of its own.

The folder is `<date>_<sha8>.partial` until the night is over; what a killed night has measured is
taken up by the next one of the same commit. A launch that fails loses itself, two in a row lose
the family; the night goes on. Rows that are unclear after that get a few launches of their own.
"""

import fcntl
import itertools
import re
import socket
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchkit import conditions, journal, launching, reading, unclear
from benchkit.errors import UserError

LOCKED = 3
UNKNOWN = "unknown0"  # stands for the commit until a launch has said it
PATIENCE = 2  # failed launches in a row after which a family is given up
FAMILY_KEYS = {"name", "filter", "n", "device", "peers", "flags"}
KEYS = {"machine", "launches", "extra", "limit", "reference", "build", "program", "family"}


@dataclass(frozen=True, slots=True)
class Family:
    """Rows that share a process: a crash of its driver loses them and nothing else."""

    name: str
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Config:
    """What a night measures; the defaults are the whole suite, ten launches."""

    machine: str
    families: tuple[Family, ...]
    launches: int = 10
    extra: int = -1  # launches of unclear rows, at most; -1: half of `launches`
    limit: float = 3600.0  # seconds a launch may take
    reference: str = "^Peak/"
    build: str = ""
    program: str = ""

    @property
    def extras(self) -> range:
        """The launches after the planned ones."""
        extra = self.launches // 2 if self.extra < 0 else self.extra
        return range(self.launches, self.launches + extra)


def default_families() -> tuple[Family, ...]:
    """CPU rows and OpenCL rows apart."""
    return tuple(Family(side, (f"--benchmark_filter=/{side}/",)) for side in ("CPU", "GPU"))


def read_config(path: str | None) -> Config:
    """A TOML file; every key must be known and every value usable. None: the defaults."""
    machine = re.sub(r"[^\w.-]+", "-", socket.gethostname()) or "machine"
    if path is None:
        return Config(machine, default_families())
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read as TOML: {error}") from error
    _known(document, KEYS, path)
    _typed(document, {"machine": str, "reference": str, "build": str, "program": str}, path)
    _typed(document, {"launches": int, "extra": int, "limit": (int, float)}, path)
    entries = document.pop("family", [])
    families = tuple(_family(e, f"{path}: [[family]] {i}") for i, e in enumerate(entries, 1))
    if len({family.name for family in families}) < len(families):
        raise UserError(f"{path}: two families have the same name")
    machine = document.pop("machine", machine)
    if not re.fullmatch(r"[\w.-]+", machine) or machine.startswith("."):
        raise UserError(f"{path}: machine: {machine!r} cannot be the name of a folder")
    config = Config(machine, families or default_families(), **document)
    if config.launches < 1 or config.limit <= 0:
        raise UserError(f"{path}: 'launches' and 'limit' must be positive")
    if document.get("extra", 0) < 0:
        raise UserError(f"{path}: 'extra' must not be negative; 0 measures no row again")
    return config


def _family(entry: object, position: str) -> Family:
    if not isinstance(entry, dict):
        raise UserError(f"{position}: not a table")
    _known(entry, FAMILY_KEYS, position)
    _typed(entry, {"name": str, "filter": str, "device": str}, position)
    _typed(entry, {"n": list, "peers": list, "flags": list}, position)
    if not re.fullmatch(r"[A-Za-z0-9]+", entry.get("name", "")):
        raise UserError(f"{position}: 'name' is missing or not made of letters and digits")
    flags = [f"--benchmark_filter={entry['filter']}"] if "filter" in entry else []
    flags += [f"--device={entry['device']}"] if "device" in entry else []
    for key in ("n", "peers"):
        if entry.get(key):
            flags.append(f"--{key}=" + ",".join(map(str, entry[key])))
    flags += map(str, entry.get("flags", []))
    launching.check_flags(flags)
    return Family(entry["name"], tuple(flags))


def _known(table: dict[str, Any], keys: set[str], position: str) -> None:
    if unknown := table.keys() - keys:
        raise UserError(
            f"{position}: unknown key '{sorted(unknown)[0]}' (known: {', '.join(sorted(keys))})"
        )


def _typed(table: dict[str, Any], types: dict[str, Any], position: str) -> None:
    for key, kind in types.items():
        if key in table and (not isinstance(table[key], kind) or isinstance(table[key], bool)):
            raise UserError(f"{position}: '{key}' has the wrong type: {table[key]!r}")


# ---- measuring --------------------------------------------------------------------------------


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One night at a time on a machine; a second one ends at once and says so."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".nightly.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UserError(f"{folder}: another night is running here", LOCKED) from error
        yield


def start(folder: Path, sha: str) -> Path:
    """The folder of tonight: that of a killed night of the same commit, else a new one."""
    short = sha[:8] or UNKNOWN
    for left in sorted(folder.glob(f"*_{short}.partial"), reverse=True):
        if left.is_dir():
            return left
    while True:  # two nights in one second are two nights
        date = datetime.now(UTC).strftime("%Y-%m-%dT%H%M%S")
        if not any(folder.glob(f"{date}_*")):
            return folder / f"{date}_{short}.partial"
        time.sleep(0.1)


def measure(
    config: Config, program: Path, folder: Path, sha: str, say: Callable[[str], None]
) -> Path:
    """Measures (the rest of) a night in `folder`; returns the finished folder."""
    log = journal.read(folder)
    if not log.events:
        journal.append(folder, "start", sha=sha, launches=config.launches)
    journal.append(folder, "before", **conditions.now())
    _launch_all(config, program, folder, range(config.launches), say)
    if again := _unclear(config, folder, log, say):
        _launch_all(replace(config, families=again), program, folder, config.extras, say)
    journal.append(folder, "after", **conditions.now())
    return finish(folder, *judge(config, folder))


def _launch_all(
    config: Config, program: Path, folder: Path, indices: range, say: Callable[[str], None]
) -> None:
    """Launches of every family in turns, those that are not there yet."""
    failures = {family.name: 0 for family in config.families}
    for index in indices:
        for family in config.families:
            file = folder / f"{family.name}-{index:03d}.json"
            if file.exists() or failures[family.name] >= PATIENCE:
                continue
            say(f"launch {index + 1} of {indices.stop}: {family.name}")
            error = _launch(config, program, family, file, index)
            failures[family.name] = failures[family.name] + 1 if error else 0
            if error:
                say(f"warning: {family.name}: {error}")
                journal.append(folder, "lost", family=family.name, launch=index, message=error)


def _unclear(
    config: Config, folder: Path, log: journal.Log, say: Callable[[str], None]
) -> tuple[Family, ...]:
    """Families narrowed to the rows that need more launches; decided once a night, journalled."""
    again: list[Family] = []
    for family in config.families if config.extras else ():
        if (names := log.unclear.get(family.name)) is None:
            past = [_launches(night, family) for night in _last_nights(folder)]
            names = unclear.rows(_launches(folder, family), past)
            facts = {"rows": names, "launches": len(config.extras)}
            if names:
                journal.append(folder, "unclear", family=family.name, **facts)
        if names:
            say(f"{family.name}: {len(names)} rows are unclear against the last nights")
            only = f"--benchmark_filter={launching.exact_filter(names)}"
            again.append(Family(family.name, (*family.flags, only)))
    return tuple(again)


def _launches(night: Path, family: Family) -> list[reading.Launch]:
    """What can be read of a night; an old damaged file is no reason to lose tonight."""
    found = []
    for file in sorted(night.glob(f"{family.name}-*.json*")):
        with suppress(UserError):
            if file.suffix != ".partial":
                found.append(reading.parse(reading.load(str(file)), file.name, salvage=True))
    return found


def _last_nights(folder: Path) -> list[Path]:
    """The newest finished nights of this machine that measured something."""
    nights = sorted(folder.parent.glob("*_*/"), reverse=True)
    states = ((night, journal.read(night).state) for night in nights if night != folder)
    measured = (night for night, state in states if state in ("complete", "partial"))
    return list(itertools.islice(measured, unclear.NIGHTS))


def _launch(config: Config, program: Path, family: Family, file: Path, index: int) -> str:
    try:
        session = file.parent.name.removesuffix(".partial").replace(":", "")
        turn = f"{session}-{family.name}.{index}"
        launching.run(launching.Program(program, family.flags, config.limit), file, turn)
        reading.parse(file.read_bytes(), file.name)
    except UserError as error:
        file.unlink(missing_ok=True)
        return str(error).replace(str(program), program.name)
    return ""


def judge(config: Config, folder: Path) -> tuple[str, str]:
    """(state, message) of a measured night, from the files that are there."""
    planned = range(config.launches)
    files = {
        family.name: [
            file for i in planned if (file := folder / f"{family.name}-{i:03d}.json").exists()
        ]
        for family in config.families
    }
    rows = [row for fs in files.values() for f in fs for row in reading.parse(f.read_bytes()).rows]
    if not rows:
        return "no rows", "no launch gave a row"
    if all(row.status == "skipped" for row in rows):
        return "all skipped", rows[0].message
    lost = [
        f"{name}: {len(fs)} of {config.launches}"
        for name, fs in files.items()
        if len(fs) < config.launches
    ]
    return ("partial", "launches measured: " + ", ".join(lost)) if lost else ("complete", "")


def finish(folder: Path, state: str, message: str) -> Path:
    """Writes the state and gives the folder its final name, with the commit if a program knows."""
    sha = journal.read(folder).sha or _sha_of(folder)
    journal.append(folder, "end", sha=sha, state=state, message=message)
    for left in folder.glob("*.partial"):  # of a launch that was killed
        left.unlink()
    name = folder.name.removesuffix(".partial").replace(UNKNOWN, sha[:8] or UNKNOWN)
    final = folder.with_name(name)
    try:
        folder.rename(final)
    except OSError as error:
        raise UserError(f"{folder}: cannot be renamed: {error.strerror}") from error
    return final


def _sha_of(folder: Path) -> str:
    for file in sorted(folder.glob("*.json")):
        return str(reading.parse(file.read_bytes()).context.get("git_sha", ""))
    return ""


def failed_build(folder: Path, sha: str, message: str) -> Path:
    """A night on which the commit could not be built."""
    journal.append(folder, "start", sha=sha)
    return finish(folder, "did not build", message)


def measured(folder: Path) -> Sequence[str]:
    """Commits that have a finished night here."""
    nights = (journal.read(path) for path in folder.glob("*_*") if path.suffix != ".partial")
    return [log.sha for log in nights if log.state]
