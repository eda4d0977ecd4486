"""One run as the table that teaches: every variant of an operation at one size.

Contract: pure functions over launches; a variant's figure is the median of its repetitions. Rows
that were skipped or failed appear with their reason.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchkit.rows import Launch, Row

REMARKS = Path(__file__).with_name("remarks.toml")
# What "naive" means on each side: the first thing everybody writes.
NAIVE = {"SGEMM/CPU": "NaiveIjk", "SGEMM/GPU": "Base", "SGEMV/CPU": "Naive", "SGEMV/GPU": "Naive"}
REASON_WIDTH = 80


@dataclass(frozen=True, slots=True)
class Rung:
    """One variant at one size; `transfers` is its time end to end, where there is one."""

    side: str
    variant: str
    seconds: float | None
    gflops: float | None
    transfers: float | None
    reason: str = ""


def rungs(launches: Sequence[Launch], op: str, n: int) -> list[Rung]:
    """The variants of `op` at `n`: the CPU's, then the GPU's, each in the order of the run."""
    kernel: dict[tuple[str, str], list[Row]] = {}
    whole: dict[tuple[str, str], list[Row]] = {}
    for launch in launches:
        for row in launch.rows:
            name = row.fields
            if row.kind == "iteration" and (name.op, name.n) == (op, n):
                table = whole if name.end_to_end else kernel
                table.setdefault((name.side, name.variant), []).append(row)
    found = [_rung(key, rows, whole.get(key, [])) for key, rows in kernel.items()]
    return sorted(found, key=lambda rung: rung.side)


def _rung(key: tuple[str, str], rows: Sequence[Row], whole: Sequence[Row]) -> Rung:
    measured = [row for row in rows if row.seconds is not None]
    missing = [row for row in rows if row.seconds is None]
    # A failure stands whatever else was measured; what one run skipped, another may have measured.
    failed = [row for row in missing if row.status != "skipped"]
    if failed or not measured:
        reason = (failed or missing)[0].message
        return Rung(*key, None, None, None, reason.removeprefix("skipped: ").split(";")[0])
    gflops = median(row.counters.get("GFLOP/s") or 0.0 for row in measured)
    end_to_end = [row.seconds for row in whole if row.seconds is not None]
    seconds = median(row.seconds for row in measured)
    return Rung(*key, seconds, gflops, median(end_to_end) if end_to_end else None)


def table(ladder: Sequence[Rung], op: str) -> str:
    """Markdown: variant, time, GFLOP/s, speed-up over the side's naive variant, remark."""
    remarks = tomllib.loads(REMARKS.read_text(encoding="utf-8"))
    naive = {
        rung.side: rung.seconds for rung in ladder if NAIVE[f"{op}/{rung.side}"] == rung.variant
    }
    lines = [
        "| variant | time | GFLOP/s | × naive | with transfers | remark |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for rung in ladder:
        name = f"{op}/{rung.side}/{rung.variant}"
        remark = remarks.get(name, "")
        if rung.seconds is None:
            reason = rung.reason[:REASON_WIDTH].replace("|", "/").split("\n")[0]
            lines.append(f"| {name} | – | – | – | – | {reason} |")
            continue
        base = naive.get(rung.side)
        times = rate(base / rung.seconds) if base else "–"
        lines.append(
            f"| {name} | {duration(rung.seconds)} | {rate(rung.gflops)} | {times} | "
            f"{duration(rung.transfers)} | {remark} |"
        )
    return "\n".join(lines)


def duration(seconds: float | None) -> str:
    """Three significant digits in the unit that a reader would choose."""
    if seconds is None:
        return "–"
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1 or unit == "µs":
            return f"{seconds * factor:.3g} {unit}"
    raise AssertionError("unreachable")


def rate(gflops: float) -> str:
    """GFLOP/s with as many digits as are worth reading, never as a power of ten."""
    return f"{gflops:,.0f}" if gflops >= 100 else f"{gflops:.3g}"
