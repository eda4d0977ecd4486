"""Pictures of a run (matplotlib): the rooflines of its devices, and where CPU and GPU cross over.

Contract: the file's ending chooses the format (.svg, .png, .pdf). Colours are told apart by people
who see few of them, no line is told by colour alone, and text stays readable at a page's width.
"""

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchkit.advice import REDUCED, Advice, Crossover, Size, Time
from benchkit.counsel import place, title
from benchkit.errors import UserError
from benchkit.ladder import NAIVE, rate
from benchkit.roofline import MATRIX_UNITS, MEMORY, Point, Roofs, work

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette.
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#666666"
NAMED = (BLUE, ORANGE, GREEN, PURPLE, "#56b4e9", "#b8860b", "black")
PALE = "#bbbbbb"
MATRIX_MARK, LIBRARY_MARK, MARK = "D", "s", "o"
LINES: tuple[tuple[str, str, str, str], ...] = (
    ("cpu", "best on the CPU", BLUE, "o-"),
    ("gpu", "best on the GPU, data resident", ORANGE, "s-"),
    ("transfers", "best on the GPU, with transfers", GREEN, "^--"),
)
# The longer a logarithmic axis, the fewer marks between its powers of ten: (ratio, marks).
MARKS = ((300, (1.0,)), (30, (1.0, 2.0, 5.0)), (0, (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))


def roofline(advice: Advice, points: Sequence[Point]) -> "Figure":
    """One panel a side: its roofs, and every variant of the advice's product at every size."""
    sides = [side for side in ("CPU", "GPU") if side in advice.roofs]
    if not sides:
        raise UserError("no roofline without Peak rows: run bench without a filter, or add Peak")
    figure, panels = _figure(len(sides), 5)
    for side, panel in zip(sides, panels, strict=True):
        here = [p for p in points if (p.fields.side, p.fields.op) == (side, advice.op)]
        _draw_roofs(panel, advice.roofs[side], here)
        _draw_points(panel, here)
        _mark_sizes(panel, here)
        panel.set_title(f"{advice.op}, {side}: {place(advice.machine, side)}", fontsize=10)
        panel.set(xlabel="FLOP per byte of compulsory traffic", ylabel="GFLOP/s")
        panel.grid(True, which="major", alpha=0.3)
        panel.legend(
            title="beside a name: GFLOP/s at its largest n, and how much that is of its roof",
            title_fontsize=8,
            fontsize=8,
            ncols=3,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.13),
        )
    return figure


def crossovers(advices: Sequence[Advice]) -> "Figure":
    """One panel a machine: GFLOP/s over n with intervals, and where the answer turns."""
    figure, panels = _figure(len(advices), 5.6)
    for advice, panel in zip(advices, panels, strict=True):
        for key, label, colour, style in LINES:
            _draw_times(panel, advice, key, (label, colour, style))
        for turn, colour in zip(advice.crossovers, (ORANGE, GREEN, PURPLE, GREY), strict=False):
            _draw_turn(panel, turn, colour)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_xticks([size.n for size in advice.sizes], [str(s.n) for s in advice.sizes])
        panel.minorticks_off()
        plain_ticks(panel.yaxis)
        panel.set_title(f"{advice.op}: {title(advice)}", fontsize=9)
        panel.set(xlabel="n", ylabel="GFLOP/s")
        panel.grid(True, alpha=0.3)
        panel.legend(fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.1))
    return figure


def plain_ticks(axis: Any) -> None:
    """Marks a logarithmic axis in numbers as people write them, close enough to read between."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    marks = next(marks for ratio, marks in MARKS if high / low > ratio)
    axis.set_major_locator(LogLocator(subs=marks, numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())


def save(figure: "Figure", path: str) -> None:
    """Writes the picture; the ending chooses the format. SVGs of equal data are equal files."""
    import matplotlib

    target = Path(path)
    form = target.suffix.lstrip(".").lower()
    if form not in ("svg", "png", "pdf"):
        raise UserError(f"{path}: end the picture's name in .svg, .png or .pdf")
    out = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "benchkit", "svg.fonttype": "none"}):
        metadata = {"Date": None} if form == "svg" else None
        figure.savefig(out, format=form, dpi=150, metadata=metadata)
    try:
        target.write_bytes(out.getvalue())
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error


def _figure(panels: int, height: float) -> "tuple[Figure, Sequence[Axes]]":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, height * panels), layout="constrained")
    return figure, list(figure.subplots(panels, 1, squeeze=False)[:, 0])


# ---- roofline ---------------------------------------------------------------------------------


def _draw_roofs(panel: Any, roofs: Roofs, points: Sequence[Point]) -> None:
    intensities, rates = _spans(roofs, points)
    left, right = min(intensities) / 4, max(intensities) * 1.5
    for name, bandwidth in sorted(roofs.levels.items(), key=lambda level: level[1]):
        knee = right if roofs.flops is None else min(right, roofs.flops / bandwidth)
        if knee <= left:
            continue
        label = "memory" if name == "Copy" else name.removeprefix("Copy")
        panel.plot(
            [left, knee],
            [left * bandwidth / 1e9, knee * bandwidth / 1e9],
            "-" if name == "Copy" else ":",
            color=GREY,
            linewidth=1.8 if name == "Copy" else 1.2,
            label=f"copy in {label}: {bandwidth / 1e9:,.4g} GB/s",
        )
    if roofs.flops is not None:
        panel.axhline(
            roofs.flops / 1e9,
            color="black",
            linewidth=1.8,
            label=f"multiply-adds: {rate(roofs.flops / 1e9)} GFLOP/s",
        )
    panel.set(xscale="log", yscale="log", xlim=(left, right), ylim=(min(rates) / 2, max(rates) * 2))
    plain_ticks(panel.xaxis)
    plain_ticks(panel.yaxis)


def _spans(roofs: Roofs, points: Sequence[Point]) -> tuple[list[float], list[float]]:
    """Intensities and GFLOP/s that a panel has to show: the points, the roof and its knee."""
    intensities, rates = [p.intensity for p in points], [p.flops / 1e9 for p in points]
    if roofs.flops is not None:
        rates.append(roofs.flops / 1e9)
        if roofs.memory:
            intensities.append(roofs.flops / roofs.memory)
    return intensities or [1.0], rates or [1.0]


def _draw_points(panel: Any, points: Sequence[Point]) -> None:
    """The named variants in colour with their names beside the panel, the others pale."""
    variants: dict[str, list[Point]] = {}
    for point in sorted(points, key=lambda point: point.intensity):
        variants.setdefault(point.fields.variant, []).append(point)
    chosen = named(variants)
    colours = {name: NAMED[i % len(NAMED)] for i, name in enumerate(chosen)}
    for name, own in variants.items():
        panel.plot(
            [p.intensity for p in own],
            [p.flops / 1e9 for p in own],
            _mark(own[-1]) + "-",
            color=colours.get(name, PALE),
            markersize=5 if name in colours else 3.5,
            linewidth=1 if name in colours else 0.5,
            zorder=3 if name in colours else 2,
        )
    _write_names(panel, [variants[name][-1] for name in chosen], list(colours.values()))
    if len(chosen) < len(variants):
        panel.plot([], [], "o-", color=PALE, label=f"{len(variants) - len(chosen)} other variants")
    for mark, words in (
        (LIBRARY_MARK, "a library"),
        (MATRIX_MARK, "on matrix units: no measured roof"),
    ):
        if any(_mark(point) == mark for point in points):
            panel.plot([], [], mark, color=GREY, label=words)


def named(variants: Mapping[str, Sequence[Point]]) -> list[str]:
    """Whom to name, the fastest first: the best of each kind, and the naive one to compare with."""

    def best(name: str) -> float:
        return max(point.flops for point in variants[name])

    kinds: dict[tuple[bool, bool], list[str]] = {}
    for name in sorted(variants, key=best, reverse=True):
        on_matrix_units = any(p.bound == MATRIX_UNITS for p in variants[name])
        kinds.setdefault((on_matrix_units, bool(REDUCED.search(name))), []).append(name)
    chosen = {
        name
        for (on_matrix_units, _), names in kinds.items()
        for name in names[: 2 if on_matrix_units else 5]
    }
    chosen |= {
        name
        for name, (first, *_) in variants.items()
        if NAIVE.get(f"{first.fields.op}/{first.fields.side}") == name
    }
    return sorted(chosen, key=best, reverse=True)


def _mark(point: Point) -> str:
    if point.bound == MATRIX_UNITS:
        return MATRIX_MARK
    return LIBRARY_MARK if point.fields.variant.startswith(("Peer", "Eigen")) else MARK


def _write_names(panel: Any, ends: Sequence[Point], colours: Sequence[str]) -> None:
    """Each named variant's figures at its largest size, beside the panel, none upon another."""
    low, high = panel.get_ylim()
    heights = [math.log(p.flops / 1e9 / low) / math.log(high / low) for p in ends]
    order = sorted(range(len(ends)), key=lambda i: heights[i])
    for i, height in zip(order, spread([heights[i] for i in order]), strict=True):
        point = ends[i]
        panel.annotate(
            f"{point.fields.variant}: {_figures(point)}",
            (point.intensity, point.flops / 1e9),
            (1.04, height),
            textcoords="axes fraction",
            va="center",
            fontsize=8.5,
            color=colours[i],
            arrowprops={
                "arrowstyle": "-",
                "color": colours[i],
                "linewidth": 0.6,
                "relpos": (0, 0.5),
                "shrinkB": 3,
            },
        )


def _figures(point: Point) -> str:
    """GFLOP/s and the share of the roof."""
    share = "" if point.percent is None else f", {point.percent:.3g} %"
    cached = " (cache)" if point.bound == MEMORY and point.remark else ""
    return f"{rate(point.flops / 1e9)}{share}{cached}"


def spread(heights: Sequence[float], gap: float = 0.055) -> list[float]:
    """Rising heights between 0 and 1, moved as little as keeps them `gap` apart."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + gap) if placed else height)
    ceiling = 1.0
    for i in range(len(placed) - 1, -1, -1):
        placed[i] = min(placed[i], ceiling)
        ceiling = placed[i] - gap
    return placed


def _mark_sizes(panel: Any, points: Sequence[Point]) -> None:
    """The sizes of a product whose intensity grows with them, along the upper edge."""
    sizes = {p.intensity: str(p.fields.n) for p in sorted(points, key=lambda p: p.intensity)}
    if len(sizes) > 1 and max(sizes) > 2 * min(sizes):
        first, *others = sizes.values()
        top = panel.secondary_xaxis("top")
        top.set_xticks(list(sizes), [f"n = {first}", *others], fontsize=8.5)
        top.minorticks_off()


# ---- crossovers -------------------------------------------------------------------------------


def _draw_times(panel: Any, advice: Advice, key: str, look: tuple[str, str, str]) -> None:
    label, colour, style = look
    known: list[tuple[Size, Time]] = [
        (size, time) for size in advice.sizes if (time := getattr(size, key)) is not None
    ]
    if not known:
        return
    flops = [(work(advice.op, size.n) or (0.0, 0.0))[0] for size, _ in known]
    rates = [f / time.seconds / 1e9 for f, (_, time) in zip(flops, known, strict=True)]
    below = [r - f / t.high / 1e9 for r, f, (_, t) in zip(rates, flops, known, strict=True)]
    above = [f / t.low / 1e9 - r for r, f, (_, t) in zip(rates, flops, known, strict=True)]
    panel.errorbar(
        [size.n for size, _ in known],
        rates,
        [below, above],
        fmt=style,
        color=colour,
        capsize=3,
        markersize=5,
        label=label,
    )


def _draw_turn(panel: Any, turn: Crossover, colour: str) -> None:
    if turn.kind == "crossover" and turn.low and turn.high:
        place = turn.estimate or (turn.low * turn.high) ** 0.5
        panel.axvline(
            place,
            color=colour,
            linestyle=":",
            linewidth=1,
            label=f"{turn.question}: GPU from n ≈ {place:.0f}",
        )
