"""The table of tuned kernels (gpu/tuned.json): its winners' ranges, the merge, the safe write.

The format is described in gpu/tuned.hpp, where it is also judged entry by entry; here only what is
replaced must be understood, and everything else is kept as it is.
"""

import itertools
import json
import math
import os
from collections.abc import Iterable
from pathlib import Path

from benchkit.errors import UserError

VERSION = 1
GEOMETRY = ("WG_X", "WG_Y", "TILE_M", "TILE_N")
Entry = dict[str, object]


def read(path: Path) -> dict:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read the table {path}: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{path} is no JSON: {error}") from error
    if not isinstance(table, dict) or table.get("version") != VERSION:
        raise UserError(f"{path}: expected an object with version {VERSION}")
    if not isinstance(table.get("entries"), list):
        raise UserError(f"{path}: entries: expected a list")
    return table


def ranges(sizes: Iterable[int]) -> dict[int, tuple[int, int]]:
    """The n that each tuned size speaks for: to the geometric mean with its neighbours; at the
    ends, to a factor of √2."""
    ordered = sorted(set(sizes))
    middles = [math.isqrt(a * b) for a, b in itertools.pairwise(ordered)]
    firsts = [max(1, math.isqrt(ordered[0] ** 2 // 2)), *(middle + 1 for middle in middles)]
    lasts = [*middles, math.isqrt(ordered[-1] ** 2 * 2)]
    return dict(zip(ordered, zip(firsts, lasts, strict=True), strict=True))


def entry(
    device: object, n: Iterable[int], kernel: str, config: dict[str, int], note: str
) -> Entry:
    """For a device with a label and, if it is NVIDIA's, a compute capability."""
    needs = {"nvidia_capability": device.capability} if device.capability else {}
    return {
        "device": device.label,
        **needs,
        "n": list(n),
        "kernel": kernel,
        "group": [config["WG_X"], config["WG_Y"]],
        "tile": [config["TILE_M"], config["TILE_N"]],
        "defines": {name: value for name, value in config.items() if name not in GEOMETRY},
        "note": note,
    }


def merged(table: dict, new: Entry) -> dict:
    """The table with `new`; entries of the same device keep the sizes that are not its."""
    kept = [part for old in table["entries"] for part in _without(old, new)]
    return {**table, "entries": [*kept, new]}


def _key(row: Entry) -> tuple:
    return row.get("device"), row.get("type", ""), row.get("nvidia_capability", 0)


def _without(old: Entry, new: Entry) -> list[Entry]:
    if not isinstance(old, dict) or _key(old) != _key(new):
        return [old]
    try:
        first, last = old["n"]
        below = [first, min(math.inf if last is None else last, new["n"][0] - 1)]
        above = [max(first, new["n"][1] + 1), last]
        return [{**old, "n": n} for n in (below, above) if n[1] is None or n[0] <= n[1]]
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"the table's entry {json.dumps(old)} has no usable n: {error}") from error


def text(table: dict) -> str:
    """One entry a line, so that a change is a line of a diff."""
    rows = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in table["entries"])
    return f'{{\n  "version": {VERSION},\n  "entries": [\n{rows}\n  ]\n}}\n'


def write(table: dict, path: Path) -> None:
    """Whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text(table), encoding="utf-8")
    os.replace(partial, path)
