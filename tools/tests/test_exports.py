"""Exports: each read back by the reader it is made for, or by its schema."""

import csv
import io
import json
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import jsonschema
import pytest
import synthesise
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from benchkit import alarms, announcements, exports, history
from benchkit.index import Index

NUMBER = {"type": "number"}
BENCHER = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {
            "type": "object",
            "required": ["value"],
            "properties": {"value": NUMBER, "lower_value": NUMBER, "upper_value": NUMBER},
            "additionalProperties": False,
        },
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exports of a synthetic history with a hostile name, a failed and a skipped row."""
    place = tmp_path_factory.mktemp("exports")
    synthesise.write_results(place / "results", 24, 40)
    index = Index(place / "index.sqlite")
    index.ingest(place / "results")
    past = history.load(index, history.Order())
    exports.write_all(
        past, alarms.find(past, alarms.Rules()), place / "out", "https://example.org/"
    )
    return place / "out"


def strict(file: Path) -> object:
    """JSON as every parser reads it: no NaN."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{file.name}: {word}")

    return json.loads(file.read_text(), parse_constant=refuse)


def test_csv_has_every_point_and_no_zero_for_a_failure(folder: Path) -> None:
    rows = list(csv.DictReader(io.StringIO((folder / "history.csv").read_text())))
    assert {row["status"] for row in rows} == {"ok", "error", "skipped"}
    assert all((row["seconds"] == "") == (row["status"] != "ok") for row in rows)
    assert any(row["benchmark"] == synthesise.HOSTILE for row in rows)
    assert len(strict(folder / "history.json")["points"]) == len(rows)


def test_open_metrics_are_read_back_with_their_labels(folder: Path) -> None:
    text = (folder / "metrics.prom").read_text()
    families = {f.name: f for f in text_string_to_metric_families(text)}
    times = families["benchmark_duration_seconds"]
    assert times.unit == "seconds" and all(sample.value > 0 for sample in times.samples)
    assert synthesise.HOSTILE in {sample.labels["benchmark"] for sample in times.samples}
    assert families.keys() == {*exports.METRICS, "benchmark_confirmed_regressions"}


def test_promtool_reads_the_metrics(folder: Path) -> None:
    text = (folder / "metrics.prom").read_text()
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed (Debian: prometheus)")
    command = ["promtool", "check", "metrics"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_bencher_format(folder: Path) -> None:
    jsonschema.validate(strict(folder / "bencher-SYNTHETIC-1.json"), BENCHER)


@pytest.mark.parametrize(("word", "unit"), [("smaller", "ns"), ("bigger", "GFLOP/s")])
def test_github_action_format(folder: Path, word: str, unit: str) -> None:
    entries = strict(folder / f"github-action-{word}-SYNTHETIC-1.json")
    assert entries[-1]["unit"] == unit
    for entry in entries:
        assert {"name", "unit", "value", "range", "extra"} == entry.keys()
        assert entry["value"] > 0


def test_feed_and_badge_are_xml(folder: Path) -> None:
    feed = ET.parse(folder / "alarms.atom").getroot()
    entries = feed.findall(f"{{{announcements.ATOM}}}entry")
    ids = [entry.findtext(f"{{{announcements.ATOM}}}id") for entry in entries]
    assert entries and len(set(ids)) == len(ids)
    assert "regression" in ET.parse(folder / "badge.svg").getroot().attrib["aria-label"]


def test_otava_gets_whole_tables(folder: Path) -> None:
    """No cell is empty, which Otava takes for an error; its configuration names every column."""
    (test,) = strict(folder / "otava.yaml")["tests"].values()
    rows = list(csv.DictReader(io.StringIO((folder / test["file"]).read_text())))
    assert len(rows) == 23  # one night did not build
    columns = [metric["column"] for metric in test["metrics"].values()]
    assert rows[0].keys() == {"time", "commit", *columns} and len(columns) > 20
    assert all(float(row[name]) > 0 for row in rows for name in columns)
    assert not any("n:2048" in name for name in columns)  # skipped every night


def test_a_regression_is_a_failure_in_junit_and_a_line_for_slack(folder: Path) -> None:
    (suite,) = ET.parse(folder / "alarms.xml").getroot()
    failures = suite.findall("testcase/failure")
    assert failures and len(failures) == int(suite.get("failures"))
    assert len(suite) == int(suite.get("tests"))
    assert synthesise.HOSTILE in {case.get("name") for case in suite}
    text = strict(folder / "slack.json")["text"]
    assert text.startswith(f"*{len(failures)} regression")
    assert (
        "https://example.org/#view=series&m=SYNTHETIC-1&s=SGEMM%2F" in text and "<img" not in text
    )


def test_grafana_asks_for_metrics_that_exist(folder: Path) -> None:
    board, text = strict(folder / "grafana.json"), (folder / "metrics.prom").read_text()
    for panel in board["panels"]:
        metric = panel["targets"][0]["expr"].split("{")[0]
        assert f"# TYPE {metric} gauge" in text
