"""A Report → plain data: JSON that follows comparison.schema.json, and CSV of the same fields.

Standard JSON: what is not finite is null.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchkit import tables
from benchkit.samples import Sample
from benchkit.statistics import Ratio
from benchkit.verdicts import WORDS, Report, Verdict

SCHEMA = 1


def as_csv(report: Report, shown: Sequence[Verdict]) -> str:
    """One line per benchmark and metric, cells safe for spreadsheets."""
    records = [record for verdict in shown for record in _flat_records(verdict)]
    return tables.csv_text([_flat_record_keys(), *(record.values() for record in records)])


def as_json(report: Report, shown: Sequence[Verdict]) -> str:
    return json.dumps(document(report, shown), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def document(report: Report, shown: Sequence[Verdict]) -> dict[str, Any]:
    """The report as plain data (comparison.schema.json)."""
    settings = report.settings
    return {
        "schema": SCHEMA,
        "base": report.base_label,
        "new": report.new_label,
        "comparable": report.comparable,
        "metric": settings.metric,
        "alpha": settings.alpha,
        "looks": settings.looks,
        "confidence": settings.confidence,
        "family": report.family,
        "counts": {word: report.count(word) for word in WORDS},
        "geomean": {"rows": report.geomean_rows, **_ratio(report.geomean)},
        "context": [
            {"level": d.level, "key": d.key, "side": d.side, "sentence": d.sentence}
            for d in report.differences
        ],
        "warnings": report.warnings,
        "noise": dict(zip(("base", "new"), map(asdict, report.noise), strict=True)),
        "floor_launches": report.floor,
        "benchmarks": [_verdict(verdict) for verdict in shown],
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "name": verdict.key,
        **asdict(verdict.base.fields),
        "metric": verdict.metric,
        "verdict": verdict.word,
        "reason": verdict.reason,
        "next_step": verdict.next_step,
        "notes": verdict.notes,
        "margin": verdict.margin,
        **_ratio(verdict.ratio),
        "p_adjusted": _number(verdict.p_adjusted),
        "floor": _number(verdict.floor),
        "held_back": verdict.held_back,
        "base": _side(verdict.base),
        "new": _side(verdict.new),
        "counters": [_verdict(other) for other in verdict.others],
    }


def _ratio(ratio: Ratio | None) -> dict[str, Any]:
    if ratio is None:
        return dict.fromkeys(("ratio", "estimate", "low", "high", "p", "test"))
    return {
        "ratio": _number(ratio.of_medians),
        "estimate": _number(ratio.estimate),
        "low": _number(ratio.low),
        "high": _number(ratio.high),
        "p": _number(ratio.p),
        "test": ratio.test,
    }


def _side(sample: Sample) -> dict[str, Any]:
    return {
        "status": sample.status,
        "message": sample.message,
        "unit": sample.unit,
        "launches": sample.launches,
        "median": _number(sample.median),
        "spread_between_launches": _number(sample.between),
        "spread_within_launch": _number(sample.within),
        "values": [_number(value) for value in sample.values],
    }


def _flat_record_keys() -> list[str]:
    single = [
        "name",
        "op",
        "side",
        "variant",
        "end_to_end",
        "n",
        "clock",
        "metric",
        "verdict",
        "reason",
        "next_step",
        "margin",
        "ratio",
        "estimate",
        "low",
        "high",
        "p",
        "test",
        "p_adjusted",
        "floor",
        "held_back",
    ]
    side = [
        "status",
        "message",
        "unit",
        "launches",
        "median",
        "spread_between_launches",
        "spread_within_launch",
    ]
    return single + [f"{name}.{key}" for name in ("base", "new") for key in side]


def _flat_records(verdict: Verdict) -> list[dict[str, Any]]:
    records = []
    for one in (verdict, *verdict.others):
        nested = _verdict(one)
        nested.update({f"{s}.{key}": v for s in ("base", "new") for key, v in nested[s].items()})
        records.append({key: nested[key] for key in _flat_record_keys()})
    return records


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
