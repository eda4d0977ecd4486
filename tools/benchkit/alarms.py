"""A history → alarms: steps with a state, a cause and what else changed that night.

provisional (one or two nights, or not yet sure among all series of the night) → confirmed (three
nights and sure) → acknowledged (by a file in git) or resolved (a later step went back). A step that
a reference row makes as well is the machine's, not the code's. Only confirmed slow-downs of the
code count as regressions.
"""

import itertools
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchkit import margins, statistics, steps
from benchkit.branch import Between
from benchkit.errors import UserError
from benchkit.history import History, Machine, Night, Series
from benchkit.index import Index
from benchkit.machines import RULES

PROVISIONAL, CONFIRMED, ACKNOWLEDGED, RESOLVED = (
    "provisional",
    "confirmed",
    "acknowledged",
    "resolved",
)
CODE, MACHINE = "code", "machine"
ACK_KEYS = {"benchmarks", "commit", "reason", "machine"}
Search = Callable[[np.ndarray, float], list[steps.Step]]
AROUND = 10  # nights on either side that tell whether a reference row moved


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    benchmarks: re.Pattern[str]
    commit: str
    reason: str
    machine: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """How strict alarms are, which rows are references, and what is already known.

    `level` bounds the share of false ones among the steps of a night (Benjamini–Hochberg over every
    series that it measured); 1 takes each series for itself.
    """

    limits: tuple[margins.Rule, ...] = tuple(margins.defaults())
    reference: re.Pattern[str] = re.compile("^Peak/")
    known: tuple[Acknowledgement, ...] = ()
    level: float = 1e-3


@dataclass(slots=True)
class Alarm:
    """One step of one series, at place `night` of the machine's nights; `since`: the one before."""

    machine: str
    series: str
    night: int
    since: int
    before: float
    after: float
    state: str
    p: float | None  # of noise alone, after correction; None: fewer nights than a test needs
    cause: str = CODE
    why: str = ""  # the reference that moved, why it is not sure, or the acknowledgement's reason
    resolved: int | None = None
    changed: list[str] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        return self.after / self.before

    @property
    def slower(self) -> bool:
        return self.after > self.before

    @property
    def regression(self) -> bool:
        """What a nightly run fails on."""
        return self.state == CONFIRMED and self.slower and self.cause == CODE


def find(
    history: History, rules: Rules, between: Between | None = None, index: Index | None = None
) -> list[Alarm]:
    """All alarms of all machines, worst first: open regressions, then by size.

    With an index what it remembers is not computed again.
    """
    search = index.remembered if index else _search
    found = []
    for machine in history.machines:
        references = [s for s in machine.series if rules.reference.search(s.name)]
        for series, alarm in _of_machine(machine, rules, search):
            _blame(alarm, machine, series, references)
            _acknowledge(alarm, machine, rules, history.commits)
            nights = machine.nights[alarm.since], machine.nights[alarm.night]
            alarm.changed = changes(*nights, series.fields.side)
            if between:
                alarm.changed += _code(between, *nights)
            found.append(alarm)
    return sorted(found, key=_severity)


def changes(old: Night, new: Night, side: str = "GPU") -> list[str]:
    """Every context key on which two nights differ, as a sentence; nothing where one is silent."""
    return [
        f"{what}: {old.context[key]} → {new.context[key]}"
        for key, (_, concerns, what) in RULES.items()
        if concerns in ("", side)
        and key in old.context
        and key in new.context
        and str(old.context[key]) != str(new.context[key])
    ]


def read_acknowledgements(path: Path) -> tuple[Acknowledgement, ...]:
    """[[acknowledged]] tables: benchmarks (regex), commit (of the step), reason, machine."""
    if not path.exists():
        return ()
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read as TOML: {error}") from error
    if unknown := document.keys() - {"acknowledged"}:
        raise UserError(
            f"{path}: unknown key '{sorted(unknown)[0]}' (only [[acknowledged]] tables)"
        )
    entries = document.get("acknowledged", [])
    return tuple(
        _acknowledgement(e, f"{path}: [[acknowledged]] {i}") for i, e in enumerate(entries, 1)
    )


# ---- the steps of one machine -----------------------------------------------------------------


def _search(values: np.ndarray, margin: float) -> list[steps.Step]:
    return steps.find([None if math.isnan(v) else v for v in values.tolist()], margin)


def _of_machine(machine: Machine, rules: Rules, search: Search) -> Iterator[tuple[Series, Alarm]]:
    """The steps of all series, judged together: which are sure, which are taken back."""
    margin = {s.name: margins.margin(rules.limits, s.name, "time") for s in machine.series}
    pieces = [
        (series, piece)
        for series in machine.series
        for piece in _of_series(machine, series, margin[series.name], search)
    ]
    _doubt(machine, [alarm for _, piece in pieces for alarm in piece], rules.level)
    for series, piece in pieces:
        last = max((alarm.night for alarm in piece if alarm.p is not None), default=None)
        sure = [a for a in piece if a.state == CONFIRMED or a.p is None or a.night == last]
        _resolve(sure, margin[series.name])  # what was over before it was sure was noise
        yield from ((series, alarm) for alarm in sure)


def _doubt(machine: Machine, found: Sequence[Alarm], level: float) -> None:
    """Takes confirmation from steps that noise may well have made among so many series."""
    by_night: dict[int, list[Alarm]] = {}
    for alarm in found:
        if alarm.p is not None:
            by_night.setdefault(alarm.night, []).append(alarm)
    for night, mine in by_night.items():
        family = sum(math.isfinite(series.value[night]) for series in machine.series)
        chances = [alarm.p for alarm in mine] + [1.0] * (family - len(mine))
        for alarm, alarm.p in zip(mine, statistics.adjust(chances), strict=False):
            if alarm.p > level:
                alarm.state = PROVISIONAL
                alarm.why = f"not yet sure among {family} series (p {alarm.p:.2g})"


def _of_series(
    machine: Machine, series: Series, margin: float, search: Search
) -> Iterator[list[Alarm]]:
    """Its steps, a list for each piece between changes of machine or driver."""
    for start, end in itertools.pairwise(machine.segments(series)):
        yield [
            Alarm(
                machine.name,
                series.name,
                start + step.index,
                _previous(series, start + step.index),
                step.before,
                step.after,
                CONFIRMED if step.confirmed else PROVISIONAL,
                step.p,
            )
            for step in search(series.value[start:end], margin)
        ]


def _previous(series: Series, at: int) -> int:
    return int(np.flatnonzero(np.isfinite(series.value[:at]))[-1])


def _resolve(alarms: Sequence[Alarm], margin: float) -> None:
    """A step is resolved when a later one brings the level back, or beyond, the old one."""
    for i, alarm in enumerate(alarms):
        for later in alarms[i + 1 :]:
            back = later.after / alarm.before
            gone = back <= 1 + margin if alarm.slower else back >= 1 / (1 + margin)
            if later.state == CONFIRMED and gone:
                alarm.state, alarm.resolved = RESOLVED, later.night
                break


def _blame(alarm: Alarm, machine: Machine, series: Series, references: Sequence[Series]) -> None:
    if series in references:
        alarm.cause, alarm.why = MACHINE, "this is a reference row"
        return
    size = math.log(alarm.ratio)
    for reference in references:
        if reference.fields.side not in ("", series.fields.side):
            continue
        moved = _shift(reference, alarm.night, machine.on_branch)
        if moved * size > 0 and abs(moved) >= abs(size) / 2:
            alarm.cause = MACHINE
            alarm.why = f"{reference.name} moved by {(math.exp(moved) - 1) * 100:+.1f} % as well"
            return


def _shift(series: Series, at: int, end: int) -> float:
    """log(after/before) of the medians around a night."""
    before, after = series.value[:at], series.value[at:end]
    before, after = before[np.isfinite(before)][-AROUND:], after[np.isfinite(after)][:AROUND]
    if not len(before) or not len(after):
        return 0.0
    return math.log(float(np.median(after)) / float(np.median(before)))


def _acknowledge(alarm: Alarm, machine: Machine, rules: Rules, commits: Sequence[str]) -> None:
    if alarm.state != CONFIRMED:
        return
    old, new = machine.nights[alarm.since], machine.nights[alarm.night]
    suspects = [new.sha]
    if old.position is not None and new.position is not None:
        suspects += commits[old.position + 1 : new.position + 1]
    for known in rules.known:
        same_machine = known.machine in ("", machine.name)
        here = any(sha.startswith(known.commit) for sha in suspects)
        if same_machine and here and known.benchmarks.search(alarm.series):
            alarm.state, alarm.why = ACKNOWLEDGED, known.reason
            return


def _code(between: Between, old: Night, new: Night) -> list[str]:
    commits, files = between.commits(old.sha, new.sha), between.files(old.sha, new.sha)
    said = [f"commit {line}" for line in commits]
    if not said and old.sha != new.sha:
        said = [f"commits after {old.sha[:8]} up to {new.sha[:8]}"]
    return said + ([f"files: {', '.join(files)}"] if files else [])


def _severity(alarm: Alarm) -> tuple[int, bool, float]:
    order = (CONFIRMED, PROVISIONAL, ACKNOWLEDGED, RESOLVED)
    return order.index(alarm.state), not alarm.regression, -abs(math.log(alarm.ratio))


def _acknowledgement(entry: object, position: str) -> Acknowledgement:
    if not isinstance(entry, dict):
        raise UserError(f"{position}: not a table")
    if unknown := entry.keys() - ACK_KEYS:
        raise UserError(f"{position}: unknown key '{sorted(unknown)[0]}'")
    for key in ("benchmarks", "commit", "reason"):
        if not isinstance(entry.get(key), str) or not entry[key].strip():
            raise UserError(f"{position}: '{key}' is missing or not a text")
    try:
        pattern = re.compile(entry["benchmarks"])
    except re.error as error:
        raise UserError(f"{position}: 'benchmarks' is not a regular expression: {error}") from error
    return Acknowledgement(pattern, entry["commit"], entry["reason"], entry.get("machine", ""))
