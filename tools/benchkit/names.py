"""A benchmark's name → its fields.

The suite writes `<OP>/<SIDE>/<Variant>[/EndToEnd]/n:<N>/<clock>`; any other Google Benchmark name
is taken apart as far as it goes, and nothing of it is lost: `run_name` stays the identity.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache

SIDES = ("CPU", "GPU")
CLOCKS = ("real_time", "manual_time", "process_time")
# Suffixes the library appends: they describe how it was measured, not what.
SETTINGS = ("min_time", "min_warmup_time", "iterations", "repeats", "threads")


@dataclass(frozen=True, slots=True)
class Name:
    """The fields of a name; `clock` is what real_time holds: wall, device events or process CPU."""

    op: str
    side: str = ""
    variant: str = ""
    end_to_end: bool = False
    n: int | None = None
    clock: str = ""
    params: dict[str, str] = field(default_factory=dict)

    def group(self) -> tuple[object, ...]:
        """What two variants must share to be contestants in one race: problem, size, transfers."""
        return (self.op, self.end_to_end, self.n, tuple(sorted(self.params.items())))


@lru_cache(maxsize=10_000)  # every launch of a year of nights repeats the same few hundred
def parse(run_name: str) -> Name:
    """Takes any Google Benchmark `run_name` apart; never fails."""
    parts = run_name.split("/")
    clock, params, plain = "", {}, []
    for part in parts[1:]:
        key, colon, value = part.partition(":")
        if part in CLOCKS:
            clock = part if clock != "real_time" else clock
        elif colon and key in SETTINGS:
            continue
        elif colon and re.fullmatch(r"\w+", key):
            params[key] = value
        else:
            plain.append(part)
    end_to_end = "EndToEnd" in plain
    plain = [part for part in plain if part != "EndToEnd"]
    side = plain.pop(0) if plain and plain[0] in SIDES else ""
    words = [part for part in plain if not _is_number(part)]
    params.update({f"arg{i}": part for i, part in enumerate(plain) if _is_number(part)})
    n = (
        int(params.pop("n"))
        if params.get("n", "").isascii() and params.get("n", "").isdigit()
        else None
    )
    return Name(parts[0], side, "/".join(words), end_to_end, n, clock, params)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+", text) is not None
