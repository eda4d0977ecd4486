"""History and alarms → what other systems read: a table FORMATS of file name → function.

Every file is whole or not there, standard in its format (JSON without NaN), and holds measured
values only. Per-machine formats, whose readers know one machine, get a file a machine.
"""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchkit import announcements, output
from benchkit.alarms import Alarm
from benchkit.history import History, Machine, Series

COLUMNS = [
    "machine",
    "benchmark",
    "date",
    "commit",
    "on_branch",
    "status",
    "seconds",
    "low",
    "high",
]
COLUMNS += ["rate", "rate_unit", "message"]
# metric → (help, how to get it from a series at its last night; None: no value)
METRICS: dict[str, tuple[str, Callable[[Series, int], float | None]]] = {
    "benchmark_duration_seconds": ("Median time of the last night.", lambda s, i: s.value[i]),
    "benchmark_duration_lower_seconds": ("Lower quartile of its launches.", lambda s, i: s.low[i]),
    "benchmark_duration_upper_seconds": ("Upper quartile of its launches.", lambda s, i: s.high[i]),
    "benchmark_throughput_flops": (
        "Floating-point operations a second.",
        lambda s, i: s.rate[i] * 1e9 if s.unit == "GFLOP/s" else None,
    ),
    "benchmark_throughput_bytes": (
        "Compulsory bytes a second.",
        lambda s, i: s.rate[i] * 1e9 if s.unit == "GB/s" else None,
    ),
}


def write_all(history: History, found: list[Alarm], folder: Path, url: str) -> list[str]:
    """Writes every export into `folder`; the names of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "history.csv": as_csv(history),
        "history.json": as_json(history),
        "metrics.prom": open_metrics(history, found),
        "grafana.json": grafana(),
        "otava.yaml": otava(history),
        "alarms.atom": announcements.atom(history, found, url),
        "alarms.xml": announcements.junit(history, found),
        "slack.json": announcements.slack(found, url),
        "badge.svg": announcements.badge(found),
    }
    for machine in history.machines:
        safe = _safe(machine)
        texts[f"otava-{safe}.csv"] = otava_csv(machine)
        texts[f"bencher-{safe}.json"] = bencher(machine)
        for bigger in (False, True):
            word = "bigger" if bigger else "smaller"
            texts[f"github-action-{word}-{safe}.json"] = github_action(machine, bigger)
    for name, text in texts.items():
        output.write(str(folder / name), text)
    return list(texts)


# ---- everything -------------------------------------------------------------------------------


def _rows(history: History) -> Iterator[list[Any]]:
    for machine in history.machines:
        for series in machine.series:
            for at, night in enumerate(machine.nights):
                head = [machine.name, series.name, night.date, night.sha, int(not night.apart)]
                if math.isfinite(series.value[at]):
                    times = [float(v[at]) for v in (series.value, series.low, series.high)]
                    rate = float(series.rate[at]) if math.isfinite(series.rate[at]) else None
                    yield [*head, "ok", *times, rate, series.unit if rate else "", ""]
                elif at in series.status:
                    status, message = series.status[at]
                    yield [*head, status, None, None, None, None, "", message]


def as_csv(history: History) -> str:
    """One line a point; empty cells where nothing was measured."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_rows(history))
    return text.getvalue()


def as_json(history: History) -> str:
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in _rows(history)]
    return json.dumps({"order": history.order, "points": rows}, allow_nan=False)


def _complete(machine: Machine) -> list[Series]:
    """Series with a value in every measured night: Otava has no word for a missing one."""
    nights = machine.measured
    return [s for s in machine.series if nights and np.isfinite(s.value[nights]).all()]


def otava_csv(machine: Machine) -> str:
    """Apache Otava's input: a line a night of the branch, a column a complete series, seconds."""
    text, series = io.StringIO(), _complete(machine)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", "commit", *(one.name for one in series)])
    for at in machine.measured:
        night = machine.nights[at]
        if night.date:
            values = (repr(float(one.value[at])) for one in series)
            writer.writerow([night.date, night.sha, *values])
    return text.getvalue()


def otava(history: History) -> str:
    """Otava's configuration of these tables; written as JSON, which is YAML."""
    tests = {}
    for machine in history.machines:
        # A metric's name must differ from those of other machines; smaller times are better.
        safe = _safe(machine)
        metrics = {
            f"{safe}/{one.name}": {"column": one.name, "direction": -1}
            for one in _complete(machine)
        }
        table = {"type": "csv", "file": f"otava-{safe}.csv", "time_column": "time"}
        tests[safe] = table | {"attributes": ["commit"], "metrics": metrics}
    return json.dumps({"tests": tests}, indent=1) + "\n"


def _safe(machine: Machine) -> str:
    """A machine's name as part of a file's."""
    return re.sub(r"[^\w.-]+", "-", machine.name)


# ---- the last night ---------------------------------------------------------------------------


def _latest(machine: Machine) -> Iterator[tuple[Series, int]]:
    """Series with the place of their last value, of those that the last night measured."""
    if not machine.measured:
        return
    last = machine.measured[-1]
    yield from ((s, last) for s in machine.series if math.isfinite(s.value[last]))


def open_metrics(history: History, found: list[Alarm]) -> str:
    """OpenMetrics text; a Prometheus text file as well."""
    lines = []
    for metric, (says, of) in METRICS.items():
        unit = metric.rsplit("_", 1)[1]
        lines += [f"# TYPE {metric} gauge", f"# UNIT {metric} {unit}", f"# HELP {metric} {says}"]
        for machine in history.machines:
            for series, at in _latest(machine):
                value = of(series, at)
                if value is not None and math.isfinite(value):
                    labels = {"machine": machine.name, "benchmark": series.name}
                    lines.append(f"{metric}{_labels(labels)} {float(value)!r}")
    name = "benchmark_confirmed_regressions"
    lines += [f"# TYPE {name} gauge", f"# HELP {name} Confirmed slow-downs of the code."]
    for machine in history.machines:
        count = sum(a.regression for a in found if a.machine == machine.name)
        lines.append(f"{name}{_labels({'machine': machine.name})} {count}")
    return "\n".join([*lines, "# EOF", ""])


def _labels(labels: dict[str, str]) -> str:
    escape = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
    return "{" + ",".join(f'{k}="{v.translate(escape)}"' for k, v in labels.items()) + "}"


def grafana() -> str:
    """A dashboard over the metrics above; the data source is chosen on import."""
    source = {"type": "prometheus", "uid": "${datasource}"}
    panels = (
        ("Time", "benchmark_duration_seconds", "s"),
        ("GFLOP/s", "benchmark_throughput_flops / 1e9", "none"),
        ("GB/s", "benchmark_throughput_bytes / 1e9", "none"),
        ("Confirmed regressions", "benchmark_confirmed_regressions", "none"),
    )
    where = '{machine=~"$machine",benchmark=~"$benchmark"}'
    return json.dumps(
        {
            "title": "Benchmark history",
            "uid": "benchmark-history",
            "schemaVersion": 38,
            "time": {"from": "now-90d", "to": "now"},
            "templating": {
                "list": [_variable("datasource"), _variable("machine"), _variable("benchmark")]
            },
            "panels": [
                {
                    "id": i + 1,
                    "title": title,
                    "type": "timeseries",
                    "datasource": source,
                    "gridPos": {"h": 10, "w": 12, "x": 12 * (i % 2), "y": 10 * (i // 2)},
                    "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
                    "targets": [
                        {
                            "refId": "A",
                            "datasource": source,
                            "expr": _selected(metric, where),
                            "legendFormat": "{{machine}} {{benchmark}}",
                        }
                    ],
                }
                for i, (title, metric, unit) in enumerate(panels)
            ],
        },
        indent=1,
    )


def _selected(metric: str, where: str) -> str:
    if "regressions" in metric:
        return metric + '{machine=~"$machine"}'
    name, _, rest = metric.partition(" ")
    return f"{name}{where} {rest}".strip()


def _variable(name: str) -> dict[str, Any]:
    if name == "datasource":
        return {"name": name, "type": "datasource", "query": "prometheus"}
    query = f"label_values(benchmark_duration_seconds, {name})"
    more = {"includeAll": True, "multi": True, "refresh": 2, "allValue": ".*"}
    source = {"type": "prometheus", "uid": "${datasource}"}
    return {"name": name, "type": "query", "query": query, "datasource": source, **more}


def bencher(machine: Machine) -> str:
    """Bencher Metric Format: latency in nanoseconds with its quartiles, throughput a second."""
    document: dict[str, Any] = {}
    for series, at in _latest(machine):
        value, low, high = (float(v[at]) * 1e9 for v in (series.value, series.low, series.high))
        document[series.name] = {
            "latency": {"value": value, "lower_value": low, "upper_value": high}
        }
        if math.isfinite(series.rate[at]):
            document[series.name]["throughput"] = {"value": float(series.rate[at]) * 1e9}
    return json.dumps(document, allow_nan=False, indent=1)


def github_action(machine: Machine, bigger: bool) -> str:
    """customBiggerIsBetter (rates) or customSmallerIsBetter (times in ns)."""
    entries = []
    for series, at in _latest(machine):
        night = machine.nights[at]
        spread = float(series.high[at] - series.low[at]) / 2
        entry = {"name": series.name, "unit": "ns", "value": float(series.value[at]) * 1e9}
        entry |= {"range": f"± {spread * 1e9:.4g}", "extra": f"commit {night.sha[:12]}"}
        if bigger and not math.isfinite(series.rate[at]):
            continue
        if bigger:
            rate = float(series.rate[at])
            entry |= {"unit": series.unit, "value": rate}
            entry["range"] = f"± {rate * spread / float(series.value[at]):.4g}"
        entries.append(entry)
    return json.dumps(entries, allow_nan=False, indent=1)
