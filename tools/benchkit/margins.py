"""The practical margin of each benchmark: what is too small to care about, even when it is real.

Default 2 % for CPU rows and 3 % for GPU rows. A TOML file sets others, the last match wins:

    [[margin]]
    benchmarks = "SGEMM/GPU/.*"   # regular expression, anywhere in the name
    metric = "time"               # optional; "time" or a counter's name, default: every metric
    percent = 5.0
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchkit.errors import UserError

CPU_PERCENT, GPU_PERCENT = 2.0, 3.0
KEYS = {"benchmarks", "metric", "percent"}


@dataclass(frozen=True, slots=True)
class Rule:
    """Benchmarks the pattern finds have this margin (a fraction) for `metric` ("": any)."""

    pattern: re.Pattern[str]
    margin: float
    metric: str = ""


def defaults(percent: float | None = None) -> list[Rule]:
    """The built-in rules, or one margin for everything."""
    if percent is not None:
        return [Rule(re.compile(""), _fraction(percent, "--margin"))]
    gpu = Rule(re.compile(r"^[^/]+/GPU/|/manual_time($|/)"), GPU_PERCENT / 100)
    return [Rule(re.compile(""), CPU_PERCENT / 100), gpu]


def read(path: str) -> list[Rule]:
    """The rules of a TOML file; every key must be known and every value usable."""
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid TOML: {error}") from error
    if unknown := document.keys() - {"margin"}:
        raise UserError(f"{path}: unknown key '{sorted(unknown)[0]}' (only [[margin]] tables)")
    entries = document.get("margin")
    if not isinstance(entries, list):
        raise UserError(f"{path}: no [[margin]] table")
    return [_rule(entry, f"{path}: [[margin]] {i + 1}") for i, entry in enumerate(entries)]


def margin(rules: Sequence[Rule], name: str, metric: str) -> float:
    """The margin of a benchmark for a metric, as a fraction."""
    fits = [r.margin for r in rules if r.metric in ("", metric) and r.pattern.search(name)]
    return fits[-1]


def _rule(entry: object, position: str) -> Rule:
    if not isinstance(entry, dict):
        raise UserError(f"{position}: not a table")
    if unknown := entry.keys() - KEYS:
        raise UserError(
            f"{position}: unknown key '{sorted(unknown)[0]}' (known: {', '.join(sorted(KEYS))})"
        )
    if missing := {"benchmarks", "percent"} - entry.keys():
        raise UserError(f"{position}: the key '{sorted(missing)[0]}' is missing")
    if not isinstance(entry["benchmarks"], str) or not isinstance(entry.get("metric", ""), str):
        raise UserError(f"{position}: 'benchmarks' and 'metric' are strings")
    try:
        pattern = re.compile(entry["benchmarks"])
    except re.error as error:
        raise UserError(f"{position}: 'benchmarks' is not a regular expression: {error}") from error
    return Rule(pattern, _fraction(entry["percent"], position), entry.get("metric", ""))


def _fraction(percent: object, position: str) -> float:
    if isinstance(percent, bool) or not isinstance(percent, (int, float)) or not 0 < percent < 100:
        raise UserError(f"{position}: the margin is a number of percent between 0 and 100")
    return percent / 100
