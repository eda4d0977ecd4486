#!/usr/bin/env python3
"""Plays a Google Benchmark program: writes the JSON of one launch, with times from a seed.

The environment is its script: FAKE_SLOW multiplies times of names that contain FAKE_WHERE,
FAKE_NOISE is the launch-to-launch spread, FAKE_FAIL the exit code, FAKE_SLEEP seconds to take.
Names that contain FAKE_UNSTEADY take 10 % less, as much, or 10 % more, launch by launch.
"""

import json
import os
import random
import re
import sys
import time

NAMES = [f"SGEMM/CPU/{variant}/n:{n}/real_time" for variant in ("Ikj", "Packed") for n in (64, 256)]


def main() -> int:
    flags = dict(flag.lstrip("-").partition("=")[::2] for flag in sys.argv[1:])
    time.sleep(float(os.environ.get("FAKE_SLEEP", "0")))
    if code := int(os.environ.get("FAKE_FAIL", "0")):
        print("device lost", file=sys.stderr)
        return code
    wanted = re.compile(flags.get("benchmark_filter", ""))
    names = [name for name in NAMES if wanted.search(name)]
    context = {"host_name": "fake", "num_cpus": 2, "cpu_model": "fake", "build_type": "Release"}
    context |= dict(
        pair.split("=") for pair in os.environ.get("BENCHMARK_CONTEXT", "").split(",") if pair
    )
    with open(flags["benchmark_out"], "w") as file:
        if names:
            json.dump({"context": context, "benchmarks": list(map(row, names))}, file)
    return 0


def row(name: str) -> dict:
    noise = float(os.environ.get("FAKE_NOISE", "0.002"))
    seconds = 1e-3 * random.lognormvariate(0, noise)
    if os.environ.get("FAKE_WHERE", "/") in name and sys.argv[0].endswith(
        os.environ.get("FAKE_WHICH", "new.py")
    ):
        seconds *= float(os.environ.get("FAKE_SLOW", "1"))
    if os.environ.get("FAKE_UNSTEADY", "\0") in name:
        launch = os.environ["BENCHMARK_CONTEXT"].rpartition(".")[2]
        seconds *= (0.9, 1.0, 1.1)[int(launch) % 3]
    times = {"real_time": seconds * 1e3, "cpu_time": seconds * 1e3, "time_unit": "ms"}
    head = {"name": name, "run_name": name, "run_type": "iteration", "repetitions": 1}
    return head | {"repetition_index": 0, "threads": 1, "iterations": 100} | times


if __name__ == "__main__":
    sys.exit(main())
