"""Google Benchmark JSON (1.5 – 1.9) → launches of rows: the only module that knows the file format.

Contract: one file is one process launch. Times are seconds. A row that was not measured (error,
skipped, broken timer, unknown unit) has status ≠ "ok" and no time, so that nothing can mistake its
0.0 for a measurement. Every complaint names the file and the position in it.
"""

import glob
import gzip
import hashlib
import json
import math
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchkit import names
from benchkit.errors import UserError

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
# A 64-bit nanosecond counter that ran backwards reads as 2^64 − something: no time is that long.
IMPOSSIBLE_SECONDS = 2.0**63 * 1e-9
FIELDS = frozenset(
    "name family_index per_family_instance_index run_name run_type repetitions repetition_index "
    "threads iterations real_time cpu_time time_unit aggregate_name aggregate_unit error_occurred "
    "error_message skipped skip_message label big_o cpu_coefficient real_coefficient rms".split()
)
# How files of other tools begin: (a test on the parsed document, what it is).
RELATIVES = (
    (lambda d: isinstance(d, dict) and "machine_info" in d, "pytest-benchmark output"),
    (lambda d: isinstance(d, dict) and {"devices", "meta"} <= d.keys(), "nvbench output"),
    (lambda d: isinstance(d, dict) and _has_key(d.get("results"), "command"), "hyperfine output"),
    (lambda d: isinstance(d, dict) and "throughput" in d and "group_id" in d, "criterion output"),
    (lambda d: isinstance(d, dict) and _only_names(d.get("benchmarks")), "a list of benchmark names"),
    (lambda d: _has_key(d, "run_name"), "the rows of a run without the document around them"),
    (lambda d: _has_key(d, "unit"), "github-action-benchmark input"),
)
PLAIN_TEXT = (
    (r"\x7fELF", "a program, not a result (is its executable bit set?)"),
    (r"#!", "a script, not a result (is its executable bit set?)"),
    (r"name,(iterations|family)|\"?name\"?,\"?iterations", "CSV; compare.py reads JSON only"),
    (r"window\.BENCHMARK_DATA", "github-action-benchmark history (data.js)"),
    (r"(?s).*^Benchmark +Time +CPU", "console output; run with --benchmark_out_format=json"),
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


@dataclass(slots=True)
class Launch:
    """One process launch: its context (flat strings and the library's own fields) and its rows."""

    path: str
    context: dict[str, Any]
    rows: list[Row]
    warnings: list[str] = field(default_factory=list)
    partial: bool = False  # the run was killed; these are the rows it had finished
    digest: str = ""
    index: int | None = None  # place in the interleaved order of both sides, when there was one

    @property
    def identity(self) -> str:
        return str(self.context.get("launch_id") or self.digest)


def read(sources: Iterable[str | Path], salvage: bool = False) -> list[Launch]:
    """Reads files, quoted globs, comma lists, folders and "-" (stdin), each file one launch.

    `salvage` takes the complete rows of truncated files. The same launch given twice counts once.
    Raises UserError with the file and the position when something is unusable.
    """
    launches: list[Launch] = []
    seen: dict[str, str] = {}
    for path in expand(sources):
        launch = parse(load(path), str(path), salvage)
        if launch.identity in seen:
            launches[-1].warnings.append(
                f"{path}: the same launch as {seen[launch.identity]}; counted once"
            )
            continue
        seen[launch.identity] = str(path)
        launches.append(launch)
    return launches


def select(launches: Sequence[Launch], pattern: str, new_name: str) -> list[Launch]:
    """Only the benchmarks whose name the pattern finds, the match replaced by `new_name`.

    This is how benchmarks of different names are made to meet: `filters RUN Tile Base`.
    """
    try:
        found = re.compile(pattern)
    except re.error as error:
        raise UserError(f"filter {pattern!r} is not a regular expression: {error}") from error
    result = []
    for launch in launches:
        rows = [
            replace(row, run_name=found.sub(lambda _: new_name, row.run_name))
            for row in launch.rows
            if found.search(row.run_name)
        ]
        if not rows:
            raise UserError(f"{launch.path}: the filter {pattern!r} finds no benchmark")
        result.append(replace(launch, rows=rows))
    return result


def expand(sources: Iterable[str | Path]) -> list[str]:
    """Sources as given on a command line → the files they name, folders and globs sorted."""
    files: list[str] = []
    for source in map(str, sources):
        if source == "-" or _exists(source):
            files += _in_folder(source) if Path(source).is_dir() else [source]
        elif found := sorted(glob.glob(source, recursive=True)):
            files += expand(found)
        elif "," in source:
            files += expand(part for part in source.split(",") if part)
        else:
            raise UserError(f"{source}: no such file, folder or pattern")
    return files


def load(path: str) -> bytes:
    """The bytes of a file (or of stdin for "-"), unpacked when they are gzip."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError, gzip.zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{path}: cannot be read: {reason}") from error


def parse(data: bytes, path: str = "<input>", salvage: bool = False) -> Launch:
    """The bytes of one result file → a Launch."""
    text = _decode(data)
    if not text.strip():
        raise UserError(f"{path}: empty result: did the filter match any benchmark?")
    warnings: list[str] = []
    document, partial = _document(text, path, salvage, warnings)
    context, entries = _check_shape(document, path, warnings)
    rows = [
        _row(entry, f"{path}: benchmarks[{i}]", warnings) for i, entry in enumerate(entries)
    ]
    _number_duplicates(rows)
    if partial:
        warnings.append(f"{path}: PARTIAL RUN: only its {len(rows)} complete rows are used")
    index = context.get("launch_index")
    return Launch(
        path, context, rows, warnings, partial, hashlib.sha256(data).hexdigest(),
        int(index) if isinstance(index, str) and index.isdecimal() else None,
    )  # fmt: skip


# ---- the document -----------------------------------------------------------------------------


def _decode(data: bytes) -> str:
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    return data.decode("utf-8", errors="replace")


def _document(text: str, path: str, salvage: bool, warnings: list[str]) -> tuple[Any, bool]:
    def keep_first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        # The library writes its own fields first: a counter of the same name comes later.
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result:
                warnings.append(f"{path}: the key '{key}' appears twice; the first one is used")
            result.setdefault(key, value)
        return result

    decoder = json.JSONDecoder(strict=False, object_pairs_hook=keep_first)
    try:
        return decoder.decode(text), False
    except RecursionError as error:
        raise UserError(f"{path}: not Google Benchmark output: nested too deeply") from error
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            line = text.count("\n", 0, error.pos) + 1
            raise UserError(f"{path}: extra data after line {line}: one file must be one run") from error
        if not text.lstrip().startswith("{"):
            raise UserError(f"{path}: {_foreign_text(text, error)}") from error
        _reject_damage(text, path, error)
        rows, opening = _complete_rows(text, decoder)
        if salvage and rows:
            return {"context": _context_of(text, decoder), "benchmarks": rows}, True
        hint = "; --salvage uses them" if rows else ""
        at = f"line {error.lineno} column {error.colno}"
        what = "truncated" if opening else "not complete JSON"
        raise UserError(
            f"{path}: {what} after {len(rows)} complete rows (run was killed?) at {at}{hint}"
        ) from error
    except ValueError as error:  # an integer of thousands of digits
        raise UserError(f"{path}: not Google Benchmark output: {error}") from error


def _reject_damage(text: str, path: str, error: json.JSONDecodeError) -> None:
    """Tells damage inside the file from a file that simply stops."""
    number = re.compile(r'"\w+":\s*-?\d+(,\d+)+(?=[e,\s])').search(
        text, text.rfind("\n", 0, error.pos) + 1, error.pos + 40
    )
    at = f"line {error.lineno} column {error.colno}"
    if number:
        raise UserError(
            f"{path}: {at}: decimal comma in {number[0]!r}: the program ran under a locale that "
            "writes numbers this way; run it again under LC_ALL=C"
        ) from error
    # A file that stops is broken at its end, or inside the last token (an unfinished string).
    rest = text[error.pos :].strip()
    unfinished = error.msg.startswith("Unterminated string") or len(rest) < 40 and "\n" not in rest
    if not unfinished:
        raise UserError(f"{path}: {at}: not valid JSON: {error.msg.lower()}") from error


def _complete_rows(text: str, decoder: json.JSONDecoder) -> tuple[list[Any], bool]:
    start = re.search(r'"benchmarks"\s*:\s*\[', text)
    rows: list[Any] = []
    position = start.end() if start else len(text)
    while entry := re.compile(r"[\s,]*(?=\{)").match(text, position):
        try:
            row, position = decoder.raw_decode(text, entry.end())
        except ValueError:
            break
        rows.append(row)
    return rows, start is not None


def _context_of(text: str, decoder: json.JSONDecoder) -> Any:
    start = re.search(r'"context"\s*:\s*(?=\{)', text)
    return decoder.raw_decode(text, start.end())[0] if start else {}


def _foreign_text(text: str, error: json.JSONDecodeError) -> str:
    head = text[:4000]
    for pattern, what in PLAIN_TEXT:
        if re.match(pattern, head, re.MULTILINE):
            return f"not Google Benchmark JSON: this looks like {what}"
    if re.search(r'^\{\s*"context"', text, re.MULTILINE):
        return "line 1: other text before the JSON; write the result with --benchmark_out=FILE"
    return f"not Google Benchmark output: line {error.lineno} column {error.colno}: {error.msg.lower()}"


def _check_shape(document: Any, path: str, warnings: list[str]) -> tuple[dict[str, Any], list[Any]]:
    if not isinstance(document, dict) or not isinstance(document.get("benchmarks"), list):
        what = next((f": this looks like {name}" for test, name in RELATIVES if test(document)), "")
        raise UserError(f"{path}: not Google Benchmark output (no list 'benchmarks'){what}")
    what = next((name for test, name in RELATIVES[:-2] if test(document)), None)
    if what:
        raise UserError(f"{path}: not Google Benchmark output: this looks like {what}")
    context = document.get("context")
    if not isinstance(context, dict):
        warnings.append(f"{path}: no context: which machine and build this is cannot be checked")
        context = {}
    version = context.get("json_schema_version", 1)
    if version != 1 or isinstance(version, (bool, str)):
        raise UserError(f"{path}: context: json_schema_version {version!r} is not known (1 is)")
    if not document["benchmarks"]:
        raise UserError(f"{path}: empty result: the list 'benchmarks' has no rows: did the filter match?")
    return context, document["benchmarks"]


def _in_folder(folder: str) -> list[str]:
    files = sorted(str(p) for suffix in ("*.json", "*.json.gz") for p in Path(folder).rglob(suffix))
    if not files:
        raise UserError(f"{folder}: no .json or .json.gz file in this folder")
    return files


def _exists(source: str) -> bool:
    try:
        Path(source).stat()
        return True
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        raise UserError(f"{source!r}: cannot be read: {getattr(error, 'strerror', error)}") from error


def _has_key(value: Any, key: str) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and key in value[0]


def _only_names(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(
        isinstance(entry, dict) and entry.keys() == {"name"} for entry in value
    )


# ---- rows -------------------------------------------------------------------------------------


def _row(entry: Any, position: str, warnings: list[str]) -> Row:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        warnings.append(f"{position}: a row without a name; not used")
        return Row("", "", names.Name(""), "iteration", "invalid", "no name", position=position)
    name = entry["name"]
    run_name = entry.get("run_name") if isinstance(entry.get("run_name"), str) else name
    row = Row(name, run_name, names.parse(run_name), _kind(entry), position=f"{position} '{name}'")
    row.aggregate = _text(entry.get("aggregate_name")) or ("BigO" if "big_o" in entry else "")
    row.repetition, row.repetitions = _whole(entry.get("repetition_index")), _whole(entry.get("repetitions"))
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
        return "error", _text(entry.get("error_message")) or "no message"
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
        return None, f"{key} is {json.dumps(value)[:40]}, not a time" if key in entry else f"no {key}"
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


def _number_duplicates(rows: Sequence[Row]) -> None:
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
