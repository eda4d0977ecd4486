#!/usr/bin/env python3
"""Finds the best configurations of the kernels on this device, for the variant SGEMM/GPU/Tuned.

  tune.py                                      every tunable kernel at n = 1024, five minutes
  tune.py --n 512,1024,2048 --budget 600       a range of sizes
  tune.py --device H200 --kernels sgemm_tile_register_warp,sgemm_tile_register

What is tried, and what must hold, stands in the kernels/*.cl files ("tune:", #error, LOCAL_BYTES).
Kernel Tuner searches, and for kernels that it cannot build (Hopper's own instructions) bench
itself; each configuration is proved with integers before it counts. For each n the best five and
the table's present choice are then measured by bench, and one that is clearly faster goes into
gpu/tuned.json; the next build embeds it, `bench --tuned=gpu/tuned.json` uses it at once. What
Kernel Tuner measured is remembered under .cache/tune: run it again to go on.

Exit code: 0 done, whether or not anything was faster, 2 bad usage or unusable input.
"""

import argparse
import json
import math
import statistics
import sys
import time
from pathlib import Path

from benchkit import environment
from benchkit.errors import OK, UserError

ROOT = environment.ROOT
FINALISTS = 5  # times of a search are minutes apart; these are measured again, side by side


def main(arguments: list[str]) -> int:
    args = _parse(arguments)
    from benchkit import measuring, tuned_table

    bench = measuring.find(args.bench, args.device)
    kernels = _kernels(args.kernels, bench.device)
    table = tuned_table.read(args.table)
    for n in args.n:  # what bench cannot measure is said before the search
        bench.times(n, table, repetitions=1)
    end = time.monotonic() + args.budget
    ranges = tuned_table.ranges(args.n)
    for at, n in enumerate(args.n):
        share = (end - time.monotonic()) / (len(args.n) - at)
        found = _search(args, kernels, bench, n, share)
        note = f"tuned at n = {n}"
        finalists = [
            tuned_table.entry(bench.device, ranges[n], each.kernel, each.config, note)
            for each in found[:FINALISTS]
        ]
        table = _adopt(args.table, bench, table, n, finalists)
    return OK


def _adopt(path: Path, bench: object, table: dict, n: int, rows: list) -> dict:
    """Measures the table and the finalists by bench; writes and returns the fastest table. A median
    must beat every repetition of the present choice: the best of five is often the luckiest. Where
    the table has no choice yet, anything does."""
    from benchkit import tuned_table

    present = bench.times(n, table)
    best, least = table, min(present, default=math.inf)
    choice = f"{statistics.median(present):.6g} us" if present else "none for this device"
    print(f"n = {n}: the table's choice: {choice}")
    for row in rows:
        candidate = tuned_table.merged(table, row)
        try:
            time_us = statistics.median(bench.times(n, candidate))
        except UserError as error:  # not this one, then
            print(f"{error}: {json.dumps(row)}", file=sys.stderr)
            continue
        print(f"n = {n}: {time_us:.6g} us: {json.dumps(row)}")
        if time_us < least:
            best, least = candidate, time_us
    if best is table:
        print(f"n = {n}: the table stays as it is")
    else:
        tuned_table.write(best, path)
    return best


def _parse(arguments: list[str]) -> argparse.Namespace:
    from benchkit import tuning

    parser = argparse.ArgumentParser(
        prog="tune.py",
        description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--n", type=_sizes, default=[1024], metavar="N,…", help="sizes (1024)")
    parser.add_argument("--device", default="", help="index or part of its name; default as bench")
    parser.add_argument(
        "--kernels", type=lambda text: text.split(","), metavar="NAME,…", help="default: all"
    )
    parser.add_argument("--budget", type=float, default=300, help="seconds of searching (300)")
    parser.add_argument(
        "--strategy",
        default="random_sample",
        choices=tuning.strategies(),
        metavar="NAME",
        help="of Kernel Tuner",
    )
    parser.add_argument("--table", type=Path, default=ROOT / "gpu" / "tuned.json", metavar="FILE")
    parser.add_argument("--bench", type=Path, default=ROOT / "build" / "release" / "bench")
    parser.add_argument("--cache", type=Path, default=ROOT / ".cache" / "tune", metavar="FOLDER")
    args = parser.parse_args(arguments)
    if not args.budget > 0:
        parser.error("--budget: expected seconds")
    return args


def _sizes(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.isdigit() and 0 < int(part) <= 65536 for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r}: expected sizes up to 65536, such as 512,1024")
    return sorted({int(part) for part in parts})


def _kernels(names: list[str] | None, device: object) -> list:
    """Those of that name; without names, all that the device can compile."""
    from benchkit import tunables

    folder = ROOT / "kernels"
    everything = (tunables.read(path) for path in sorted(folder.glob("*.cl")))
    known = {kernel.kernel: kernel for kernel in everything if kernel.tuned}
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise UserError(f"{unknown[0]} is no tunable kernel; there are: {', '.join(known)}")
    foreign = {name for name in known if known[name].capability > device.capability}
    for name in foreign.intersection(names or ()):
        least = known[name].capability / 10
        needs = f"an NVIDIA GPU of compute capability {least}"
        raise UserError(f"{name} needs {needs}, this is {device.label}")
    return [known[name] for name in names or known if name not in foreign]


def _search(args: argparse.Namespace, kernels: list, bench: object, n: int, seconds: float):
    """What was found of all kernels, fastest first, each with an equal share of the time left."""
    from benchkit import tuning

    end = time.monotonic() + seconds
    found = []
    for at, kernel in enumerate(kernels):
        share = max(1.0, (end - time.monotonic()) / (len(kernels) - at))
        print(f"{kernel.kernel}, n = {n}, {share:.0f} s", file=sys.stderr)
        if kernel.retargeted:
            found += tuning.tune_by_bench(kernel, bench, n, share)
        else:
            search = tuning.Search(args.strategy, share, args.cache)
            found += tuning.tune(kernel, bench.device, n, search)
    return sorted(found, key=lambda winner: winner.milliseconds)


if __name__ == "__main__":
    environment.use_project_python()
    environment.run(main)
