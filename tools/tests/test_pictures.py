"""The pictures: what they hold bars and points against, and that a page's reader can read them."""

import itertools

import pytest
from documents import TOOLS, entry
from test_advise import launch, peaks, repeated

from benchkit import advice, ladder, ladder_chart, pictures, reading, roofline

RESULTS = TOOLS.parent / "results"
STORED = (RESULTS / "h200-xeon-16c/2026-11-29_*_[cg]pu.json", RESULTS / "epyc-2-cores/*_e5*.json")
PAGE = 880  # pixels
SMALLEST = 9  # pixels of a text that is read without a glass


def rate(name: str, gflops: float, n: int = 1024) -> list[dict]:
    """Repetitions of a product at this rate, as the suite writes them."""
    clock = "manual_time" if "/GPU/" in name else "real_time"
    seconds = 2 * n**3 / (gflops * 1e9)
    return repeated(f"{name}/n:{n}/{clock}", seconds, **{"GFLOP/s": gflops})


RUN = [
    *peaks(),
    *rate("SGEMM/CPU/NaiveIjk", 0.5),
    *rate("SGEMM/CPU/Packed", 700),
    *rate("SGEMM/GPU/Base", 900),
    *rate("SGEMM/GPU/Tuned", 50000),
    *rate("SGEMM/CPU/PeerOneDNN", 800),
    *rate("SGEMM/CPU/PeerBLIS", 600),
    *rate("SGEMM/GPU/PeerCuBLAS", 40000),
    *rate("SGEMM/GPU/PeerCuBLASTf32", 90000),
    *rate("SGEMM/GPU/PeerCLBlast", 45000),
]


def rungs(rows: list[dict]) -> dict[int, list[ladder.Rung]]:
    return {1024: ladder.rungs([launch(rows)], "SGEMM", 1024)}


def texts(figure) -> list[str]:
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text)]


def roofline_of(launches, op: str = "SGEMM"):
    found = advice.advise(launches, advice.Wishes(op))
    return pictures.roofline(found, roofline.points(launches))


# ---- the ladder -------------------------------------------------------------------------------


def test_libraries_stand_with_their_side():
    sides = [rung.side for rung in rungs(RUN)[1024]]
    assert sides == sorted(sides) and len(sides) == 9
    names = [rung.variant for rung in rungs(RUN)[1024]]
    assert names.index("PeerOneDNN") < names.index("Base") < names.index("PeerCuBLAS")


def test_what_one_run_skipped_another_may_have_measured_but_a_failure_stands():
    name = "SGEMM/CPU/NaiveIjk/n:1024/real_time"
    refused = {"error_occurred": True, "real_time": 0.0}
    skip = launch([entry(name, error_message="skipped: predicted 40 s", **refused)])
    wrong = launch([entry(name, error_message="failed: wrong result", **refused)])
    measured = launch([entry(name, 0.5, **{"GFLOP/s": 4.0})])
    (rung,) = ladder.rungs([skip, measured], "SGEMM", 1024)
    assert (rung.seconds, rung.gflops, rung.reason) == (0.5, 4.0, "")
    (rung,) = ladder.rungs([skip], "SGEMM", 1024)
    assert rung.seconds is None and rung.reason == "predicted 40 s"
    (rung,) = ladder.rungs([measured, wrong], "SGEMM", 1024)
    assert rung.seconds is None and rung.reason == "wrong result"


@pytest.mark.parametrize(
    ("side", "lines"),
    [
        ("CPU", [("oneDNN, n = 1024", 800), ("measured peak of multiply-adds", 1000)]),
        (
            "GPU",
            [
                ("cuBLAS, n = 1024", 40000),
                ("measured peak of multiply-adds", 60000),
                ("cuBLAS TF32, n = 1024", 90000),
            ],
        ),
    ],
)
def test_bars_are_held_against_the_vendor_and_the_measured_peak(side, lines):
    peak = roofline.ceilings([launch(RUN)])[side].flops
    found = ladder_chart.references(rungs(RUN), side, peak)
    assert [(line.label, line.gflops) for line in found] == lines
    drawn = texts(ladder_chart.chart("SGEMM", rungs(RUN), [launch(RUN)]))
    for label, gflops in lines:
        assert any(f"{label}: {gflops:,}" in text for text in drawn)


def test_without_a_vendor_the_fastest_library_stands_in_and_without_a_peak_none_is_drawn():
    plain = [row for row in RUN if "Peak" not in row["name"] and "CuBLAS" not in row["name"]]
    (line,) = ladder_chart.references(rungs(plain), "GPU", None)
    assert line.label == "CLBlast, n = 1024"
    assert not any(
        "peak" in text for text in texts(ladder_chart.chart("SGEMM", rungs(plain), [launch(plain)]))
    )


# ---- the roofline -----------------------------------------------------------------------------


def test_a_roofline_shows_one_product():
    rows = [*RUN, *repeated("SGEMV/CPU/Simd/n:1024/real_time", 1e-6)]
    drawn = texts(roofline_of([launch(rows)]))
    assert not any("Simd" in text for text in drawn)
    assert any(text.startswith("Simd: ") for text in texts(roofline_of([launch(rows)], "SGEMV")))


def test_matrix_units_are_marked_and_have_no_share():
    drawn = texts(roofline_of([launch(RUN)]))
    assert "PeerCuBLASTf32: 90,000" in drawn
    assert any("no measured roof" in text for text in drawn)
    assert "PeerCuBLAS: 40,000, 66.7 %" in drawn


def test_the_best_of_each_kind_and_the_naive_one_are_named():
    rows = [*RUN, *itertools.chain(*(rate(f"SGEMM/GPU/V{i}", 1000 + i) for i in range(20)))]
    rows += [*rate("SGEMM/GPU/TensorCore3xTf32", 70000), *rate("SGEMM/GPU/TensorCoreTf32", 80000)]
    by_name = {}
    for point in roofline.points([launch(rows)]):
        if point.fields.side == "GPU":
            by_name[point.fields.variant] = [point]
    assert pictures.named(by_name) == [
        *("PeerCuBLASTf32", "TensorCoreTf32", "TensorCore3xTf32"),
        *("Tuned", "PeerCLBlast", "PeerCuBLAS", "V19", "V18", "Base"),
    ]


@pytest.mark.parametrize("heights", [[0.5] * 9, [0.0, 0.01, 0.99, 1.0], [-0.2, 0.4, 1.3], []])
def test_names_are_spread(heights):
    placed = pictures.spread(heights)
    assert all(b - a > 0.0549 for a, b in itertools.pairwise(placed))
    assert all(height <= 1 for height in placed)


# ---- all of them ------------------------------------------------------------------------------


def drawings(run):
    launches = reading.read([run])
    found = advice.advise(launches, advice.Wishes())
    ladders = {n: ladder.rungs(launches, "SGEMM", n) for n in (1024, 2048)}
    yield ladder_chart.chart("SGEMM", ladders, launches)
    yield pictures.roofline(found, roofline.points(launches))
    yield pictures.crossovers([found])


@pytest.mark.parametrize("run", STORED, ids=lambda run: run.parent.name)
def test_texts_of_stored_runs_are_large_enough_apart_and_on_the_page(run):
    from matplotlib.text import Text

    for figure in drawings(run):
        written = {id(text): (text, Text.get_window_extent(text)) for text in shown(figure)}
        for text, box in written.values():
            assert text.get_fontsize() / 72 * PAGE / figure.get_figwidth() > SMALLEST, text
            assert box.x0 > -1 and box.x1 < figure.bbox.x1 + 1, text
        for (a, box), (b, other) in itertools.combinations(written.values(), 2):
            assert not box.shrunk(0.9, 0.7).overlaps(other.shrunk(0.9, 0.7)), (a, b)


def shown(figure):
    """Every text that is drawn: an axis also holds labels of marks beyond its limits."""
    from matplotlib.axis import Axis
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    FigureCanvasAgg(figure).draw()
    hidden = set()
    for axis in figure.findobj(Axis):
        drawn = {id(tick) for tick in axis._update_ticks()}
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            if id(tick) not in drawn:
                hidden |= {id(tick.label1), id(tick.label2)}
    for text in figure.findobj(Text):
        if text.get_text().strip() and text.get_visible() and id(text) not in hidden:
            yield text


@pytest.mark.parametrize(("low", "high"), [(55, 240), (90, 1100), (0.3, 1100), (10, 400000)])
def test_a_logarithmic_axis_has_marks_to_read_by(low, high):
    from matplotlib.figure import Figure

    axis = Figure().subplots()
    axis.set(yscale="log", ylim=(low, high))
    pictures.plain_ticks(axis.yaxis)
    shown = [
        label.get_text()
        for place, label in zip(axis.get_yticks(), axis.get_yticklabels(), strict=True)
        if low <= place <= high
    ]
    assert 3 <= len(shown) <= 8
    assert all(float(text.replace(",", "")) for text in shown)
