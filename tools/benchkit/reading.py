"""Files of Google Benchmark JSON (1.5 – 1.9) → launches of rows.

Contract: one file is one process launch. What cannot be used is a UserError that names the file,
the position and, where it can be recognised, what the file is instead.
"""

__all__ = ["FIELDS", "Launch", "Row", "expand", "load", "parse", "read", "select"]

import glob
import gzip
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchkit.errors import UserError
from benchkit.rows import FIELDS, Launch, Row, number_duplicates, row_of

# How files of other tools begin: (a test on the parsed document, what it is).
RELATIVES = (
    (lambda d: isinstance(d, dict) and "machine_info" in d, "pytest-benchmark output"),
    (lambda d: isinstance(d, dict) and {"devices", "meta"} <= d.keys(), "nvbench output"),
    (lambda d: isinstance(d, dict) and _has_key(d.get("results"), "command"), "hyperfine output"),
    (lambda d: isinstance(d, dict) and "throughput" in d and "group_id" in d, "criterion output"),
    (
        lambda d: isinstance(d, dict) and _only_names(d.get("benchmarks")),
        "a list of benchmark names",
    ),
    (lambda d: _has_key(d, "run_name"), "the rows of a run without the document around them"),
    (lambda d: _has_key(d, "unit"), "github-action-benchmark input"),
)
CLOCK = re.compile(r"/(real_time|manual_time)$")
PLAIN_TEXT = (
    (r"\x7fELF", "a program, not a result (is its executable bit set?)"),
    (r"#!", "a script, not a result (is its executable bit set?)"),
    (r"name,(iterations|family)|\"?name\"?,\"?iterations", "CSV; compare.py reads JSON only"),
    (r"window\.BENCHMARK_DATA", "github-action-benchmark history (data.js)"),
    (r"(?s).*^Benchmark +Time +CPU", "console output; run with --benchmark_out_format=json"),
)


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

    This is how benchmarks of different names are made to meet: `filters RUN CPU/Ikj GPU/Tile16`.
    The clock at the end of the name goes, or device time would never meet wall time.
    """
    try:
        found = re.compile(pattern)
    except re.error as error:
        raise UserError(f"filter {pattern!r} is not a regular expression: {error}") from error
    result = []
    for launch in launches:
        rows = [
            replace(row, run_name=found.sub(lambda _: new_name, CLOCK.sub("", row.run_name)))
            for row in launch.rows
            if found.search(row.run_name)
        ]
        if not rows:
            raise UserError(f"{launch.path}: the filter {pattern!r} finds no benchmark")
        result.append(replace(launch, rows=rows, selection=f" [{pattern}]"))
    return result


def expand(sources: Iterable[str | Path]) -> list[str]:
    """Sources as given on a command line → the files they name, folders and globs sorted."""
    files: list[str] = []
    for source in map(str, sources):
        if not source:  # to the file system the current folder, to a user a variable not set
            raise UserError("an empty name is no file: is a shell variable not set?")
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
    if path != "-" and (Path(path).is_char_device() or Path(path).is_block_device()):
        raise UserError(f"{path}: a device, not a result")  # some never end
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
    rows = [row_of(entry, f"{path}: benchmarks[{i}]", warnings) for i, entry in enumerate(entries)]
    number_duplicates(rows)
    if partial:
        warnings.append(f"{path}: PARTIAL RUN: only its {len(rows)} complete rows are used")
    session, _, index = str(context.get("launch_turn", "")).rpartition(".")
    digest = hashlib.sha256(data).hexdigest()
    turn = int(index) if session and index.isdecimal() else None
    return Launch(path, context, rows, warnings, partial, digest, session, turn)


# ---- the document -----------------------------------------------------------------------------


def _decode(data: bytes) -> str:
    for mark, encoding in (
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
        (b"\xef\xbb\xbf", "utf-8-sig"),
    ):
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
            raise UserError(
                f"{path}: extra data after line {line}: one file must be one run"
            ) from error
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
    unfinished = error.msg.startswith("Unterminated string") or (
        len(rest) < 40 and "\n" not in rest
    )
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
    at = f"line {error.lineno} column {error.colno}"
    return f"not Google Benchmark output: {at}: {error.msg.lower()}"


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
        raise UserError(
            f"{path}: empty result: the list 'benchmarks' has no rows: did the filter match?"
        )
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
        raise UserError(
            f"{source!r}: cannot be read: {getattr(error, 'strerror', error)}"
        ) from error


def _has_key(value: Any, key: str) -> bool:
    return (
        isinstance(value, list) and bool(value) and isinstance(value[0], dict) and key in value[0]
    )


def _only_names(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(entry, dict) and entry.keys() == {"name"} for entry in value)
    )
