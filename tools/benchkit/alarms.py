"""A history → alarms: steps with a state, a cause and what else changed that night.

provisional (one or two nights) → confirmed (three) → acknowledged (by a file in git) or resolved
(a later step went back). A step that a reference row makes as well is the machine's, not the
code's. Only confirmed slow-downs of the code count as regressions.
"""

import itertools
import math
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchkit import margins, steps
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
    """How strict alarms are, which rows are references, and what is already known."""

    limits: tuple[margins.Rule, ...] = tuple(margins.defaults())
    reference: re.Pattern[str] = re.compile("^Peak/")
    known: tuple[Acknowledgement, ...] = ()


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
    cause: str = CODE
    why: str = ""  # the reference that moved, or the reason of the acknowledgement
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
        for series in machine.series:
            for alarm in _of_series(machine, series, rules, search):
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


# ---- one series -------------------------------------------------------------------------------


def _search(values: np.ndarray, margin: float) -> list[steps.Step]:
    return steps.find([None if math.isnan(v) else v for v in values.tolist()], margin)


def _of_series(machine: Machine, series: Series, rules: Rules, search: Search) -> list[Alarm]:
    margin = margins.margin(rules.limits, series.name, "time")
    bounds = machine.segments(series)
    found: list[Alarm] = []
    for start, end in itertools.pairwise(bounds):
        here = [
            Alarm(
                machine.name,
                series.name,
                start + step.index,
                _previous(series, start + step.index),
                step.before,
                step.after,
                CONFIRMED if step.confirmed else PROVISIONAL,
            )
            for step in search(series.value[start:end], margin)
        ]
        _resolve(here, margin)
        found += here
    return found


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
