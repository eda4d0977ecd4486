"""The reader: every kind of file the field produced, and what must never come out of it."""

import csv
import gzip
import io
import json
from pathlib import Path

import pytest
from documents import CASES, document, entry
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchkit import names, reading, tables
from benchkit.errors import UserError


def read(case: str, **options: object) -> reading.Launch:
    return reading.read([CASES / case], **options)[0]


def parse(content: object, **options: object) -> reading.Launch:
    data = (
        content
        if isinstance(content, bytes)
        else (content if isinstance(content, str) else json.dumps(content)).encode()
    )
    return reading.parse(data, "run.json", **options)


# ---- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SGEMM/CPU/Ikj/n:64/real_time", ("SGEMM", "CPU", "Ikj", False, 64, "real_time")),
        (
            "SGEMM/GPU/Tile16/EndToEnd/n:8/real_time",
            ("SGEMM", "GPU", "Tile16", True, 8, "real_time"),
        ),
        ("SGEMM/GPU/Row/n:8/manual_time", ("SGEMM", "GPU", "Row", False, 8, "manual_time")),
        (
            "SGEMM/ocl_tiled/n:512/manual_time",
            ("SGEMM", "", "ocl_tiled", False, 512, "manual_time"),
        ),
        ("BM_Gemm/128", ("BM_Gemm", "", "", False, None, "")),
        ("BM/process_time/real_time/threads:4", ("BM", "", "", False, None, "real_time")),
        ("", ("", "", "", False, None, "")),
        ("a//b/n:x", ("a", "", "/b", False, None, "")),
    ],
)
def test_names(name: str, expected: tuple) -> None:
    f = names.parse(name)
    assert (f.op, f.side, f.variant, f.end_to_end, f.n, f.clock) == expected


def test_unnamed_and_named_parameters_stay() -> None:
    assert names.parse("BM/64/32").params == {"arg0": "64", "arg1": "32"}
    assert names.parse("BM/M:64/N:32/iterations:5").params == {"M": "64", "N": "32"}


# ---- the cases --------------------------------------------------------------------------------


def test_non_finite_counters_are_empty_and_named() -> None:  # J-01
    launch = read("J-01/run.json")
    assert len(launch.rows) == 3 and all(row.status == "ok" for row in launch.rows)
    assert any("benchmarks[1]" in w and "GFLOPS" in w for w in launch.warnings)
    assert "nan" not in tables.write_csv([launch]).lower() and "inf" not in tables.write_csv(
        [launch]
    )


def test_truncated_runs_are_refused_or_marked() -> None:  # J-03
    with pytest.raises(UserError, match=r"truncated after 10 complete rows .run was killed"):
        read("J-03/run.json")
    launch = read("J-03/run.json", salvage=True)
    assert len(launch.rows) == 10 and launch.partial
    assert any("PARTIAL RUN" in warning for warning in launch.warnings)
    records = tables.read_csv(tables.write_csv([launch]))
    assert {record["partial"] for record in records} == {"true"}


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("J-05/run.json", "empty result: did the filter match any benchmark"),
        ("J-05/whitespace.json", "empty result"),
        ("J-15/run_list.json", "not Google Benchmark output"),
        ("J-15/run_no_benchmarks.json", "not Google Benchmark output"),
        ("J-15/run_null.json", "not Google Benchmark output"),
        ("J-15/run_not_gb.json", "not Google Benchmark output"),
        ("J-15/run_two_docs.json", "extra data after line 68"),
        ("J-15/run_empty_list.json", "empty result"),
    ],
)
def test_unusable_files(file: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        read(file)


def test_rows_that_were_not_measured_have_no_time() -> None:  # J-08
    rows = read("J-08/run.json").rows
    assert sorted(row.status for row in rows) == ["error", "error", "ok", "ok", "ok", "skipped"]
    assert all((row.seconds is None) == (row.status != "ok") for row in rows)
    assert all(row.message for row in rows if row.status != "ok")


def test_csv_gives_every_string_back() -> None:  # J-09
    launch = read("J-09/run.json")
    text = tables.write_csv([launch])
    lines = list(csv.reader(io.StringIO(text, newline="")))
    assert len(lines) == 3 and len({len(line) for line in lines}) == 1
    source = json.loads((CASES / "J-09/run.json").read_text())["benchmarks"]
    records = tables.read_csv(text)
    assert [r["name"] for r in records] == [b["name"] for b in source]
    assert records[0]["message"] == source[0]["error_message"]
    assert records[1]["label"] == source[1]["label"]


def test_ratios_are_never_scaled() -> None:  # J-11
    rows = read("J-11/run.json").rows
    cv = [row for row in rows if row.aggregate == "cv"]
    assert [row.fraction for row in cv] == pytest.approx([0.0137988596476066, 0.0392], abs=1e-4)
    assert all(row.seconds is None for row in cv)
    assert any(row.aggregate == "p95" for row in rows)


def test_complexity_fits_have_no_time() -> None:  # J-13
    rows = read("J-13/run.json").rows
    assert [row.kind for row in rows].count("fit") == 2
    assert all(row.seconds is None for row in rows if row.kind == "fit")


def test_missing_fields_are_named_not_guessed() -> None:  # J-15
    launch = read("J-15/run_fields.json")
    assert [row.status for row in launch.rows] == ["ok", "invalid", "invalid", "invalid"]
    assert launch.rows[0].cpu_seconds is None
    for needle in ("no time_unit", "no real_time", "SGEMM/only_name"):
        assert any(needle in warning for warning in launch.warnings)


def test_only_numbers_are_times() -> None:  # J-15
    assert {row.status for row in read("J-15/run_types.json").rows} == {"invalid"}


def test_without_context_a_run_is_usable_but_says_so() -> None:  # J-15
    launch = read("J-15/run_no_context.json")
    assert launch.rows and any("cannot be checked" in w for w in launch.warnings)


def test_broken_timers() -> None:  # J-16
    rows = read("J-16/run.json").rows
    assert {row.fields.n: row.status for row in rows if row.status == "invalid"}.keys() == {
        8,
        16,
        32,
    }
    assert all("timer error" in row.message for row in rows if row.status == "invalid")


def test_columns_are_the_union_in_a_stable_order() -> None:  # J-19
    launch = read("J-19/run.json")
    text = tables.write_csv([launch])
    header, *lines = csv.reader(io.StringIO(text))
    assert len(lines) == 4 and {len(line) for line in lines} == {len(header)}
    assert {"GFLOPS", "GBps", "wg", "bytes_per_second"} <= set(header)
    launch.rows.reverse()
    assert tables.write_csv([launch]).splitlines()[0] == text.splitlines()[0]


def test_extremes() -> None:  # J-22
    rows = {row.name: row for row in read("J-22/run.json").rows}
    assert rows["SGEMM/cpu_blocked/n:256/real_time"].iterations == 9007199254740993
    assert rows["SGEMM/secs/n:4096"].seconds == 3.25
    assert "fortnight" in rows["SGEMM/odd/n:1"].message
    assert rows["SGEMM/cpu_naive/n:64/real_time"].status == "invalid"  # 5e-324 ns is 0 s


# ---- realistic bad inputs ---------------------------------------------------------------------

GOOD = json.dumps(document([entry("a/n:1"), entry("b/n:1")]), indent=1)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Running ./bench\n" + GOOD, "other text before the JSON"),
        (GOOD + "\nDone.", "extra data after line"),
        (GOOD.replace('"real_time": 1000000.0', '"real_time": 1,25e+06', 1), "decimal comma"),
        (GOOD.replace('"iterations": 10,', '"iterations": 1,234,567,', 1), "decimal comma"),
        ("name,iterations,real_time\n", "looks like CSV"),
        ("\x7fELF\x02", "looks like a program"),
        ("#!/bin/sh\n", "looks like a script"),
        ("window.BENCHMARK_DATA = {}", "data.js"),
        ("Run on (2 X 2000 MHz)\nBenchmark   Time   CPU\n", "console output"),
        ('{"machine_info": {}, "benchmarks": []}', "pytest-benchmark"),
        ('{"devices": [], "meta": {}}', "nvbench"),
        ('{"results": [{"command": "x"}]}', "hyperfine"),
        ('{"group_id": "g", "throughput": null}', "criterion"),
        ('[{"name": "a", "unit": "ns", "value": 1}]', "github-action-benchmark"),
        ('{"a": {"latency": {"value": 1.0}}}', "no list 'benchmarks'"),
        ("[]", "no list 'benchmarks'"),
        ("{}", "no list 'benchmarks'"),
        ('{"benchmarks": null}', "no list 'benchmarks'"),
        ("\x1b[32m" + GOOD, "other text before the JSON|line 1 column 1"),
        ('{"benchmarks": [{"name": "a"}]}', "list of benchmark names"),
        ('{"context": {"json_schema_version": 2}, "benchmarks": []}', "json_schema_version 2"),
        ('{"context": {"json_schema_version": "1"}, "benchmarks": []}', "json_schema_version '1'"),
        ("[" * 100_000, "nested too deeply"),
        ("1" * 5000, "not Google Benchmark output"),
        (GOOD.replace('"threads": 1,', '"threads": ?,', 1), "not valid JSON"),
    ],
)
def test_foreign_and_damaged_files(text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        parse(text)


def test_schema_version_one_is_one_however_it_is_written() -> None:
    for version in ("1", "1.0"):
        text = GOOD.replace('"num_cpus"', f'"json_schema_version": {version}, "num_cpus"')
        assert len(parse(text).rows) == 2


def test_a_context_that_is_a_list_cannot_be_checked() -> None:
    launch = parse({"context": [], "benchmarks": [entry("a/n:1")]})
    assert launch.rows and "cannot be checked" in launch.warnings[0]


def test_every_library_from_1_5_to_1_9() -> None:
    """1.5: no indexes, no zone, repetitions 0, no cv; 1.6: cv; 1.8: skipped; 1.8.4: versions."""
    old = entry("a/1", 2e-3, repetitions=0)
    del old["repetition_index"], old["run_type"]
    old_mean = entry("a/1_mean", 2e-3, run_name="a/1", run_type="aggregate", aggregate_name="mean")
    new = entry("a/1", 2e-3, family_index=0, per_family_instance_index=0)
    cv = entry("a/1_cv", run_name="a/1", run_type="aggregate", aggregate_name="cv")
    cv |= {"real_time": 0.01, "aggregate_unit": "percentage"}
    skip = entry("b/1", 0.0, skipped=True, skip_message="no device")
    versions = {
        "1.5": ([old, old_mean], {"date": "2020-01-01 12:00:00"}),
        "1.7": ([new, cv], {"date": "2022-01-01T12:00:00+01:00", "library_build_type": "debug"}),
        "1.9": ([new, skip], {"library_version": "v1.9.4", "json_schema_version": 1}),
    }
    for version, (rows, context) in versions.items():
        launch = parse(document(rows, **context))
        measured = [row for row in launch.rows if row.kind == "iteration" and row.status == "ok"]
        assert [row.seconds for row in measured] == [2e-3], version
        assert not launch.warnings, version
    assert [row.fraction for row in parse(document([new, cv])).rows] == [None, 0.01]


@pytest.mark.parametrize("cut", range(5, len(GOOD) - 1, 37))
def test_a_file_cut_anywhere_is_truncated_not_a_traceback(cut: int) -> None:
    with pytest.raises(UserError, match="complete rows"):
        parse(GOOD[:cut])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_and_line_ends(encoding: str) -> None:
    assert len(parse(GOOD.replace("\n", "\r\n").encode(encoding)).rows) == 2


def test_invalid_utf8_and_control_bytes_in_labels() -> None:
    data = GOOD.encode().replace(b'"threads"', b'"label": "\xff\x1b[31m", "threads"')
    assert len(parse(data).rows) == 2


def test_counters_do_not_overwrite_fields() -> None:
    text = GOOD.replace('"time_unit": "ns"', '"time_unit": "ns", "real_time": 5, "date": 1', 1)
    launch = parse(text)
    assert launch.rows[0].seconds == pytest.approx(1e-3)
    assert any("'real_time' appears twice" in warning for warning in launch.warnings)


def test_a_thousands_separator_is_no_number() -> None:
    launch = parse(document([entry("a", iterations=12.345)]))
    assert launch.rows[0].status == "invalid" and "locale" in launch.warnings[0]


def test_infinite_times_are_invalid() -> None:
    text = GOOD.replace('"real_time": 1000000.0', '"real_time": 1e400', 1)
    assert parse(text).rows[0].status == "invalid"


def test_the_same_name_twice_stays_two_benchmarks() -> None:
    rows = [entry("a", family_index=i, per_family_instance_index=0) for i in (0, 0, 1)]
    assert [row.key for row in parse(document(rows)).rows] == ["a", "a", "a #2"]


def test_sources(save, tmp_path: Path) -> None:
    for i in range(3):
        save(f"runs/{i}.json", document([entry("a", 1e-3 + i * 1e-6)]))
    (tmp_path / "runs" / "3.json.gz").write_bytes(
        gzip.compress(json.dumps(document([entry("a", 2e-3)])).encode())
    )
    folder = tmp_path / "runs"
    assert len(reading.read([folder])) == 4
    assert len(reading.read([f"{folder}/*.json"])) == 3
    assert len(reading.read([f"{folder}/0.json,{folder}/1.json"])) == 2


def test_paths_with_spaces_and_line_ends(save) -> None:
    path = save("a b\nc, d.json", document([entry("a")]))
    assert len(reading.read([path])) == 1


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    import os
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(GOOD,))
    writer.start()
    assert len(reading.read([pipe])[0].rows) == 2
    writer.join()


def test_counters_named_like_columns_keep_a_column_of_their_own() -> None:
    taken = {"seconds": 7.0, "status": 8.0, "n": 9.0, "context.date": 10.0}
    (record,) = tables.read_csv(tables.write_csv([parse(document([entry("a/n:1") | taken]))]))
    assert record["status"] == "ok" and float(record["seconds"]) == pytest.approx(1e-3)
    assert [float(record[f"counter.{name}"]) for name in taken] == list(taken.values())


def test_the_same_launch_counts_once(save) -> None:
    path = save("a.json", document([entry("a")]))
    launches = reading.read([path, path])
    assert len(launches) == 1 and "counted once" in launches[0].warnings[0]


def test_a_device_is_no_result() -> None:
    """/dev/zero never ends: reading it would take all memory."""
    with pytest.raises(UserError, match="/dev/zero: a device, not a result"):
        reading.read(["/dev/zero"])


@pytest.mark.parametrize("name", ["absent.json", "empty-folder"])
def test_absent_sources(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty-folder").mkdir()
    with pytest.raises(UserError, match=name):
        reading.read([tmp_path / name])


def test_symlink_loops_and_broken_gzip(tmp_path: Path) -> None:
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    (tmp_path / "broken.gz").write_bytes(b"\x1f\x8b\x08nothing")
    for path in (loop, tmp_path / "broken.gz"):
        with pytest.raises(UserError, match="cannot be read"):
            reading.read([path])


# ---- anything at all --------------------------------------------------------------------------

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
FIELD = st.sampled_from([*sorted(reading.FIELDS), "GFLOP/s", "=1+1", "'"])
CONTROL = st.text(st.characters(max_codepoint=0x9F) | st.sampled_from("\u2028\u202e\ufeff"))
ENTRY = st.dictionaries(FIELD, SCALARS | st.lists(SCALARS, max_size=2)) | SCALARS
LIKE_A_ROW = st.builds(
    lambda row, more: row | more, st.just(entry("a/n:1")), st.dictionaries(FIELD, SCALARS)
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(ENTRY | LIKE_A_ROW, max_size=4),
    st.dictionaries(st.text(max_size=5), SCALARS) | SCALARS,
)
def test_any_rows_become_rows_or_a_sentence(rows: list, context: object) -> None:
    text = json.dumps({"context": context, "benchmarks": rows})
    try:
        launch = parse(text)
    except UserError as error:
        assert "run.json" in str(error)
        return
    assert len(launch.rows) == len(rows)
    for row in launch.rows:
        assert row.seconds is None or 0 <= row.seconds < 1e10
        assert row.status == "ok" or row.seconds is None
    records = tables.read_csv(tables.write_csv([launch]))
    assert [record["name"] for record in records] == [row.name for row in launch.rows]
    assert [record["label"] for record in records] == [row.label for row in launch.rows]


@settings(max_examples=300, deadline=None)
@given(
    st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode(errors="replace"))
)
def test_any_bytes_become_a_sentence(data: bytes) -> None:
    with pytest.raises(UserError, match=r"run\.json"):
        parse(data)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(GOOD)), st.binary(max_size=8))
def test_any_damage_is_read_or_refused(position: int, junk: bytes) -> None:
    data = GOOD.encode()
    for salvage in (False, True):
        try:
            launch = parse(data[:position] + junk + data[position + len(junk) :], salvage=salvage)
        except UserError:
            continue
        assert len(launch.rows) <= 2


@settings(max_examples=300, deadline=None)
@example("\r0", "\x00", "\x1b[2J")
@example("\n", "'\r", '"\r\n')
@example("\t=1", "-0", "@")
@given(CONTROL, CONTROL, CONTROL)
def test_control_characters_in_keys_and_names_come_back(key: str, name: str, value: str) -> None:
    rows = [entry(name, label=value, **{f"c{key}": 1.5, f"{key}c": 2.5})]
    launch = parse({"context": {key: value, "num_cpus": 2}, "benchmarks": rows})
    text = tables.write_csv([launch])
    header, *lines = csv.reader(io.StringIO(text, newline=""))
    assert len(lines) == 1 and len(set(header)) == len(header) == len(lines[0])
    (record,) = tables.read_csv(text)
    assert (record["name"], record["label"]) == (name, value)
    assert record[f"context.{key}"] == (value if key != "num_cpus" else "2")
    for counter in launch.rows[0].counters:
        assert float(record[tables.column(counter)]) == launch.rows[0].counters[counter]


def test_before_1_8_the_message_says_what_is_a_skip() -> None:
    said = {"skipped: no device": ("skipped", "no device"), "failed: NaN": ("error", "NaN")}
    for message, outcome in said.items():
        row = entry("a", 0.0, error_occurred=True, error_message=message)
        (read_row,) = parse(document([row])).rows
        assert (read_row.status, read_row.message) == outcome
        assert read_row.seconds is None
