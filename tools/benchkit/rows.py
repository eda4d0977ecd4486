"""What a run consists of: launches of rows, and how an entry of the JSON becomes a row.

Contract: times are seconds. A row that was not measured (error, skipped, broken timer, unknown
unit) has status ≠ "ok" and no time, so that nothing can mistake its 0.0 for a measurement. Every
complaint names the position.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchkit import names

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
# A 64-bit nanosecond counter that ran backwards reads as 2^64 − something: no time is that long.
IMPOSSIBLE_SECONDS = 2.0**63 * 1e-9
FIELDS = frozenset(
    [
        "name",
        "family_index",
        "per_family_instance_index",
        "run_name",
        "run_type",
        "repetitions",
        "repetition_index",
        "threads",
        "iterations",
        "real_time",
        "cpu_time",
        "time_unit",
        "aggregate_name",
        "aggregate_unit",
        "error_occurred",
        "error_message",
        "skipped",
        "skip_message",
        "label",
        "big_o",
        "cpu_coefficient",
        "real_coefficient",
        "rms",
    ]
)


@dataclass(slots=True)
class Row:
    """One line of a run: a repetition, an aggregate or a complexity fit."""

    name: str
    run_name: str
    fields: names.Name
    kind: str  # "iteration", "aggregate" or "fit"
    status: str = "ok"  # "ok", "error", "skipped" or "invalid" (the timer or the file is broken)
    message: str = ""
    aggregate: str = ""
    repetition: int | None = None
    repetitions: int | None = None
    threads: int | None = None
    iterations: int | None = None
    seconds: float | None = None  # by the row's own clock
    cpu_seconds: float | None = None
    fraction: float | None = None  # of aggregates that are ratios (cv); never scaled
    counters: dict[str, float | None] = field(default_factory=dict)
    label: str = ""
    family: tuple[int, int] = (-1, -1)
    occurrence: int = 0  # > 0 when one file registers the same name more than once
    position: str = ""

    @property
    def key(self) -> str:
        """The identity across files: the run's name, numbered when it is not unique."""
        return self.run_name + (f" #{self.occurrence + 1}" if self.occurrence else "")

    @property
    def suspicious(self) -> bool:
        """Whether the program itself says that this time beats the machine's measured peak."""
        return self.label.startswith("suspicious")


@dataclass(slots=True)
class Launch:
    """One process launch: its context (flat strings and the library's own fields) and its rows."""

    path: str
    context: dict[str, Any]
    rows: list[Row]
    warnings: list[str] = field(default_factory=list)
    partial: bool = False  # the run was killed; these are the rows it had finished
    digest: str = ""
    session: str = ""  # of the sides that took turns, when they did, ...
    index: int | None = None  # ... and the place in their order
    selection: str = ""  # the filter that chose its rows, where one did

    @property
    def identity(self) -> str:
        return str(self.context.get("launch_id") or self.digest) + self.selection


def row_of(entry: Any, position: str, warnings: list[str]) -> Row:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        warnings.append(f"{position}: a row without a name; not used")
        return Row("", "", names.Name(""), "iteration", "invalid", "no name", position=position)
    name = entry["name"]
    run_name = entry.get("run_name") if isinstance(entry.get("run_name"), str) else name
    row = Row(name, run_name, names.parse(run_name), _kind(entry), position=f"{position} '{name}'")
    row.aggregate = _text(entry.get("aggregate_name")) or ("BigO" if "big_o" in entry else "")
    row.repetition, row.repetitions = (
        _whole(entry.get("repetition_index")),
        _whole(entry.get("repetitions")),
    )
    row.threads, row.label = _whole(entry.get("threads")), _text(entry.get("label"))
    row.family = (_index(entry, "family_index"), _index(entry, "per_family_instance_index"))
    row.status, row.message = _status(entry)
    if row.status == "ok":
        row.iterations = _iterations(entry.get("iterations"), row, warnings)
    row.counters = _counters(entry, row, warnings)
    if row.status == "ok" and row.kind != "fit":
        _set_times(entry, row, warnings)
    return row


def _kind(entry: dict[str, Any]) -> str:
    if "big_o" in entry or "rms" in entry:
        return "fit"
    return "aggregate" if entry.get("run_type") == "aggregate" else "iteration"


def _status(entry: dict[str, Any]) -> tuple[str, str]:
    if entry.get("error_occurred"):
        message = _text(entry.get("error_message")) or "no message"
        # Before 1.8 the library knows errors only: the suite says which of them are skips.
        if message.startswith("skipped: "):
            return "skipped", message.removeprefix("skipped: ")
        return "error", message.removeprefix("failed: ")
    if entry.get("skipped"):
        return "skipped", _text(entry.get("skip_message")) or "no message"
    return "ok", ""


def _set_times(entry: dict[str, Any], row: Row, warnings: list[str]) -> None:
    if entry.get("aggregate_unit") == "percentage" or row.aggregate == "cv":
        row.fraction = _finite(entry.get("real_time"))
        return
    spread = row.kind == "aggregate" and row.aggregate not in ("mean", "median")
    row.seconds, complaint = _seconds(entry, "real_time", spread)
    row.cpu_seconds, _ = _seconds(entry, "cpu_time", True)
    if complaint:
        row.status, row.message = "invalid", complaint
        row.seconds = row.cpu_seconds = None
        warnings.append(f"{row.position}: {complaint}; the row is not used")


def _seconds(entry: dict[str, Any], key: str, zero_allowed: bool) -> tuple[float | None, str]:
    """The time in seconds, or why it is none."""
    value, unit = entry.get(key), entry.get("time_unit")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return (
            None,
            f"{key} is {json.dumps(value)[:40]}, not a time" if key in entry else f"no {key}",
        )
    if not isinstance(unit, str) or unit not in UNITS:
        return None, f"time_unit {unit!r} is not known" if unit is not None else "no time_unit"
    try:
        seconds = float(value) * UNITS[unit]
    except OverflowError:
        seconds = math.inf
    if value == 0 and zero_allowed:
        return 0.0, ""
    if not math.isfinite(seconds) or seconds <= 0 or seconds >= IMPOSSIBLE_SECONDS:
        return None, f"timer error: {key} is {value!r} {unit}"
    return seconds, ""


def _counters(entry: dict[str, Any], row: Row, warnings: list[str]) -> dict[str, float | None]:
    counters: dict[str, float | None] = {}
    for key, value in entry.items():
        if key in FIELDS or isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        counters[key] = _finite(value)
        if counters[key] is None:
            warnings.append(f"{row.position}: counter '{key}' is {value!r}; left empty")
    return counters


def _iterations(value: Any, row: Row, warnings: list[str]) -> int | None:
    if isinstance(value, float) and not value.is_integer():
        warnings.append(
            f"{row.position}: iterations {value!r} is not a whole number: a locale's thousands "
            "separator? Its other numbers may be wrong as well; run under LC_ALL=C"
        )
        row.status, row.message = "invalid", f"iterations {value!r} is not a whole number"
    return _whole(value)


def number_duplicates(rows: Sequence[Row]) -> None:
    """The same name registered twice in one file stays two benchmarks, in order of registration."""
    families: dict[str, list[tuple[int, int]]] = {}
    for row in rows:
        seen = families.setdefault(row.run_name, [])
        if row.kind == "iteration" and row.family not in seen:
            seen.append(row.family)
    for row in rows:
        seen = sorted(families[row.run_name])
        row.occurrence = seen.index(row.family) if row.family in seen else 0


def _whole(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if math.isfinite(value) and value == int(value) else None


def _index(entry: dict[str, Any], key: str) -> int:
    value = _whole(entry.get(key))
    return -1 if value is None else value


def _finite(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
