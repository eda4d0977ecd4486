"""advise.py: the arithmetic on made-up runs, the whole program on stored ones."""

import json
import subprocess
import sys

import pytest
from documents import CASES, TOOLS, document, entry

from benchkit import advice, counsel, reading, roofline
from benchkit.errors import UserError

MACHINE = {"cpu_model": "C", "threads": "8", "cl_device": "D", "cl_device_type": "GPU"}


def row(name: str, seconds: float, repetition: int = 0, **more: object) -> dict:
    return entry(name, seconds, repetition_index=repetition, repetitions=5, **more)


def repeated(name: str, seconds: float, spread: float = 0.01, **more: object) -> list[dict]:
    """Five repetitions around `seconds`."""
    return [row(name, seconds * (1 + spread * (i - 2)), i, **more) for i in range(5)]


def peaks() -> list[dict]:
    return [
        *repeated("Peak/CPU/Fma/n:20/real_time", 1, **{"GFLOP/s": 1000.0, "GB/s": 0.0}),
        *repeated("Peak/CPU/Copy/n:64/real_time", 1, **{"GFLOP/s": 0.0, "GB/s": 50.0}),
        *repeated("Peak/GPU/Fma/n:16384/manual_time", 1, **{"GFLOP/s": 60000.0, "GB/s": 0.0}),
        *repeated("Peak/GPU/Copy/n:256/manual_time", 1, **{"GFLOP/s": 0.0, "GB/s": 9000.0}),
        *repeated("Peak/GPU/Copy/n:1024/manual_time", 1, **{"GFLOP/s": 0.0, "GB/s": 4000.0}),
    ]


def product(n: int, cpu: float, gpu: float, end_to_end: float, spread: float = 0.01) -> list[dict]:
    return [
        *repeated(f"SGEMM/CPU/Packed/n:{n}/real_time", cpu, spread),
        *repeated(f"SGEMM/CPU/NaiveIjk/n:{n}/real_time", 50 * cpu, spread),
        *repeated(f"SGEMM/GPU/Tile16/n:{n}/manual_time", gpu, spread),
        *repeated(f"SGEMM/GPU/Tile16/EndToEnd/n:{n}/real_time", end_to_end, spread),
    ]


def launch(rows: list[dict], **context: object) -> reading.Launch:
    return reading.parse(json.dumps(document(rows, **{**MACHINE, **context})).encode())


def answer(rows: list[dict], **wishes: object) -> advice.Advice:
    return advice.advise([launch(rows)], advice.Wishes(**wishes))


CROSSING = [
    *peaks(),
    *product(128, 10e-6, 20e-6, 200e-6),
    *product(256, 80e-6, 40e-6, 400e-6),
    *product(1024, 5e-3, 0.2e-3, 2e-3),
]


# ---- times and winners ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([2.0], 1.8, 2.2),
        ([3.0, 1.0, 2.0], 1.0, 3.0),
        ([float(i) for i in range(1, 11)], 2.0, 9.0),  # the textbook's interval for ten values
    ],
)
def test_interval_of_the_median(values, low, high):
    assert advice.interval(values) == pytest.approx((low, high))


def test_best_rows_and_crossovers():
    found = answer(CROSSING)
    assert [size.cpu.name for size in found.sizes] == ["SGEMM/CPU/Packed"] * 3
    resident, moved, *many = found.crossovers
    assert (resident.kind, resident.low, resident.high) == ("crossover", 128, 256)
    assert resident.estimate == 181  # ratios 2 and 1/2 on both sides: the geometric mean
    assert (moved.kind, moved.low, moved.high) == ("crossover", 256, 1024)
    assert [turn.question.split()[0] for turn in many] == ["10", "100"]
    # 256 once more: 360 µs to move and 40 µs gained by each product pay from the tenth on.
    assert [turn.answers[256] for turn in many] == ["GPU", "GPU"]
    assert [turn.answers[128] for turn in many] == ["CPU", "CPU"]


@pytest.mark.parametrize(
    ("cpu", "gpu", "end_to_end", "k"),
    [
        (80e-6, 40e-6, 400e-6, 10),  # 360 µs to move, 40 µs gained each: equal at 9
        (5e-3, 0.2e-3, 2e-3, 1),
        (10e-6, 20e-6, 200e-6, "never"),
    ],
)
def test_least_number_of_products(cpu, gpu, end_to_end, k):
    (size,) = answer(product(256, cpu, gpu, end_to_end)).sizes
    assert size.least_products() == k
    if k != "never":
        assert size.products(k).seconds < k * cpu or k == 1
        assert k == 1 or size.products(k - 1).seconds >= (k - 1) * cpu * (1 - 1e-9)


def test_k_products_pay_the_transfers_once():
    (size,) = answer(product(256, 1.0, 0.1, 0.5)).sizes
    assert size.products(1).seconds == pytest.approx(0.5)
    assert size.products(10).seconds == pytest.approx(0.4 + 10 * 0.1)


def test_k_products_are_those_of_one_variant():
    """The best with transfers need not have the best kernel; nobody has both of their times."""
    rows = [
        *repeated("SGEMM/CPU/Packed/n:256/real_time", 1.0),
        *repeated("SGEMM/GPU/A/n:256/manual_time", 0.30),
        *repeated("SGEMM/GPU/A/EndToEnd/n:256/real_time", 0.9),
        *repeated("SGEMM/GPU/B/n:256/manual_time", 0.1),
        *repeated("SGEMM/GPU/B/EndToEnd/n:256/real_time", 2.0),
    ]
    (size,) = answer(rows).sizes
    assert (size.gpu.name, size.transfers.name) == ("SGEMM/GPU/B", "SGEMM/GPU/A")
    assert size.products(2).seconds == pytest.approx(1.2)  # A
    assert size.products(100).seconds == pytest.approx(2 + 9.9)  # B
    assert size.least_products() == 1


def test_the_least_number_is_not_guessed():
    near = answer(product(256, 1e-3, 1.02e-3, 2e-3, 0.05))
    assert near.sizes[0].least_products() == "unclear"
    rows = [*product(256, 1, 2, 3), *repeated("SGEMM/CPU/Packed/n:512/real_time", 1)]
    found = answer(rows)
    assert [size.least_products() for size in found.sizes] == ["never", None]
    assert "least number that pays: never at n = 256" in counsel.markdown([found])
    only = answer(repeated("SGEMM/CPU/Packed/n:512/real_time", 1))
    assert "least number that pays: not measured" in counsel.markdown([only])


def test_overlapping_intervals_are_unclear_and_no_crossover():
    found = answer(
        [*product(128, 1e-3, 1.02e-3, 2e-3, 0.05), *product(256, 1e-3, 0.99e-3, 2e-3, 0.05)]
    )
    assert found.crossovers[0].kind == "unclear"
    assert set(found.crossovers[0].answers.values()) == {"unclear"}
    assert "unclear" in counsel.markdown([found])


def test_an_unclear_size_between_decided_ones_widens_the_crossover():
    rows = [
        *product(128, 1e-4, 2e-4, 1),
        *product(256, 1e-3, 1e-3, 1),
        *product(512, 1e-2, 1e-3, 1),
    ]
    turn = answer(rows).crossovers[0]
    assert (turn.kind, turn.low, turn.high) == ("crossover", 128, 512)


def test_an_answer_that_turns_twice_is_told_as_it_is():
    rows = [*product(128, 1, 2, 9), *product(256, 2, 1, 9), *product(512, 1, 2, 9)]
    turn = answer(rows).crossovers[0]
    assert turn.kind == "mixed" and "256: GPU" in turn.sentence()


def test_one_measurement_is_given_a_spread_and_a_remark():
    rows = [
        entry("SGEMM/CPU/Ikj/n:64/real_time", 1.00e-3),
        entry("SGEMM/GPU/Naive/n:64/manual_time", 1.05e-3),
    ]
    found = answer(rows)
    assert found.crossovers[0].answers == {64: "unclear"}
    assert any("measured once" in remark for remark in found.remarks)


def test_reduced_precision_takes_part_only_when_asked():
    rows = [
        *product(256, 1e-3, 1e-4, 1e-3),
        *repeated("SGEMM/GPU/TensorCoreTf32/n:256/manual_time", 1e-6),
        *repeated("SGEMM/GPU/TensorCore3xTf32/n:256/manual_time", 5e-5),
    ]
    assert answer(rows).sizes[0].gpu.name.endswith("3xTf32")
    assert answer(rows, reduced_precision=True).sizes[0].gpu.name.endswith("CoreTf32")


def test_what_the_program_calls_suspicious_does_not_win():
    impossible = repeated(
        "SGEMM/GPU/Naive/n:256/manual_time", 1e-9, label="suspicious: faster than the peak"
    )
    found = answer([*product(256, 1e-3, 1e-4, 1e-3), *impossible])
    assert found.sizes[0].gpu.name == "SGEMM/GPU/Tile16"
    assert any("suspicious" in remark for remark in found.remarks)


def test_failed_rows_and_missing_sides():
    rows = repeated("SGEMM/CPU/Ikj/n:64/real_time", 1e-3)
    rows += [entry("SGEMM/GPU/Naive/n:64/manual_time", 0, error_occurred=True, error_message="x")]
    found = answer(rows)
    assert found.sizes[0].gpu is None
    assert {turn.kind for turn in found.crossovers} == {"not measured"}
    with pytest.raises(UserError, match="no measured row of SGEMV"):
        answer(rows, op="SGEMV")


def test_machines_are_told_apart():
    rows = product(256, 1, 1, 1)
    launches = [launch(rows), launch(rows, cl_device="E"), launch(rows)]
    assert [len(group) for group in advice.machines(launches)] == [2, 1]


# ---- roofline ---------------------------------------------------------------------------------


def test_ceilings_are_the_largest_size_of_each_name():
    roofs = roofline.ceilings([launch(CROSSING)])
    assert roofs["CPU"] == roofline.Roofs(1000e9, {"Copy": 50e9})
    assert roofs["GPU"].memory == 4000e9


@pytest.mark.parametrize(("intensity", "attainable"), [(1, 50e9), (20, 1000e9), (1000, 1000e9)])
def test_attainable(intensity, attainable):
    roofs = roofline.Roofs(1000e9, {"Copy": 50e9})
    assert roofs.attainable(intensity) == pytest.approx(attainable)


@pytest.mark.parametrize(
    ("variant", "own", "bound", "remark"),
    [
        ("TensorCoreTf32", None, "matrix units", ""),
        ("PeerCuBLASTf32", None, "matrix units", ""),
        # 4000 GB/s at 170.7 FLOP/byte is a roof of 683 TFLOP/s: the program knew the kernel.
        ("Tuned", 100 * 90000 / 682667, "matrix units", ""),
        ("Tuned", 100 * 90000 / 60000, "compute", "above the measured peak: suspicious"),
        ("Tuned", None, "compute", "above the measured peak: suspicious"),
    ],
)
def test_matrix_units_are_not_held_to_the_multiply_adds(variant, own, bound, remark):
    seconds = 2 * 1024**3 / 90000e9
    rows = [*peaks(), entry(f"SGEMM/GPU/{variant}/n:1024/manual_time", seconds)]
    rows[-1] |= {"% of roof": own} if own else {}
    (point,) = roofline.points([launch(rows)])
    assert (point.bound, point.remark) == (bound, remark)
    assert (point.percent is None) == (bound == "matrix units")


def test_a_point_above_the_copy_lives_in_a_cache_and_one_without_roofs_has_no_percentage():
    (hot,) = roofline.points([launch([*peaks(), entry("SGEMV/CPU/Row/n:64/real_time", 1e-7)])])
    assert hot.bound == "memory" and "cache" in hot.remark
    (lone,) = roofline.points([launch([entry("SGEMV/CPU/Row/n:64/real_time", 1e-7)])])
    assert (lone.bound, lone.percent, lone.remark) == ("", None, "")


def test_points_lie_below_the_roof_by_their_percentage():
    by_name = {p.key: p for p in roofline.points([launch(CROSSING)])}
    point = by_name["SGEMM/GPU/Tile16/n:1024/manual_time"]
    assert point.intensity == pytest.approx(1024 / 6)
    assert point.flops == pytest.approx(2 * 1024**3 / 0.2e-3)
    assert point.percent == pytest.approx(100 * point.flops / 60000e9)
    assert point.bound == "compute"


@pytest.mark.parametrize(("own", "matrix_units"), [(8.0, True), (66.0, False)])
def test_a_tuned_row_on_matrix_units_has_no_share_of_a_roof(own, matrix_units):
    rate = 40e12  # of 60 TFLOP/s; the program holds it to memory alone, or to both roofs
    rows = [
        *CROSSING,
        *repeated("SGEMM/GPU/Tuned/n:1024/manual_time", 2 * 1024**3 / rate, **{"% of roof": own}),
    ]
    share = answer(rows).sizes[-1].percent["GPU"]
    assert share is None if matrix_units else share == pytest.approx(66.7, abs=0.1)
    assert ("no measured roof" in counsel.markdown([answer(rows)])) == matrix_units


def test_vector_products_are_bound_by_memory():
    rows = [*peaks(), *repeated("SGEMV/GPU/Naive/n:1024/manual_time", 2e-6)]
    (point,) = roofline.points([launch(rows)])
    assert point.bound == "memory" and point.intensity == pytest.approx(0.5, rel=0.01)
    assert point.percent == pytest.approx(100 * 4 * (1024**2 + 2048) / 2e-6 / 4000e9)


# ---- the program ------------------------------------------------------------------------------


def advise(*arguments: object) -> subprocess.CompletedProcess:
    command = [sys.executable, str(TOOLS / "advise.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr
    return done


RESULTS = TOOLS.parent / "results"
STORED = {
    "advice-epyc-2-cores": CASES / "advice-epyc-2-cores/run.json",
    "advice-h200-xeon-16c": RESULTS / "h200-xeon-16c/2026-11-29_*_[cg]pu.json",
}
RUN = STORED["advice-epyc-2-cores"]


@pytest.mark.parametrize("case", STORED)
def test_stored_runs_give_their_golden_answers(case):
    expected = CASES / case
    assert advise(STORED[case]).stdout == (expected / "expected.md").read_text()
    assert advise(STORED[case], "--json", "-").stdout == (expected / "expected.json").read_text()


def test_pictures_are_written_and_equal_for_equal_runs(tmp_path):
    for name in ("a.svg", "b.svg", "c.png"):
        done = advise(RUN, "--plot", tmp_path / name, "--roofline", tmp_path / f"r{name}")
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "ra.svg").read_bytes() == (tmp_path / "rb.svg").read_bytes()
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.json"], "no such file"),
        (["{run}", "--plot", "x.gif"], "end the picture's name"),
        (["{run}", "--products", "0"], "expected whole numbers"),
        (["{run}", "--bogus"], "unrecognized"),
    ],
)
def test_bad_usage_is_a_sentence_and_code_2(arguments, words):
    done = advise(*(argument.format(run=RUN) for argument in arguments))
    assert done.returncode == 2 and words in done.stderr


def test_a_row_of_a_failed_selftest_is_remarked():
    found = advice.advise(
        [launch(product(256, 1, 1, 1), selftest="failed: wall/event 1.4")], advice.Wishes()
    )
    assert any("self-test" in remark for remark in found.remarks)
