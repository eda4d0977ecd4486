"""An index → the history: nights in the order of commits, series of points along them.

Renames, the order of commits and nights apart from the branch are decided here, not in the index,
so that they can change without reading a file again.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchkit import machines, names
from benchkit.errors import UserError
from benchkit.index import NIGHT, Index

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
    percent: np.ndarray  # of the roof, as the program said it
    unit: str = ""
    status: dict[int, tuple[str, str]] = field(default_factory=dict)  # night → not measured, why
    formerly: list[str] = field(default_factory=list)


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

    def last(self, series: Series) -> int | None:
        """The last night with a value: of the branch, or, when there is none, of those apart."""
        there = np.flatnonzero(np.isfinite(series.value))
        mine = there[there < self.on_branch]
        found = mine if len(mine) else there
        return int(found[-1]) if len(found) else None

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
            night.apart |= night.position is None  # it would be the last night for ever
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
            blank = [np.full(len(nights), np.nan) for _ in range(5)]
            found[now] = Series(machine, now, names.parse(now), [], *blank)
        by_id[id_] = found[now]
        found[now].ids.append(id_)
        if now != name:
            found[now].formerly.append(name)
    for id_, series in by_id.items():
        _fill(index, id_, series, place)
    there = [s for s in found.values() if s.status or np.isfinite(s.value).any()]
    return sorted(there, key=lambda s: s.name)


def _fill(index: Index, id_: int, series: Series, place: dict[int, int]) -> None:
    """Numbers and texts by queries of their own: most of a year's points have no text."""
    numbers = "SELECT night,value,low,high,rate,percent FROM point WHERE series=? AND status='ok'"
    rows = index.db.execute(numbers, (id_,)).fetchall()
    if rows:
        ok = np.array(rows, dtype=float)
        at = [place[row[0]] for row in rows]
        arrays = (series.value, series.low, series.high, series.rate, series.percent)
        for array, column in zip(arrays, ok[:, 1:].T, strict=True):
            array[at] = column
        units = "SELECT unit FROM point WHERE series=? AND unit!='' ORDER BY night DESC LIMIT 1"
        ((series.unit,),) = index.db.execute(units, (id_,)).fetchall() or [("",)]
    texts = "SELECT night,status,message FROM point WHERE series=? AND status!='ok'"
    for night, status, message in index.db.execute(texts, (id_,)):
        series.status[place[night]] = (status, message)


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
    cut: bool = False  # the clone is shallow: what it does not know may be on the branch

    def place(self, nights: Sequence[Night]) -> str:
        """Sets `position` and `apart` of every night; says in a sentence what the order is."""
        for night in nights:
            night.position = self._position(night.sha)
        if why := self._unusable(nights):
            for night in nights:
                night.position = None
            return f"Nights are in order of date: {why}."
        for night in nights:
            night.apart = night.position is None
        return f"Nights are in the order of commits ({self.source})."

    def _unusable(self, nights: Sequence[Night]) -> str:
        """Why the commits give no order; "" when they do."""
        known = [night.position is not None for night in nights]
        if self.cut and not all(known):
            return "this clone is shallow (git fetch --unshallow brings the order of commits)"
        if not any(known):
            none = "none of the commits is on the branch"
            return none if self.commits else "there is no list of commits"
        return ""

    def _position(self, sha: str) -> int | None:
        """Exactly, else by an abbreviated id on either side."""
        if sha in self.commits:
            return self.commits.index(sha)
        if len(sha) < 7:
            return None
        fits = (i for i, full in enumerate(self.commits) if full.startswith(sha))
        return next(fits, None)
