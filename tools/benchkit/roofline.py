"""The roofline of a machine: its measured ceilings, and where every variant lies below them.

Contract: the ceilings are measured `Peak/…` rows, the highest value seen of each; nothing comes
from a data sheet. Traffic is compulsory (each input once, the output once), so intensity is a
property of the problem. Model: Williams, Waterman and Patterson, 2009.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from benchkit import samples
from benchkit.names import Name
from benchkit.reading import Launch
from benchkit.statistics import median

COMPUTE, MEMORY, MATRIX_UNITS, UNKNOWN = "compute", "memory", "matrix units", ""
# What the machine's vector units do not bound: variants whose names say matrix units.
ON_MATRIX_UNITS = re.compile("TensorCore|Tf32|TF32")
OF_ROOF = "% of roof"  # the counter in which the program says it, knowing the kernel behind a name
# A roof so far above the multiply-adds of the Peak row is another roof, not another measurement.
ANOTHER_ROOF = 1.5
SLACK = 5  # percent above a roof that two measurements of one machine may differ by
COPY, LOCAL = "Copy", "LocalMemory"


@dataclass(frozen=True, slots=True)
class Roofs:
    """Ceilings of one side: FLOP/s, and bytes/s by level ("Copy" is memory, "CopyL1" a cache)."""

    flops: float | None
    levels: dict[str, float] = field(default_factory=dict)
    local: float | None = None  # bytes/s of a GPU's local memory

    @property
    def memory(self) -> float | None:
        return self.levels.get(COPY)

    def attainable(self, intensity: float) -> float | None:
        """The highest FLOP/s of the vector units at this intensity; None: no roof is known."""
        roofs = [] if self.flops is None else [self.flops]
        roofs += [] if self.memory is None else [self.memory * intensity]
        return min(roofs) if roofs else None


@dataclass(frozen=True, slots=True)
class Point:
    """One benchmark under its roof. `bound` is the roof that is nearer, COMPUTE or MEMORY.

    Work on MATRIX_UNITS has no percentage: no measured row says how much they could do.
    """

    key: str
    fields: Name
    intensity: float
    flops: float  # per second
    percent: float | None
    bound: str

    @property
    def remark(self) -> str:
        """What a reader must know of a point above its roof."""
        if self.percent is None or self.percent <= 100 + SLACK:
            return ""
        return {
            MEMORY: "above the copy in memory: its data come from a cache",
            COMPUTE: "above the measured peak: suspicious",
        }[self.bound]


def work(op: str, n: int) -> tuple[float, float] | None:
    """Operations and compulsory bytes of a product of size n; None for what is no product."""
    if op == "SGEMM":
        return 2.0 * n**3, 12.0 * n**2
    if op == "SGEMV":
        return 2.0 * n**2, 4.0 * (n**2 + 2 * n)
    return None


def ceilings(launches: Sequence[Launch]) -> dict[str, Roofs]:
    """The ceilings of each side, "CPU" and "GPU", as far as the run has measured them."""
    return roofs(
        (sample.fields, max(sample.values) * 1e9)
        for metric in ("GFLOP/s", "GB/s")
        for sample in samples.collect(launches, metric).values()
        if sample.status == "ok" and sample.values
    )


def roofs(rows: Iterable[tuple[Name, float]]) -> dict[str, Roofs]:
    """Names and their best rates (FLOP/s or bytes/s) → each side's ceilings; other rows pass by.

    Of one name the largest size counts: the smaller ones may live in a cache.
    """
    found: dict[str, dict[str, tuple[int, float]]] = {}
    for name, rate in rows:
        if name.op != "Peak":
            continue
        side, size = found.setdefault(name.side, {}), name.n or 0
        if size >= side.get(name.variant, (-1, 0.0))[0]:
            side[name.variant] = (size, rate)
    return {
        side: Roofs(
            rates["Fma"][1] if "Fma" in rates else None,
            {name: rate for name, (_, rate) in rates.items() if name.startswith(COPY)},
            rates[LOCAL][1] if LOCAL in rates else None,
        )
        for side, rates in found.items()
    }


def points(launches: Sequence[Launch]) -> list[Point]:
    """Every measured product of the run under its side's roofs."""
    known, judged = ceilings(launches), samples.collect(launches, OF_ROOF)
    found = []
    for key, sample in samples.collect(launches).items():
        if not sample.values:
            continue
        own = median(judged[key].values) if judged[key].values else None
        ceiling = known.get(sample.fields.side, Roofs(None))
        found.append(point(key, sample.fields, median(sample.values), ceiling, own))
    return [one for one in found if one]


def point(
    key: str, fields: Name, seconds: float, ceiling: Roofs, own: float | None = None
) -> Point | None:
    """A benchmark of this time under these roofs; None for what is no product by its kernel alone.

    `own` is the program's own percentage of the roof, where the row has one.
    """
    amount = work(fields.op, fields.n or 0)
    if amount is None or not fields.n or fields.end_to_end:
        return None
    rate, intensity = amount[0] / seconds, amount[0] / amount[1]
    if _on_matrix_units(fields, rate, own, ceiling):
        return Point(key, fields, intensity, rate, None, MATRIX_UNITS)
    limit = ceiling.attainable(intensity)
    if limit is None:
        return Point(key, fields, intensity, rate, None, UNKNOWN)
    bound = COMPUTE if limit == ceiling.flops else MEMORY
    return Point(key, fields, intensity, rate, 100 * rate / limit, bound)


def _on_matrix_units(fields: Name, rate: float, own: float | None, ceiling: Roofs) -> bool:
    """Its name says so; or the program, which knows the kernel behind a name such as Tuned, held it
    to a roof that the vector units do not have."""
    if ON_MATRIX_UNITS.search(fields.variant):
        return True
    return bool(own and ceiling.flops and rate / (own / 100) > ANOTHER_ROOF * ceiling.flops)
