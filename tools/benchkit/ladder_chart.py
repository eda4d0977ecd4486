"""The ladder as a picture: a bar for every variant and size, held against library and peak.

Contract: a panel a side. Its vertical lines are the vendor's library (where there is none, the
fastest one) at each size and the side's measured peak of multiply-adds. Variants that were skipped
or failed have no bar; those without any are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from benchkit import roofline
from benchkit.counsel import place
from benchkit.ladder import Rung, rate
from benchkit.pictures import BLUE, GREEN, ORANGE, plain_ticks
from benchkit.rows import Launch

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VENDOR = ("PeerCuBLAS", "PeerCuBLASTf32")
SPELLED = {"CuBLAS": "cuBLAS", "CuBLASTf32": "cuBLAS TF32", "OneDNN": "oneDNN"}
LIBRARY = ("Peer", "Eigen")
COLOURS = (BLUE, ORANGE, GREEN)
ROW = 0.24  # inches of a variant
LEVEL = 0.7  # rows of a reference's label, above the bars
COLUMN = 54  # points of a column of values, beside the bars
MARGIN = 0.9  # inches of a panel around its rows and labels


@dataclass(frozen=True, slots=True)
class Reference:
    """What the bars of one side are held against; `n` is None where it holds for every size."""

    label: str
    gflops: float
    n: int | None


def references(
    ladders: dict[int, Sequence[Rung]], side: str, peak: float | None
) -> list[Reference]:
    """The lines of one side, the lowest first; `peak` in FLOP/s."""
    found = []
    for n, rungs in ladders.items():
        peers = [r for r in rungs if r.side == side and r.gflops and r.variant.startswith("Peer")]
        peers.sort(key=lambda peer: peer.gflops)
        for peer in [p for p in peers if p.variant in VENDOR] or peers[-1:]:
            name = peer.variant.removeprefix("Peer")
            found.append(Reference(f"{SPELLED.get(name, name)}, n = {n}", peer.gflops, n))
    if peak:
        found.append(Reference("measured peak of multiply-adds", peak / 1e9, None))
    return sorted(found, key=lambda reference: reference.gflops)


def chart(op: str, ladders: dict[int, Sequence[Rung]], launches: Sequence[Launch]) -> "Figure":
    """GFLOP/s by variant on a logarithmic axis, of the same launches as the `ladders`."""
    from matplotlib.figure import Figure

    sides = [side for side in ("CPU", "GPU") if _variants(ladders, side)]
    roofs = roofline.ceilings(launches) if op == "SGEMM" else {}
    lines = {s: references(ladders, s, roofs[s].flops if s in roofs else None) for s in sides}
    heights = [
        ROW * (len(_variants(ladders, side)) + LEVEL * len(lines[side])) + MARGIN for side in sides
    ]
    figure = Figure(figsize=(9, sum(heights)), layout="constrained")
    panels = figure.subplots(len(sides), 1, squeeze=False, height_ratios=heights)[:, 0]
    for side, panel in zip(sides, panels, strict=True):
        _draw_bars(panel, ladders, side)
        _draw_references(panel, lines[side], list(ladders))
        panel.set_title(
            f"{op}, {side}: {place(launches[0].context, side)}",
            size=10,
            pad=72 * ROW * (LEVEL * len(lines[side]) + 0.8),
        )
    panels[-1].set_xlabel(_words_below(ladders), size=9)
    return figure


def _words_below(ladders: dict[int, Sequence[Rung]]) -> str:
    words = "GFLOP/s of the kernel alone (medians). Hatched: libraries."
    if any(roofline.ON_MATRIX_UNITS.search(variant) for variant in _variants(ladders, "GPU")):
        words += (
            " What lies beyond the peak of\nmultiply-adds runs on matrix units, whose own peak "
            "no row measures."
        )
    return words


def _variants(ladders: dict[int, Sequence[Rung]], side: str) -> list[str]:
    """Those with a bar, in the order of the run."""
    rungs = (rung for ladder in ladders.values() for rung in ladder)
    return list(dict.fromkeys(r.variant for r in rungs if r.side == side and r.gflops))


def _draw_bars(panel: Any, ladders: dict[int, Sequence[Rung]], side: str) -> None:
    """The bars, and their values in columns beside the panel, one a size: heads are the key."""
    variants = _variants(ladders, side)
    height = 0.8 / len(ladders)
    for at, (n, rungs) in enumerate(ladders.items()):
        colour = COLOURS[at % len(COLOURS)]
        write = partial(
            panel.annotate,
            xycoords=("axes fraction", "data"),
            xytext=(COLUMN * (at + 1), 0),
            textcoords="offset points",
            ha="right",
            va="center",
            size=8.5,
            color=colour,
        )
        write(f"n = {n}", (1, -1), weight="bold")
        for rung in rungs:
            if rung.side != side or not rung.gflops:
                continue
            row = variants.index(rung.variant)
            (bar,) = panel.barh(row - 0.4 + (at + 0.5) * height, rung.gflops, height, color=colour)
            if rung.variant.startswith(LIBRARY):
                bar.set(hatch="////", edgecolor="white", linewidth=0)
            write(rate(rung.gflops), (1, row))
    values = [r.gflops for rungs in ladders.values() for r in rungs if r.side == side and r.gflops]
    panel.set(xscale="log", xlim=(min(values) / 1.5, max(values) * 1.3))
    panel.set_yticks(range(len(variants)), variants, size=9)
    panel.set_ylim(len(variants) - 0.4, -0.6)
    panel.tick_params(axis="x", labelsize=9)
    plain_ticks(panel.xaxis)
    panel.grid(axis="x", alpha=0.3)
    panel.set_axisbelow(True)


def _draw_references(panel: Any, lines: Sequence[Reference], sizes: Sequence[int]) -> None:
    """Lines through the bars, each up to its own label: the further right, the higher."""
    foot, top = panel.get_ylim()
    low, high = panel.get_xlim()
    panel.set_xlim(low, max(high, *(1.1 * line.gflops for line in lines), high))
    for level, line in enumerate(lines):
        colour = "black" if line.n is None else COLOURS[sizes.index(line.n) % len(COLOURS)]
        panel.annotate(
            f"{line.label}: {rate(line.gflops)} ",
            (line.gflops, foot),
            (line.gflops, top - 0.4 - LEVEL * level),
            ha="right",
            va="center",
            size=8.5,
            color=colour,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 1.6 if line.n is None else 1.2,
                "linestyle": "-" if line.n is None else "--",
                "relpos": (1, 0.5),
                "shrinkA": 0,
                "shrinkB": 0,
            },
        )
