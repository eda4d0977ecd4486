"""Pictures of a run (matplotlib): the rooflines of its devices, and where CPU and GPU cross over.

Contract: the file's ending chooses the format (.svg, .png, .pdf). Colours are told apart by people
who see few of them, and no line is told by colour alone.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchkit.advice import Advice, Crossover, Size, Time
from benchkit.counsel import title
from benchkit.errors import UserError
from benchkit.roofline import MATRIX_UNITS, Point, Roofs, work

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette.
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#666666"
MARKERS = "osD^vP*X<>phH"
LINES: tuple[tuple[str, str, str, str], ...] = (
    ("cpu", "best on the CPU", BLUE, "o-"),
    ("gpu", "best on the GPU, data resident", ORANGE, "s-"),
    ("transfers", "best on the GPU, with transfers", GREEN, "^--"),
)


def roofline(advice: Advice, points: Sequence[Point]) -> "Figure":
    """One panel a side: its roofs, and every variant at every size."""
    sides = [side for side in ("CPU", "GPU") if side in advice.roofs]
    if not sides:
        raise UserError("no roofline without Peak rows: run bench without a filter, or add Peak")
    figure, panels = _figure(len(sides), 7.2)
    for side, panel in zip(sides, panels, strict=True):
        here = [p for p in points if p.fields.side == side]
        _draw_roofs(panel, advice.roofs[side], here)
        _draw_points(panel, here)
        device = "cl_device" if side == "GPU" else "cpu_model"
        panel.set_title(f"{side}: {advice.machine.get(device, '')}", fontsize=9)
        panel.set(xlabel="arithmetic intensity, FLOP/byte (compulsory traffic)", ylabel="GFLOP/s")
        panel.grid(True, which="major", alpha=0.3)
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
        panel.set_title(f"{advice.op}: {title(advice)}", fontsize=8)
        panel.set(xlabel="n", ylabel="GFLOP/s")
        panel.grid(True, alpha=0.3)
        panel.legend(fontsize=7)
    return figure


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

    figure = Figure(figsize=(7.5 * panels, height), layout="constrained")
    return figure, list(figure.subplots(1, panels, squeeze=False)[0])


# ---- roofline ---------------------------------------------------------------------------------


def _draw_roofs(panel: Any, roofs: Roofs, points: Sequence[Point]) -> None:
    intensities = [p.intensity for p in points] or [1.0]
    left, right = min(*intensities, 0.25) / 2, max(*intensities, 64) * 4
    rates = [p.flops / 1e9 for p in points] or [1.0]
    for name, bandwidth in sorted(roofs.levels.items(), key=lambda level: level[1]):
        knee = right if roofs.flops is None else min(right, roofs.flops / bandwidth)
        label = "memory" if name == "Copy" else name.removeprefix("Copy")
        width = 1.8 if name == "Copy" else 0.8
        panel.plot(
            [left, knee],
            [left * bandwidth / 1e9, knee * bandwidth / 1e9],
            "-",
            color=GREY,
            linewidth=width,
            label=f"{label}: {bandwidth / 1e9:.4g} GB/s",
        )
    if roofs.flops is not None:
        panel.axhline(
            roofs.flops / 1e9,
            color="black",
            linewidth=1.8,
            label=f"multiply-adds: {roofs.flops / 1e9:.5g} GFLOP/s",
        )
        rates.append(roofs.flops / 1e9)
    panel.set(xscale="log", yscale="log", xlim=(left, right), ylim=(min(rates) / 2, max(rates) * 2))


def _draw_points(panel: Any, points: Sequence[Point]) -> None:
    variants = sorted(
        {f"{p.fields.op} {p.fields.variant}" for p in points},
        key=lambda name: -max(p.flops for p in points if _is(p, name)),
    )
    colours = (BLUE, ORANGE, GREEN, PURPLE, "#56b4e9", "#e69f00")
    for i, name in enumerate(variants):
        own = sorted((p for p in points if _is(p, name)), key=lambda p: p.intensity)
        best = max((p.percent for p in own if p.percent is not None), default=None)
        notes = [] if best is None else [f"{best:.3g} %"]
        notes += ["matrix units"] * any(p.bound == MATRIX_UNITS for p in own)
        panel.plot(
            [p.intensity for p in own],
            [p.flops / 1e9 for p in own],
            MARKERS[i % len(MARKERS)] + ":",
            markersize=4.5,
            linewidth=0.6,
            color=colours[i % len(colours)],
            label=name + (f" ({', '.join(notes)})" if notes else ""),
        )
    panel.legend(
        fontsize=6,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        title="best % of roof in brackets",
        title_fontsize=6,
    )


def _is(point: Point, name: str) -> bool:
    return f"{point.fields.op} {point.fields.variant}" == name


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
