"""Speed-ups inside one run: what is compared with what, by which field, and against which roof."""

import csv
import io
import json

import jsonschema
import pytest
from documents import CASES, TOOLS, document, entry, noisy

SCHEMA = json.loads((TOOLS / "benchkit/within.schema.json").read_text())
TIMES = {  # seconds of each benchmark, a power of two apart
    "SGEMM/CPU/Naive/n:64/real_time": 8e-3,
    "SGEMM/CPU/Eigen/n:64/real_time": 1e-3,
    "SGEMM/GPU/Tile/n:64/manual_time": 2e-3,
    "SGEMM/GPU/Tile/EndToEnd/n:64/real_time": 4e-3,
    "SGEMM/CPU/Naive/n:128/real_time": 64e-3,
    "SGEMM/GPU/Naive/n:64/manual_time": 16e-3,
    "SGEMV/CPU/Eigen/n:64/real_time": 0.5e-3,
}


@pytest.fixture
def run(save):
    """Six launches of one program; each benchmark has its own noise."""
    series = [noisy(t, 6, 2e-3, seed=i) for i, t in enumerate(TIMES.values())]
    for i, times in enumerate(zip(*series, strict=True)):
        rows = [entry(name, t) for name, t in zip(TIMES, times, strict=True)]
        path = save(f"run/{i}.json", document(rows))
    return path.parent


@pytest.fixture
def speed_ups(compare):
    """{(group, value): speed-up}, each inside its interval."""

    def measure(*arguments: object) -> dict[tuple[str, str], float]:
        done = compare("within", *arguments, "--json", "-")
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        jsonschema.validate(report, SCHEMA)
        for one in report["contestants"]:
            if one["low"] is not None:
                assert one["low"] <= one["speed_up"] <= one["high"]
        return {
            (one["group"], one["value"]): one["speed_up"] and round(one["speed_up"], 1)
            for one in report["contestants"]
        }

    return measure


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("impl", {("SGEMM n:64", "CPU/Naive"): 1, ("SGEMM n:64", "CPU/Eigen"): 8,
                  ("SGEMM n:64", "GPU/Tile"): 4, ("SGEMM n:64", "GPU/Naive"): 0.5}),
        ("variant", {("SGEMM CPU n:64 real_time", "Naive"): 1,
                     ("SGEMM CPU n:64 real_time", "Eigen"): 8,
                     ("SGEMM GPU n:64 manual_time", "Tile"): 1,
                     ("SGEMM GPU n:64 manual_time", "Naive"): 0.1}),
        ("side", {("SGEMM Naive n:64", "CPU"): 1, ("SGEMM Naive n:64", "GPU"): 0.5}),
        ("op", {("CPU Eigen n:64 real_time", "SGEMM"): 1,
                ("CPU Eigen n:64 real_time", "SGEMV"): 2}),
        ("n", {("SGEMM CPU Naive real_time", "64"): 1, ("SGEMM CPU Naive real_time", "128"): 0.1}),
        ("end_to_end", {("SGEMM GPU Tile n:64", "no"): 1, ("SGEMM GPU Tile n:64", "yes"): 0.5}),
    ],
)  # fmt: skip
def test_groups_differ_in_one_field_alone(speed_ups, run, by: str, expected: dict) -> None:
    assert speed_ups(run, "--by", by) == expected


def test_a_baseline_of_each_group_is_found_by_its_name(compare, speed_ups, run) -> None:
    found = speed_ups(run, "--by", "n", "--baseline", "n:128/")
    assert found == {
        ("SGEMM CPU Naive real_time", "64"): 8, ("SGEMM CPU Naive real_time", "128"): 1,
    }  # fmt: skip
    assert speed_ups(run, "--baseline", "Eigen")["SGEMM n:64", "GPU/Tile"] == 0.5
    some = compare("within", run, "--by", "variant", "--baseline", "Eigen")
    assert some.returncode == 0 and "nothing in 1 groups" in some.stderr
    two = compare("within", run, "--baseline", "Naive")
    assert two.returncode == 2 and "more than one of one group" in two.stderr


def test_sizes_come_in_their_order_and_the_rest_by_speed(compare, run) -> None:
    def order(*arguments: str) -> list[str]:
        text = compare("within", run, *arguments, "--csv", "-").stdout
        return [row["value"] for row in csv.DictReader(io.StringIO(text))]

    assert order("--by", "n") == ["64", "128"]
    assert order()[:4] == ["CPU/Eigen", "GPU/Tile", "CPU/Naive", "GPU/Naive"]


@pytest.mark.parametrize(
    ("by", "sentence"),
    [
        ("colour", "no such field; fields that tell some apart: impl, op, side, variant"),
        ("threads", "differ in nothing else; fields that tell some apart: impl"),
    ],
)
def test_fields_that_tell_nothing_apart(compare, run, by: str, sentence: str) -> None:
    done = compare("within", run, "--by", by)
    assert done.returncode == 2 and sentence in done.stderr


def test_names_of_other_programs(speed_ups, save) -> None:
    """What the users of Google Benchmark ask for: a ratio to a baseline in one run."""
    names = {"BM_Old/64/8": 4e-3, "BM_New/64/8": 2e-3, "BM_Old/64/16": 8e-3, "BM_Set/M:3/N:4": 1e-3}
    names |= {"BM_Set/M:6/N:4": 4e-3}
    path = save("run.json", document([entry(name, t) for name, t in names.items()]))
    assert speed_ups(path, "--baseline", "BM_Old") == {
        ("arg0:64 arg1:8", "BM_Old"): 1, ("arg0:64 arg1:8", "BM_New"): 2,
    }  # fmt: skip
    assert speed_ups(path, "--by", "arg1")["BM_Old arg0:64", "16"] == 0.5
    assert speed_ups(path, "--by", "M") == {("BM_Set N:4", "3"): 1, ("BM_Set N:4", "6"): 0.2}


def test_threads_of_the_library(speed_ups, save) -> None:
    rows = [
        entry("BM/real_time/threads:" + str(n), 1e-3 / n, threads=n, run_name=f"BM/threads:{n}")
        for n in (1, 2)
    ]
    assert speed_ups(save("run.json", document(rows)), "--by", "threads") == {
        ("BM", "1"): 1, ("BM", "2"): 2,
    }  # fmt: skip


def test_what_failed_is_no_baseline_and_has_no_speed_up(compare, save) -> None:
    broken = {"error_occurred": True, "error_message": "-54", "real_time": 0.0}
    suspicious = {"label": "suspicious: 9000 GFLOP/s is faster than the measured peak of 800"}
    rows = [entry("SGEMM/GPU/A/n:8", **broken), entry("SGEMM/GPU/B/n:8"), entry("SGEMM/GPU/C/n:8")]
    rows[2] |= suspicious
    text = compare("within", save("run.json", document(rows)), "--csv", "-").stdout
    lines = {row["value"]: row for row in csv.DictReader(io.StringIO(text))}
    assert lines["GPU/B"]["remark"] == "baseline"
    assert lines["GPU/A"]["speed_up"] == "" and "-54" in lines["GPU/A"]["remark"]
    assert lines["GPU/C"]["speed_up"] == "" and "cannot be true" in lines["GPU/C"]["remark"]


@pytest.mark.parametrize("said", [True, False])
def test_the_share_of_the_measured_peak(compare, save, said: bool) -> None:
    """As the program says it, else from the Peak rows of the same run."""
    n = 64
    rows = [
        entry(f"SGEMM/CPU/{v}/n:{n}", t, **({"% of roof": 2e-4 / t} if said else {}))
        for t, v in ((1e-5, "A"), (4e-5, "B"))
    ]
    rows += [entry("Peak/CPU/Fma/n:20", **{"GFLOP/s": 2 * n**3 / 1e-5 / 1e9 * 2})]
    text = compare("within", save("run.json", document(rows)), "--csv", "-").stdout
    lines = {row["value"]: row for row in csv.DictReader(io.StringIO(text))}
    percents = [float(lines[f"CPU/{v}"]["percent_of_roof"]) for v in "AB"]
    assert percents == pytest.approx([20, 5] if said else [50, 12.5])


@pytest.mark.parametrize("form", ["terminal", "--markdown"])
def test_a_table_for_each_group(compare, run, form: str) -> None:
    text = compare(
        "within", run, "--by", "variant", *(() if form == "terminal" else (form, "-"))
    ).stdout
    text = text.replace("\\", "")
    assert "SGEMM CPU n:64 real_time by variant, baseline Naive" in text
    assert "SGEMM GPU n:64 manual_time by variant, baseline Tile" in text
    assert "8.0" in text and "6 launches" in text and " ms ±0.2%" in text


def test_every_case_gives_words_or_a_sentence(compare) -> None:
    for path in sorted(CASES.glob("[JC]-*/*.json")):
        for by in ("impl", "n", "arg0"):
            done = compare("within", path, "--by", by)
            assert done.returncode in (0, 2) and (done.stdout or done.stderr.count("\n") >= 1)
