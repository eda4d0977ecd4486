"""Rows ↔ tidy CSV: one line a row, all fields, the same columns in the same order for every row.

A cell that a spreadsheet would run as a formula gets a leading apostrophe; `read_csv` takes it off
again, so that every string comes back byte for byte.
"""

import csv
import io
import math
from collections.abc import Iterable, Sequence

from benchkit.reading import Launch, Row

FIXED = [
    "file",
    "launch",
    "partial",
    "op",
    "side",
    "variant",
    "end_to_end",
    "n",
    "params",
    "clock",
    "name",
    "run_name",
    "kind",
    "aggregate",
    "repetition",
    "repetitions",
    "threads",
    "iterations",
    "status",
    "message",
    "seconds",
    "cpu_seconds",
    "fraction",
    "label",
]
FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")


def write_csv(launches: Sequence[Launch]) -> str:
    """All rows as CSV: fixed columns, then the union of counters and of contexts."""
    counters = sorted({key for launch in launches for row in launch.rows for key in row.counters})
    contexts = sorted({key for launch in launches for key in _flat(launch)})
    lines = [[*FIXED, *map(column, counters), *(f"context.{key}" for key in contexts)]]
    for number, launch in enumerate(launches):
        flat = _flat(launch)
        context = [flat.get(key) for key in contexts]
        for row in launch.rows:
            cells = _fixed(row, launch, number)
            values = [row.counters.get(key) for key in counters]
            lines.append([*(cells[key] for key in FIXED), *values, *context])
    return csv_text(lines)


def csv_text(lines: Iterable[Iterable[object]]) -> str:
    """CSV of these cells, lines ending in LF."""
    out = io.StringIO(newline="")
    # The writer quotes what its line end contains: with CR LF a lone CR inside a cell is safe too.
    writer = csv.writer(out, lineterminator="\r\n")
    text = []
    for line in lines:
        writer.writerow(map(cell, line))
        text.append(out.getvalue()[:-2] + "\n")
        out.seek(0)
        out.truncate()
    return "".join(text)


def read_csv(text: str) -> list[dict[str, str]]:
    """The records of `write_csv`, strings exactly as they were in the JSON."""
    rows = csv.reader(io.StringIO(text, newline=""))
    header = [_plain(text) for text in next(rows)]
    return [dict(zip(header, map(_plain, row), strict=True)) for row in rows]


def column(counter: str) -> str:
    """A counter's column: its name, unless that means something else here."""
    taken = counter in FIXED or counter.startswith(("counter.", "context."))
    return f"counter.{counter}" if taken else counter


def _fixed(row: Row, launch: Launch, number: int) -> dict[str, object]:
    fields = row.fields
    return {
        "file": launch.path,
        "launch": number,
        "partial": launch.partial,
        "op": fields.op,
        "side": fields.side,
        "variant": fields.variant,
        "end_to_end": fields.end_to_end,
        "n": fields.n,
        "clock": fields.clock,
        "params": " ".join(f"{key}:{value}" for key, value in fields.params.items()),
        "name": row.name,
        "run_name": row.run_name,
        "kind": row.kind,
        "aggregate": row.aggregate,
        "repetition": row.repetition,
        "repetitions": row.repetitions,
        "threads": row.threads,
        "iterations": row.iterations,
        "status": row.status,
        "message": row.message,
        "seconds": row.seconds,
        "cpu_seconds": row.cpu_seconds,
        "fraction": row.fraction,
        "label": row.label,
    }


def _flat(launch: Launch) -> dict[str, object]:
    plain = (str, int, float, bool)
    flat = {key: value for key, value in launch.context.items() if isinstance(value, plain)}
    return {k: v for k, v in flat.items() if not (isinstance(v, float) and not math.isfinite(v))}


def cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return _safe(value) if isinstance(value, str) else repr(value)


def _safe(text: str) -> str:
    return "'" + text if text.startswith(FORMULA) else text


def _plain(text: str) -> str:
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA) else text
