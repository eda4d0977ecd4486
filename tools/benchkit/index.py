"""Result files → an index: one SQLite file, made from the raw JSON and deleted at any time.

Every file is taken in once by content. A night is a folder (`<date>_<sha8>/`, one file a launch,
and its journal) or a single file. What cannot be used is kept as a sentence; the rest stands.
"""

import hashlib
import itertools
import json
import math
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchkit import environment, journal, reading, samples, steps
from benchkit.errors import UserError
from benchkit.reading import Launch
from benchkit.steps import Step

VERSION = 8
NIGHT_NAME = re.compile(r"\d{4}-?\d\d-?\d\d[^_]*_[0-9a-f]{7,40}(?![0-9a-zA-Z])")
# One of several launches: `<date>_<sha8>-003.json`, `<date>_<sha8>-CPU-003.json` of one night, and
# `<date>_<sha8>_2t_3.json`, whose words between underscores tell it from other nights.
LAUNCH_NAME = re.compile(
    rf"({NIGHT_NAME.pattern}(?:_[A-Za-z0-9]+)*?)(?:[-.][A-Za-z0-9]+)?[-._]\d+\.json(?:\.gz)?"
)
# In folders called after a day, numbered files: `1t_BLIS_03.json`, `launch-3.json`.
DATED = re.compile(r"\d{4}-?\d\d-?\d\d(?!\d)")
NUMBERED = re.compile(r"(.*?[A-Za-z0-9])[-._]*\d+\.json(?:\.gz)?")
TWIN = "the same content as"
SUFFIXES = (".json", ".json.gz")
NO_RESULTS = {"aliases.json", "advice.json"}  # what else lies among results
SCHEMA = """
CREATE TABLE file (path TEXT PRIMARY KEY, size INTEGER, mtime INTEGER, digest TEXT,
                   place TEXT, message TEXT);
CREATE TABLE night (id INTEGER PRIMARY KEY, machine TEXT, place TEXT UNIQUE, date TEXT, sha TEXT,
                    state TEXT, message TEXT, context TEXT, notes TEXT);
CREATE TABLE series (id INTEGER PRIMARY KEY, machine TEXT, name TEXT, UNIQUE (machine, name));
CREATE TABLE point (series INTEGER, night INTEGER, status TEXT, value REAL, low REAL, high REAL,
                    rate REAL, unit TEXT, percent REAL, message TEXT,
                    launches BLOB,
                    PRIMARY KEY (series, night)) WITHOUT ROWID;
CREATE TABLE known (key BLOB PRIMARY KEY, steps TEXT) WITHOUT ROWID;
CREATE INDEX of_night ON point (night);
"""
UNITS, OF_ROOF = ("GFLOP/s", "GB/s"), "% of roof"  # counters, the first unit that a row has
Rates = tuple[float | None, str, float | None]  # rate, its unit, the program's own % of roof
NO_RATES: Rates = (None, "", None)
NIGHT = "machine,place,date,sha,state,message,context,notes"


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
        known: dict[str, dict[str, tuple[int, int]]] = {}
        for place, path, *stamp in self.db.execute("SELECT place,path,size,mtime FROM file"):
            known.setdefault(place, {})[path] = tuple(stamp)
        twins = "SELECT place FROM file WHERE message LIKE ?"
        copies = {place for (place,) in self.db.execute(twins, (f"{TWIN}%",))}
        fresh, again = {}, {}
        for place, machine, files in nights_in(results):
            stats = {_relative(file, results): file.stat() for file in files}
            stamps = {path: (stat.st_size, stat.st_mtime_ns) for path, stat in stats.items()}
            if known.get(place) != stamps:
                fresh[place] = machine, stats
                continue
            del known[place]
            if place in copies:
                again[place] = machine, stats
        if known:  # something changed or went: what was its copy may be the only one now
            fresh |= again
        self._forget(known.keys())  # all of it before: a file may only have moved
        for place, (machine, stats) in fresh.items():
            self._take(results, place, machine, stats)
            say(f"{place}: taken in")
        return len(fresh)

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
                        message = f"{TWIN} {digests[digest]}; counted once"
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
        night, rates = cursor.lastrowid, _rates(launches)
        for key, sample in samples.collect(launches).items():
            self.db.execute(
                "INSERT OR IGNORE INTO series (machine,name) VALUES (?,?)", (machine, key)
            )
            (series,) = self.db.execute(
                "SELECT id FROM series WHERE machine=? AND name=?", (machine, key)
            ).fetchone()
            self.db.execute(
                "INSERT INTO point VALUES (?,?,?,?,?,?,?,?,?,?,?)",
                (series, night, *_point(sample, rates.get(key, NO_RATES))),
            )

    def _drop(self, place: str) -> None:
        for (night,) in self.db.execute("SELECT id FROM night WHERE place=?", (place,)).fetchall():
            self.db.execute("DELETE FROM point WHERE night=?", (night,))
            self.db.execute("DELETE FROM night WHERE id=?", (night,))
        self.db.execute("DELETE FROM file WHERE place=?", (place,))

    def _forget(self, gone: Iterable[str]) -> None:
        for place in gone:
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
    """(place, machine or "", files) of every night under a results folder.

    `<date>_<sha8>` names a night: a folder of launches, or numbered files. So do numbered files in
    any folder that begins with a date; its machine is the folder around it. Any other file is one.
    """
    for folder in sorted([results, *(path for path in results.rglob("*") if path.is_dir())]):
        if any(part.endswith(".partial") for part in folder.relative_to(results).parts):
            continue
        log = folder / journal.NAME
        files = [f for f in sorted(folder.iterdir()) if f.is_file() and f.name.endswith(SUFFIXES)]
        files = [file for file in files if file.name not in NO_RESULTS]
        if log.exists() or (files and NIGHT_NAME.fullmatch(folder.name)):
            machine = _relative(folder.parent, results) if folder != results else ""
            yield _relative(folder, results), machine, files + ([log] if log.exists() else [])
            continue
        parts = folder.relative_to(results).parts
        around = tuple(itertools.takewhile(lambda part: not DATED.match(part), parts))
        nights: dict[str, list[Path]] = {}
        for file in files:
            launch = LAUNCH_NAME.fullmatch(file.name)
            if not launch and around != parts:
                launch = NUMBERED.fullmatch(file.name)
            nights.setdefault(launch[1] if launch else file.name, []).append(file)
        for name, launches in nights.items():
            yield _relative(folder / name, results), "/".join(around), launches


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


def _rates(launches: Sequence[Launch]) -> dict[str, Rates]:
    """The rate counters of all benchmarks, in one pass over the rows."""
    seen: dict[str, dict[str, list[float]]] = {}
    for launch in launches:
        for row in launch.rows:
            if row.status != "ok" or row.kind != "iteration":
                continue
            for unit in (*UNITS, OF_ROOF):
                if value := row.counters.get(unit):
                    seen.setdefault(row.key, {}).setdefault(unit, []).append(value)
    return {key: _middle(values) for key, values in seen.items()}


def _middle(values: dict[str, list[float]]) -> Rates:
    unit = next((unit for unit in UNITS if unit in values), "")
    rate = float(np.median(values[unit])) if unit else None
    percent = float(np.median(values[OF_ROOF])) if OF_ROOF in values else None
    return rate, unit, percent


def _point(sample: samples.Sample, rates: Rates) -> tuple[Any, ...]:
    if sample.status != "ok" or not sample.values:
        status = sample.status if sample.status != "ok" else "invalid"
        return status, None, None, None, *NO_RATES, sample.message, None
    values = np.array(sample.values, dtype="<f8")
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    return "ok", middle, low, high, *rates, "", values.tobytes()


def _relative(path: Path, base: Path) -> str:
    return "" if path == base else str(path.relative_to(base))


def _date(text: str) -> str:
    """Any ISO date → UTC, to the second; "" when it is none."""
    try:
        date = datetime.fromisoformat(text.strip())
    except ValueError:
        return ""
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return date.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
