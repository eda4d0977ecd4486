"""Two contexts → identical, warn or refuse: were both sides measured on the same machine and build?

The rules are one table. A key that only one side knows is a warning: it cannot be checked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchkit.reading import Launch

REFUSE, WARN = "refuse", "warn"
# key → (level, whose rows it concerns: "" all, else a SIDE, what the key is)
RULES = {
    "cpu_model": (REFUSE, "", "CPU"),
    "num_cpus": (REFUSE, "", "number of CPUs"),
    "isa": (REFUSE, "", "instruction set"),
    "threads": (REFUSE, "", "thread count"),
    "build_type": (REFUSE, "", "build type"),
    "cache": (REFUSE, "", "cache mode"),
    "batch": (REFUSE, "GPU", "number of launches back to back"),
    "cl_device": (REFUSE, "GPU", "OpenCL device"),
    "cl_device_type": (REFUSE, "GPU", "OpenCL device type"),
    "host_name": (WARN, "", "host"),
    "compiler": (WARN, "", "compiler"),
    "cxx_flags": (WARN, "", "compiler flags"),
    "benchmark_version": (WARN, "", "Google Benchmark"),
    "library_version": (WARN, "", "Google Benchmark"),
    "library_build_type": (WARN, "", "build type of Google Benchmark"),
    "eigen_version": (WARN, "", "Eigen"),
    "cl_platform": (WARN, "GPU", "OpenCL platform"),
    "cl_driver": (WARN, "GPU", "OpenCL driver"),
    "cl_version": (WARN, "GPU", "OpenCL version"),
    "cl_build_options": (WARN, "GPU", "kernel build options"),
    "cl_compute_units": (WARN, "GPU", "compute units"),
    "cl_max_clock_mhz": (WARN, "GPU", "device clock"),
    "cpu_governor": (WARN, "", "frequency governor"),
    "cpu_boost": (WARN, "", "CPU boost"),
    "microcode": (WARN, "", "microcode"),
    "os": (WARN, "", "operating system"),
    "kernel": (WARN, "", "kernel of the operating system"),
    "cpu_scaling_enabled": (WARN, "", "CPU frequency scaling"),
    "aslr_enabled": (WARN, "", "address space randomisation"),
    "seed": (WARN, "", "seed of the inputs"),
}
BUSY = 1.5  # load average per CPU from which a launch had to share it
OWN_KEYS = ("cpu_model", "build_type")  # what only a suite that fingerprints its machine writes


@dataclass(frozen=True, slots=True)
class Difference:
    """One key on which the sides differ, at level "refuse" or "warn", for rows of `side`."""

    level: str
    key: str
    side: str
    sentence: str


def guard(base: Sequence[Launch], new: Sequence[Launch]) -> list[Difference]:
    """Everything that speaks against comparing the two sides, worst first."""
    found = [*_within("BASE", base), *_within("NEW", new), *differing(base, new)]
    if not any(_values(side, "cpu_model") for side in (base, new)):
        found.append(
            Difference(
                WARN,
                "cpu_model",
                "",
                "neither side says its CPU model: that the machines are the same cannot be checked",
            )
        )
    found += _health(base, "BASE") + _health(new, "NEW")
    return sorted(found, key=lambda difference: difference.level != REFUSE)


def floor_guard(floor: Sequence[Launch], both: Sequence[Launch]) -> list[Difference]:
    """What speaks against measuring these launches by that A/A floor."""
    found = [*_within("it", floor), *differing(floor, both)]
    return [replace(d, sentence=f"A/A floor: {d.sentence}") for d in found]


def differing(base: Sequence[Launch], new: Sequence[Launch]) -> list[Difference]:
    """The keys of the table on which the two differ."""
    found = []
    for key, (level, side, what) in RULES.items():
        old, now = _values(base, key), _values(new, key)
        if old and now and old != now:
            sentence = f"{what} differs: {' | '.join(old)} → {' | '.join(now)} ({key})"
            found.append(Difference(level, key, side, sentence))
        elif key in OWN_KEYS and bool(old) != bool(now):
            found.append(Difference(WARN, key, side, f"only one side says its {what} ({key})"))
    return found


def refused(differences: Sequence[Difference], side: str) -> str:
    """Why rows of SIDE may not be compared, or ""."""
    reasons = [d.sentence for d in differences if d.level == REFUSE and d.side in ("", side)]
    return "; ".join(reasons)


def library_version(launches: Sequence[Launch]) -> tuple[int, ...] | None:
    """The oldest Google Benchmark version of the launches; None when unknown (before 1.8.4)."""
    versions = []
    for launch in launches:
        text = str(
            launch.context.get("library_version") or launch.context.get("benchmark_version") or ""
        )
        parts = text.lstrip("v").split("-")[0].split(".")
        versions.append(tuple(map(int, parts)) if all(p.isdecimal() for p in parts) else None)
    return None if None in versions or not versions else min(v for v in versions if v)


def _values(launches: Sequence[Launch], key: str) -> list[str]:
    return sorted(
        {_show(launch.context[key]) for launch in launches if _given(launch.context.get(key))}
    )


def _given(value: Any) -> bool:
    return isinstance(value, bool) or (
        isinstance(value, (str, int, float)) and value not in ("", 0)
    )


def _show(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _within(name: str, launches: Sequence[Launch]) -> list[Difference]:
    return [
        Difference(
            level,
            key,
            side,
            f"{name} mixes launches of different {what}: {' | '.join(values)} ({key})",
        )
        for key, (level, side, what) in RULES.items()
        if len(values := _values(launches, key)) > 1
    ]


def _health(launches: Sequence[Launch], name: str) -> list[Difference]:
    found = []
    if any(_show(launch.context.get("git_dirty", "")) in ("true", "1") for launch in launches):
        found.append(
            Difference(
                WARN, "git_dirty", "", f"{name} was built from a tree with uncommitted changes"
            )
        )
    busy = [one for launch in launches if (one := load(launch) or 0.0) > BUSY]
    if busy:
        found.append(
            Difference(
                WARN,
                "load_avg",
                "",
                f"{name}: the machine was busy in {len(busy)} of {len(launches)} launches "
                f"(load up to {max(busy):.1f} per CPU)",
            )
        )
    failed = sum(str(la.context.get("selftest", "")).startswith("failed") for la in launches)
    if failed:
        sentence = (
            f"{name}: the clocks failed their self-test in {failed} of {len(launches)} launches"
        )
        found.append(Difference(WARN, "selftest", "", sentence))
    if any(_values([launch], "cpu_scaling_enabled") == ["true"] for launch in launches):
        found.append(
            Difference(WARN, "cpu_scaling_enabled", "", f"{name}: CPU frequency scaling was on")
        )
    return found


def load(launch: Launch) -> float | None:
    """Load average of the last minute per CPU at the start of the launch; None when unknown."""
    average, cpus = launch.context.get("load_avg"), launch.context.get("num_cpus")
    if not (isinstance(average, list) and average and isinstance(cpus, int) and cpus > 0):
        return None
    return float(average[0]) / cpus if isinstance(average[0], (int, float)) else None
