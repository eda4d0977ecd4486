"""A results folder → its history: nights in the order of commits, series of points, what happened.

The raw JSON in `<results>/<machine>/…` is the truth. `Index` is an SQLite file made from it: every
file is taken in once by content, and the index can be deleted at any time. A night is a folder
(`<date>_<sha8>/` with one file a launch) or a single file. `load` reads the index; renames, the
order of commits and nights apart from the branch are decided there, so that they can change.
"""

import hashlib
import json
import math
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchkit import environment, journal, machines, names, reading, samples, steps
from benchkit.errors import UserError
from benchkit.reading import Launch
from benchkit.steps import Step

VERSION = 4
NIGHT_FOLDER = re.compile(r"\d{4}-?\d\d-?\d\d.*_[0-9a-f]{6,40}$")
SCHEMA = """
CREATE TABLE file (path TEXT PRIMARY KEY, size INTEGER, mtime INTEGER, digest TEXT,
                   place TEXT, message TEXT);
CREATE TABLE night (id INTEGER PRIMARY KEY, machine TEXT, place TEXT UNIQUE, date TEXT, sha TEXT,
                    state TEXT, message TEXT, context TEXT, notes TEXT);
CREATE TABLE series (id INTEGER PRIMARY KEY, machine TEXT, name TEXT, UNIQUE (machine, name));
CREATE TABLE point (series INTEGER, night INTEGER, status TEXT, value REAL, low REAL, high REAL,
                    rate REAL, unit TEXT, message TEXT, launches BLOB,
                    PRIMARY KEY (series, night)) WITHOUT ROWID;
CREATE TABLE known (key BLOB PRIMARY KEY, steps TEXT) WITHOUT ROWID;
CREATE INDEX of_night ON point (night);
"""
NIGHT = "machine,place,date,sha,state,message,context,notes"
# Machine or driver changed: statistics start anew. (The line stays, with a marker.)
SEGMENT_KEYS = [key for key, (level, _, _) in machines.RULES.items() if level == machines.REFUSE]
SEGMENT_KEYS += ["cl_platform", "cl_driver", "cl_version"]


@dataclass(slots=True)
class Night:
    """One night on one machine; `apart` when its commit is not on the branch (any more)."""

    id: int
    machine: str
    place: str
    date: str
    sha: str
    state: str
    message: str
    context: dict[str, Any]
    notes: list[str]
    position: int | None = None
    apart: bool = False


@dataclass(slots=True)
class Series:
    """One benchmark on one machine; arrays run along the machine's nights (NaN: no value)."""

    machine: str
    name: str
    fields: names.Name
    ids: list[int]  # in the index; several after a rename
    value: np.ndarray  # median time in seconds
    low: np.ndarray
    high: np.ndarray
    rate: np.ndarray  # GFLOP/s, or GB/s where nothing is computed
    unit: str = ""
    status: dict[int, tuple[str, str]] = field(default_factory=dict)  # night → not measured, why
    formerly: list[str] = field(default_factory=list)

    @property
    def last(self) -> int | None:
        """The last night with a value."""
        there = np.flatnonzero(np.isfinite(self.value))
        return int(there[-1]) if len(there) else None


@dataclass
class Machine:
    """Nights in order, those apart from the branch at the end, and the series over them."""

    name: str
    nights: list[Night]
    series: list[Series]

    @cached_property
    def on_branch(self) -> int:
        """Nights before those apart."""
        return sum(not night.apart for night in self.nights)

    @cached_property
    def measured(self) -> list[int]:
        """Nights of the branch on which rows could have been measured."""
        return [i for i in range(self.on_branch) if self.nights[i].state != "did not build"]

    def segments(self, series: Series) -> list[int]:
        """Where statistics start anew: the first night of every machine or driver, then the end."""
        there = np.flatnonzero(np.isfinite(series.value[: self.on_branch]))
        prints = self._fingerprints["GPU" if series.fields.side == "GPU" else ""][there]
        return [0, *there[1:][prints[1:] != prints[:-1]].tolist(), self.on_branch]

    @cached_property
    def _fingerprints(self) -> dict[str, np.ndarray]:
        """side → a number per night; equal numbers are one population."""
        found = {}
        for side in ("", "GPU"):
            keys = [key for key in SEGMENT_KEYS if machines.RULES[key][1] in ("", side)]
            known: dict[tuple[str, ...], int] = {}
            texts = [tuple(str(n.context.get(k, "")) for k in keys) for n in self.nights]
            found[side] = np.array([known.setdefault(text, len(known)) for text in texts])
        return found


@dataclass(slots=True)
class History:
    machines: list[Machine]
    order: str  # a sentence: what the nights are ordered by
    warnings: list[str]
    commits: list[str]

    def unmeasured(self, machine: Machine) -> list[str]:
        """Commits from the machine's first night on that have no night: gaps, not zeros."""
        measured = {night.position for night in machine.nights if night.position is not None}
        if not measured:
            return []
        rest = range(min(measured), len(self.commits))
        return [self.commits[i] for i in rest if i not in measured]


# ---- files → index ----------------------------------------------------------------------------


class Index:
    """The SQLite file; one connection, transactions around every night."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.db = self._open()

    def _open(self) -> sqlite3.Connection:
        try:
            db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            version = db.execute("PRAGMA user_version").fetchone()[0]
        except sqlite3.DatabaseError as error:
            raise UserError(
                f"{self.path}: not a usable index ({error}); delete it, it is rebuilt from results"
            ) from error
        if version not in (0, VERSION):
            db.close()
            self.path.unlink()
            return self._open()
        db.execute("PRAGMA synchronous = OFF")  # rebuilt from the raw files if the machine dies
        if version == 0:
            self._create(db)
        return db

    @staticmethod
    def _create(db: sqlite3.Connection) -> None:
        """Makes the tables, unless another writer has just done so."""
        db.execute("BEGIN IMMEDIATE")
        if db.execute("PRAGMA user_version").fetchall() == [(0,)]:
            for statement in SCHEMA.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute("COMMIT")

    def ingest(self, results: Path, say: Callable[[str], None] = lambda line: None) -> int:
        """Takes in what is new or changed under `results`, forgets what is gone; new nights."""
        if not results.is_dir():
            raise UserError(f"{results}: no such folder of results")
        known = {
            path: row
            for path, *row in self.db.execute("SELECT path,size,mtime,digest,place FROM file")
        }
        seen, fresh = set(), 0
        for place, machine, files in nights_in(results):
            stamps = {_relative(file, results): file.stat() for file in files}
            seen |= stamps.keys()
            if all(
                path in known and known[path][:2] == [stat.st_size, stat.st_mtime_ns]
                for path, stat in stamps.items()
            ):
                continue
            self._take(results, place, machine, stamps)
            fresh += 1
            say(f"{place}: taken in")
        self._forget({path: known[path][3] for path in known.keys() - seen})
        return fresh

    def _take(self, results: Path, place: str, machine: str, stamps: dict[str, Any]) -> None:
        launches, rows = [], []
        log = journal.read(results / place) if (results / place).is_dir() else journal.Log()
        self.db.execute("BEGIN IMMEDIATE")
        try:
            self._drop(place)
            digests = dict(self.db.execute("SELECT digest, path FROM file WHERE digest != ''"))
            for path, stat in stamps.items():
                message, digest = "", ""
                if path.endswith(journal.NAME):
                    pass
                else:
                    launch, message = _read(results / path)
                    digest = launch.digest if launch else ""
                    if launch and digest in digests:
                        message = f"the same content as {digests[digest]}; counted once"
                        digest = ""
                    elif launch:
                        digests[digest] = path
                        launches.append(launch)
                rows.append((path, stat.st_size, stat.st_mtime_ns, digest, place, message))
            self.db.executemany("INSERT OR REPLACE INTO file VALUES (?,?,?,?,?,?)", rows)
            if launches or log.state:
                self._insert(place, machine, launches, log)
            self.db.execute("COMMIT")
        except BaseException:
            self.db.execute("ROLLBACK")
            raise

    def _insert(self, place: str, machine: str, launches: list[Launch], log: journal.Log) -> None:
        context = merged(launches)
        date = log.date or _date(str(context.get("date", ""))) or ""
        sha = log.sha or str(context.get("git_sha") or context.get("git_commit") or "")
        machine = machine or str(context.get("host_name") or "unknown machine")
        notes = list(log.notes)
        notes += sorted({w for launch in launches for w in launch.warnings})[:20]
        cut = any(launch.partial for launch in launches)
        state = log.state or ("partial run" if cut else "complete")
        cursor = self.db.execute(
            f"INSERT INTO night ({NIGHT}) VALUES (?,?,?,?,?,?,?,?)",
            (machine, place, date, sha, state, log.message, json.dumps(context), json.dumps(notes)),
        )
        night = cursor.lastrowid
        for key, sample in samples.collect(launches).items():
            self.db.execute(
                "INSERT OR IGNORE INTO series (machine,name) VALUES (?,?)", (machine, key)
            )
            (series,) = self.db.execute(
                "SELECT id FROM series WHERE machine=? AND name=?", (machine, key)
            ).fetchone()
            self.db.execute(
                "INSERT INTO point VALUES (?,?,?,?,?,?,?,?,?,?)",
                (series, night, *_point(sample, _rates(launches, key))),
            )

    def _drop(self, place: str) -> None:
        for (night,) in self.db.execute("SELECT id FROM night WHERE place=?", (place,)).fetchall():
            self.db.execute("DELETE FROM point WHERE night=?", (night,))
            self.db.execute("DELETE FROM night WHERE id=?", (night,))
        self.db.execute("DELETE FROM file WHERE place=?", (place,))

    def _forget(self, gone: dict[str, str]) -> None:
        for place in set(gone.values()):
            self.db.execute("BEGIN IMMEDIATE")
            self._drop(place)
            self.db.execute("COMMIT")

    def remembered(self, values: np.ndarray, margin: float) -> list[Step]:
        """`steps.find`, done once for the same values: a night changes few series."""
        key = hashlib.sha256(values.tobytes() + repr((steps.VERSION, margin)).encode()).digest()
        row = self.db.execute("SELECT steps FROM known WHERE key=?", (key,)).fetchone()
        if row:
            return [Step(*step) for step in json.loads(row[0])]
        found = steps.find([None if math.isnan(v) else v for v in values.tolist()], margin)
        text = json.dumps([astuple(step) for step in found])
        self.db.execute("INSERT OR REPLACE INTO known VALUES (?,?)", (key, text))
        return found

    def complaints(self) -> list[str]:
        """One sentence per file that was not used."""
        rows = self.db.execute("SELECT path, message FROM file WHERE message != '' ORDER BY path")
        return [m if m.startswith(p) else f"{p}: {m}" for p, m in rows]

    def launches(self, ids: Sequence[int]) -> dict[int, bytes]:
        """night id → the times of its launches (float64, little-endian), of one series."""
        marks = ",".join("?" * len(ids))
        rows = self.db.execute(f"SELECT night, launches FROM point WHERE series IN ({marks})", ids)
        return {night: blob for night, blob in rows if blob}


def index_of(results: Path) -> Path:
    """Where the index lives: under .cache; every folder but the project's own has another one."""
    own = results.resolve() == environment.ROOT / "results"
    tail = "" if own else "-" + hashlib.sha256(str(results.resolve()).encode()).hexdigest()[:8]
    return environment.ROOT / ".cache" / f"history{tail}.sqlite"


def nights_in(results: Path) -> Iterator[tuple[str, str, list[Path]]]:
    """(place, machine or "", files) of every night under a results folder."""
    for folder in sorted([results, *(p for p in results.rglob("*") if p.is_dir())]):
        if folder.name.endswith(".partial") or any(
            p.name.endswith(".partial") for p in folder.parents
        ):
            continue
        files = sorted(
            f for f in folder.iterdir() if f.is_file() and f.name.endswith((".json", ".json.gz"))
        )
        log = folder / journal.NAME
        place = _relative(folder, results)
        if log.exists() or (files and NIGHT_FOLDER.search(folder.name)):
            machine = _relative(folder.parent, results) if folder != results else ""
            yield place, "" if machine == "." else machine, files + ([log] if log.exists() else [])
        else:
            for file in files:
                yield _relative(file, results), "" if place == "." else place, [file]


def merged(launches: Sequence[Launch]) -> dict[str, Any]:
    """One context of all launches of a night: CPU and OpenCL sides know different keys."""
    context: dict[str, Any] = {}
    for launch in launches:
        for key, value in launch.context.items():
            if isinstance(value, (str, int, float, bool)) and value != "":
                context.setdefault(key, value)
    return context


def _read(file: Path) -> tuple[Launch | None, str]:
    try:
        launch = reading.parse(reading.load(str(file)), file.name, salvage=True)
    except UserError as error:
        return None, str(error)
    return launch, "PARTIAL RUN: " + launch.warnings[-1] if launch.partial else ""


def _rates(launches: Sequence[Launch], key: str) -> tuple[float | None, str]:
    for unit in ("GFLOP/s", "GB/s"):
        rates = [
            rate
            for launch in launches
            for row in launch.rows
            if row.key == key
            and row.status == "ok"
            and row.kind == "iteration"
            and (rate := row.counters.get(unit))
        ]
        if rates:
            return float(np.median(rates)), unit
    return None, ""


def _point(sample: samples.Sample, rate: tuple[float | None, str]) -> tuple[Any, ...]:
    if sample.status != "ok" or not sample.values:
        status = sample.status if sample.status != "ok" else "invalid"
        return status, None, None, None, None, "", sample.message, None
    values = np.array(sample.values, dtype="<f8")
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    return "ok", middle, low, high, *rate, "", values.tobytes()


def _relative(path: Path, base: Path) -> str:
    return str(path.relative_to(base))


def _date(text: str) -> str:
    """Any ISO date → UTC, to the second; "" when it is none."""
    try:
        date = datetime.fromisoformat(text.strip())
    except ValueError:
        return ""
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return date.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# ---- index → history --------------------------------------------------------------------------


def load(index: Index, order: "Order", aliases: dict[str, str] | None = None) -> History:
    """Everything of the index, nights in order, renamed series joined."""
    nights = [
        Night(*row[:7], json.loads(row[7]), json.loads(row[8]))
        for row in index.db.execute(f"SELECT id,{NIGHT} FROM night")
    ]
    sentence = order.place(nights)
    soon = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    for night in nights:
        if night.date > soon:
            night.notes.append(f"its clock is in the future: {night.date}")
        if not night.date:
            night.notes.append("it has no date")
    by_machine: dict[str, list[Night]] = {}
    for night in sorted(nights, key=lambda n: (n.apart, n.position or 0, n.date, n.place)):
        by_machine.setdefault(night.machine, []).append(night)
    found = [
        Machine(name, mine, _series(index, name, mine, aliases or {}))
        for name, mine in sorted(by_machine.items())
    ]
    return History(found, sentence, index.complaints(), order.commits)


def _series(
    index: Index, machine: str, nights: list[Night], aliases: dict[str, str]
) -> list[Series]:
    place = {night.id: i for i, night in enumerate(nights)}
    found: dict[str, Series] = {}
    by_id: dict[int, Series] = {}
    for id_, name in index.db.execute("SELECT id, name FROM series WHERE machine=?", (machine,)):
        now = renamed(name, aliases)
        if now not in found:
            blank = [np.full(len(nights), np.nan) for _ in range(4)]
            found[now] = Series(machine, now, names.parse(now), [], *blank)
        by_id[id_] = found[now]
        found[now].ids.append(id_)
        if now != name:
            found[now].formerly.append(name)
    rows = index.db.execute(
        "SELECT p.series,p.night,p.status,p.value,p.low,p.high,p.rate,p.unit,p.message "
        "FROM point p JOIN series s ON s.id = p.series WHERE s.machine=?",
        (machine,),
    )
    for id_, night, status, value, low, high, rate, unit, message in rows:
        series, at = by_id[id_], place[night]
        if status != "ok":
            series.status[at] = (status, message)
            continue
        series.value[at], series.low[at], series.high[at] = value, low, high
        if rate is not None:
            series.rate[at], series.unit = rate, unit
    there = [s for s in found.values() if s.status or np.isfinite(s.value).any()]
    return sorted(there, key=lambda s: s.name)


def renamed(name: str, aliases: dict[str, str]) -> str:
    """The name of today; a circle of renames is a sentence, not a hang."""
    seen = [name]
    while seen[-1] in aliases:
        seen.append(aliases[seen[-1]])
        if seen[-1] in seen[:-1]:
            raise UserError(f"the map of renames goes in a circle: {' → '.join(seen)}")
    return seen[-1]


def read_aliases(path: Path) -> dict[str, str]:
    """A JSON object of old name → new name."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(document, dict) or not all(isinstance(v, str) for v in document.values()):
        raise UserError(f"{path}: not an object of old name → new name")
    return document


@dataclass(slots=True)
class Order:
    """Commits oldest first, from git or a file; none: nights are ordered by date."""

    commits: list[str] = field(default_factory=list)
    source: str = ""

    def place(self, nights: Sequence[Night]) -> str:
        """Sets `position` and `apart` of every night; says in a sentence what the order is."""
        for night in nights:
            night.position = self._position(night.sha)
        if not any(night.position is not None for night in nights):
            why = (
                "none of the commits is on the branch"
                if self.commits
                else "there is no list of commits"
            )
            for night in nights:
                night.position = None
            return f"Nights are in order of date: {why}."
        for night in nights:
            night.apart = night.position is None
        return f"Nights are in the order of commits ({self.source})."

    def _position(self, sha: str) -> int | None:
        """Exactly, else by an abbreviated id on either side."""
        if sha in self.commits:
            return self.commits.index(sha)
        if len(sha) < 7:
            return None
        fits = (i for i, full in enumerate(self.commits) if full.startswith(sha))
        return next(fits, None)
