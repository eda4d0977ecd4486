"""A Report → one self-contained HTML page: the ratios with their intervals drawn, and the table.

No network, no script; every drawn thing is also a word or a number in the table below it.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchkit import rendering
from benchkit.verdicts import Report, Verdict

TEMPLATE = "page.html.j2"
WIDTH, LEFT, ROW = 1000, 380, 20  # of the picture, in its own units
SHAPES = {"slower": "▲", "faster": "▼", "same": "●", "unclear": "○"}


def html(report: Report, shown: Sequence[Verdict]) -> str:
    """The whole page; text from result files is escaped by the template engine."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=folder,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(TEMPLATE).render(
        heading=rendering.heading(report),
        summary=rendering.summary(report),
        remarks=rendering.remarks(report),
        columns=rendering.columns(report),
        rows=[(verdict.word, rendering.cells(verdict, report)) for verdict in shown],
        floor=report.floor,
        picture=picture([v for v in shown if v.ratio is not None]),
    )


def picture(verdicts: Sequence[Verdict]) -> dict[str, Any] | None:
    """Places of all marks: ratios on a logarithmic axis, one line a benchmark."""
    if not verdicts:
        return None
    reach = max(math.log(1.05), *(abs(math.log(edge)) for v in verdicts for edge in _edges(v)))
    reach = min(reach, math.log(16)) * 1.05

    def x(ratio: float) -> float:
        share = max(-1.0, min(1.0, math.log(ratio) / reach))
        return round(LEFT + (WIDTH - LEFT - 20) * (share + 1) / 2, 1)

    lines = [
        {
            "y": ROW * (i + 2),
            "name": rendering.printable(v.key)[-56:],
            "word": v.word,
            "shape": SHAPES[v.word],
            "x": x(v.ratio.of_medians),
            "low": x(_edges(v)[0]),
            "high": x(_edges(v)[1]),
            "margin_low": x(1 / (1 + v.margin)),
            "margin_high": x(1 + v.margin),
            "floor": [x(1 / (1 + v.floor)), x(1 + v.floor)] if v.floor else [],
            "title": f"{rendering.printable(v.key)}: {v.word}, "
            f"{rendering.percent(v.ratio.of_medians)} ({rendering.interval(v.ratio)})",
        }
        for i, v in enumerate(verdicts)
    ]
    ticks = [{"x": x(t), "text": f"{(t - 1) * 100:+.3g} %"} for t in _ticks(reach)]
    return {
        "width": WIDTH,
        "height": ROW * (len(verdicts) + 3),
        "row": ROW,
        "left": LEFT,
        "lines": lines,
        "ticks": ticks,
    }


def _edges(verdict: Verdict) -> tuple[float, float]:
    ratio = verdict.ratio
    assert ratio is not None
    return ratio.low or ratio.of_medians, ratio.high or ratio.of_medians


def _ticks(reach: float) -> list[float]:
    steps = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0, 7.0)
    step = next((s for s in steps if math.log1p(s) > reach / 3), steps[-1])
    return [1 / (1 + step), 1.0, 1 + step]
