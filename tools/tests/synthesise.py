#!/usr/bin/env python3
"""Makes SYNTHETIC histories for tests and for scale; every machine is called so. Nothing measured.

    tools/tests/synthesise.py results DIR [--nights 60]       result files, as of nightly.py
    tools/tests/synthesise.py index FILE [--nights 365] [--series 400]   the index alone

In the history: a step in the code, a step of the machine (references move too), a driver change,
spikes, a failing and a skipped row, a row that ends, a night that did not build, a name with HTML.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchkit import environment

if __name__ == "__main__":
    environment.use_project_python()

import numpy as np

from benchkit.index import Index

START, LAUNCHES = datetime(2026, 1, 1, 2, tzinfo=UTC), 10
PEAKS = ["Peak/CPU/Fma/real_time", "Peak/CPU/Copy/real_time", "Peak/GPU/Fma/manual_time"]
HOSTILE = "SGEMM/CPU/<img src=x onerror=alert(1)>&\"'</script>/n:64/real_time"


@dataclass(frozen=True)
class World:
    nights: int
    names: list[str]
    times: np.ndarray  # nights × series × launches, seconds


def names(count: int) -> list[str]:
    """`count` names as the suite writes them: references first, then variants and sizes."""
    sizes = (64, 127, 256, 511, 512, 1000, 1024, 2048)
    made = [*PEAKS, HOSTILE]
    for i in range(count - len(made)):
        side, clock = (("CPU", "real_time"), ("GPU", "manual_time"))[i % 2]
        made.append(
            f"SGEMM/{side}/Variant{i // 2 // len(sizes)}/n:{sizes[i // 2 % len(sizes)]}/{clock}"
        )
    return made[:count]


def world(nights: int, series: int, seed: int) -> World:
    rng, made = np.random.default_rng(seed), names(series)
    level = np.exp(rng.uniform(np.log(1e-5), np.log(1e-1), series))
    logs = np.log(level) + rng.normal(0, 0.006, (nights, series))
    spikes = rng.integers(0, nights, (2, series))
    logs[spikes, np.arange(series)] += 0.3
    gpu = np.array(["/GPU/" in name for name in made])
    if nights >= 20:
        logs[nights // 2 :, 4::37] += 0.15  # a step in the code
        logs[nights * 3 // 4 :, ~gpu] += 0.08  # the machine slowed down: references too
        logs[nights * 2 // 3 :, gpu] -= 0.1  # another driver
    return World(
        nights, made, np.exp(logs[..., None] + rng.normal(0, 0.004, (nights, series, LAUNCHES)))
    )


def context(machine: int, night: int, nights: int) -> dict[str, str]:
    facts = {"cpu_model": f"synthetic CPU {machine}", "build_type": "Release", "threads": "2"}
    facts |= {
        "cl_device": "synthetic device",
        "cl_driver": "2.0" if night >= nights * 2 // 3 else "1.0",
    }
    return facts | {
        "compiler": "GNU 12.2.0",
        "git_sha": sha(night),
        "host_name": f"SYNTHETIC-{machine}",
    }


def sha(night: int) -> str:
    return f"{night * 2654435761 % 2**32:08x}{'0' * 32}"


def date(night: int) -> str:
    return (START + timedelta(days=night)).strftime("%Y-%m-%dT%H:%M:%SZ")


# ---- result files -----------------------------------------------------------------------------


def entries(made: World, night: int, launch: int, side: str) -> Iterator[dict]:
    for i, name in enumerate(made.names):
        if f"/{side}/" not in name or (
            name.endswith("n:127/real_time") and night > made.nights - 10
        ):
            continue
        row = {"name": name, "run_name": name, "run_type": "iteration", "repetitions": 1}
        row |= {"repetition_index": 0, "threads": 1, "iterations": 10}
        late = night > made.nights - 5
        if "n:2048/" in name or (late and "n:1000/" in name):
            why = (
                "failed: wrong result at [3,4]"
                if late and "n:1000/" in name
                else "skipped: too large"
            )
            yield row | {
                "error_occurred": True,
                "error_message": why,
                "real_time": 0.0,
                "cpu_time": 0.0,
                "time_unit": "us",
            }
            continue
        seconds = made.times[night, i, launch]
        rate = {"GFLOP/s": 2e-3 / seconds} if "Copy" not in name else {"GB/s": 1e-3 / seconds}
        yield (
            row | {"real_time": seconds * 1e6, "cpu_time": seconds * 1e6, "time_unit": "us"} | rate
        )


def write_results(folder: Path, nights: int, series: int = 40, machines: int = 1) -> None:
    for machine in range(1, machines + 1):
        made = world(nights, series, machine)
        for night in range(nights):
            stamp = (START + timedelta(days=night)).strftime("%Y-%m-%dT%H%M%S")
            place = folder / f"SYNTHETIC-{machine}" / f"{stamp}_{sha(night)[:8]}"
            place.mkdir(parents=True)
            broken = night == nights // 3
            log = {"event": "end", "at": date(night), "sha": sha(night), "state": "complete"}
            log |= (
                {"state": "did not build", "message": "synthetic: a missing header"}
                if broken
                else {}
            )
            (place / "night.jsonl").write_text(json.dumps(log) + "\n")
            facts = {"date": date(night), **context(machine, night, nights)}
            for launch in range(0 if broken else LAUNCHES):
                for side in ("CPU", "GPU"):
                    rows = list(entries(made, night, launch, side))
                    document = {
                        "context": facts | {"launch_id": f"{night}{launch}{side}"},
                        "benchmarks": rows,
                    }
                    (place / f"{side}-{launch:03d}.json").write_text(json.dumps(document))


# ---- the index alone --------------------------------------------------------------------------


def fill(index: Index, nights: int, series: int, machines: int, first: int = 0) -> None:
    """Nights `first` to `nights` of every machine, straight into the index."""
    db = index.db
    db.execute("BEGIN")
    for machine in range(1, machines + 1):
        name, made = f"SYNTHETIC-{machine}", world(nights, series, machine)
        ids = []
        for one in made.names:
            db.execute("INSERT OR IGNORE INTO series (machine,name) VALUES (?,?)", (name, one))
            ids += db.execute(
                "SELECT id FROM series WHERE machine=? AND name=?", (name, one)
            ).fetchone()
        quartiles = np.quantile(made.times, [0.5, 0.25, 0.75], axis=2)
        for night in range(first, nights):
            facts = json.dumps(context(machine, night, nights))
            row = (name, f"{name}/{night}", date(night), sha(night), "complete", "", facts, "[]")
            columns = "machine,place,date,sha,state,message,context,notes"
            key = db.execute(
                f"INSERT INTO night ({columns}) VALUES (?,?,?,?,?,?,?,?)", row
            ).lastrowid
            middle, low, high = (q[night].tolist() for q in quartiles)
            db.executemany(
                "INSERT INTO point VALUES (?,?,'ok',?,?,?,?,'GFLOP/s',NULL,'',?)",
                [
                    (
                        ids[i],
                        key,
                        middle[i],
                        low[i],
                        high[i],
                        2e-3 / middle[i],
                        made.times[night, i].tobytes(),
                    )
                    for i in range(series)
                ],
            )
    db.execute("COMMIT")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("results", "index"))
    parser.add_argument("target", type=Path)
    parser.add_argument("--nights", type=int)
    parser.add_argument("--series", type=int)
    parser.add_argument("--machines", type=int)
    parser.add_argument("--first", type=int, default=0, help="index: add the nights from here on")
    args = parser.parse_args(arguments)
    if args.what == "results":
        write_results(args.target, args.nights or 60, args.series or 40, args.machines or 1)
    else:
        sizes = (args.nights or 365, args.series or 400, args.machines or 3)
        fill(Index(args.target), *sizes, args.first)
    return 0


if __name__ == "__main__":
    environment.run(main)
