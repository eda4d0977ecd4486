"""The roofline of a run: its measured ceilings, and where every variant lies below them.

Contract: the ceilings are the run's own `Peak/…` rows, the highest value seen of each; nothing
comes from a data sheet. Traffic is compulsory (each input once, the output once), so intensity is
a property of the problem. Model: Williams, Waterman and Patterson, 2009.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchkit import samples
from benchkit.reading import Launch
from benchkit.samples import Sample

# What the machine's vector units do not bound: variants whose names say matrix units.
MATRIX_UNITS = re.compile("TensorCore|Tf32|TF32")
MEMORY = "Copy"


@dataclass(frozen=True, slots=True)
class Roofs:
    """Ceilings of one side: FLOP/s, and bytes/s by level ("Copy" is memory, "CopyL1" a cache)."""

    flops: float | None
    levels: dict[str, float] = field(default_factory=dict)

    @property
    def memory(self) -> float | None:
        return self.levels.get(MEMORY)

    def attainable(self, intensity: float, matrix_units: bool = False) -> float | None:
        """The highest FLOP/s at this intensity; None where no roof is known."""
        roofs = [] if matrix_units or self.flops is None else [self.flops]
        roofs += [] if self.memory is None else [self.memory * intensity]
        return min(roofs) if roofs else None


@dataclass(frozen=True, slots=True)
class Point:
    """One benchmark under its roof. `bound` is the roof that is nearer: "compute" or "memory"."""

    sample: Sample
    intensity: float
    flops: float  # per second
    percent: float | None
    bound: str


def work(op: str, n: int) -> tuple[float, float] | None:
    """Operations and compulsory bytes of a product of size n; None for what is no product."""
    if op == "SGEMM":
        return 2.0 * n**3, 12.0 * n**2
    if op == "SGEMV":
        return 2.0 * n**2, 4.0 * (n**2 + 2 * n)
    return None


def ceilings(launches: Sequence[Launch]) -> dict[str, Roofs]:
    """The ceilings of each side, "CPU" and "GPU", as far as the run has measured them."""
    found: dict[str, dict[str, tuple[int, float]]] = {}
    for metric in ("GFLOP/s", "GB/s"):
        for sample in samples.collect(launches, metric).values():
            name = sample.fields
            if name.op != "Peak" or sample.status != "ok" or not sample.values:
                continue
            size, best = name.n or 0, max(sample.values) * 1e9
            side = found.setdefault(name.side, {})
            # Of one name the largest size counts: the smaller ones may live in a cache.
            if size >= side.get(name.variant, (-1, 0.0))[0]:
                side[name.variant] = (size, best)
    return {
        side: Roofs(
            rates["Fma"][1] if "Fma" in rates else None,
            {name: rate for name, (_, rate) in rates.items() if name.startswith(MEMORY)},
        )
        for side, rates in found.items()
    }


def points(launches: Sequence[Launch]) -> list[Point]:
    """Every measured product of the run (by its kernel alone) under its side's roofs."""
    roofs = ceilings(launches)
    result = []
    for sample in samples.collect(launches).values():
        amount = work(sample.fields.op, sample.fields.n or 0)
        if amount is None or not sample.values or sample.fields.end_to_end:
            continue
        result.append(_point(sample, *amount, roofs.get(sample.fields.side, Roofs(None))))
    return result


def _point(sample: Sample, flops: float, traffic: float, roofs: Roofs) -> Point:
    rate, intensity = flops / (sample.median or 1.0), flops / traffic
    matrix_units = MATRIX_UNITS.search(sample.fields.variant) is not None
    limit = roofs.attainable(intensity, matrix_units)
    memory_bound = (
        limit is not None and roofs.memory is not None and (limit == roofs.memory * intensity)
    )
    percent = None if limit is None else 100 * rate / limit
    return Point(sample, intensity, rate, percent, "memory" if memory_bound else "compute")
