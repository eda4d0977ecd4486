#!/usr/bin/env python3
"""Finds the best configurations of the kernels on this device, for the variant SGEMM/GPU/Tuned.

  tune.py                                      every tunable kernel at n = 1024, five minutes
  tune.py --n 512,1024,2048 --budget 600       a range of sizes
  tune.py --device H200 --kernels sgemm_tile_register_warp,sgemm_tile_register

What is tried, and what must hold, stands in the kernels/*.cl files ("tune:", #error, LOCAL_BYTES).
Kernel Tuner searches; each configuration is proved with integers before it counts. For each n the
best five and the table's present choice are then measured by bench, and one that is clearly faster
goes into gpu/tuned.json; the next build embeds it, `bench --tuned=gpu/tuned.json` uses it at once.
What was measured is remembered under .cache/tune: run it again to go on.

Exit code: 0 done, whether or not anything was faster, 2 bad usage or unusable input.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchkit import environment
from benchkit.errors import OK, UserError

ROOT = environment.ROOT
FINALISTS = 5  # times of a search are minutes apart; these are measured again, side by side


def main(arguments: list[str]) -> int:
    args = _parse(arguments)
    from benchkit import tuned_table, tuning

    if not args.bench.exists():
        raise UserError(f"{args.bench} is not there to compare with; run tools/bench.sh once")
    device = tuning.choose_device(args.device)
    kernels = _kernels(args.kernels, device)
    table = tuned_table.read(args.table)
    end = time.monotonic() + args.budget
    ranges = tuned_table.ranges(args.n)
    for at, n in enumerate(args.n):
        share = (end - time.monotonic()) / (len(args.n) - at)
        found = _search(args, kernels, device, n, share)
        note = f"tuned at n = {n}"
        finalists = [
            tuned_table.entry(device, ranges[n], each.kernel, each.config, note)
            for each in found[:FINALISTS]
        ]
        table = _adopt(args, device, table, n, finalists)
    return OK


def _adopt(args: argparse.Namespace, device: object, table: dict, n: int, rows: list) -> dict:
    """Measures the table and the finalists by bench; writes and returns the fastest table. A median
    must beat every repetition of the present choice: the best of five is often the luckiest."""
    from benchkit import tuned_table

    present = _times(args.bench, device, n, table)
    best, before, least = table, statistics.median(present), min(present)
    for row in rows:
        candidate = tuned_table.merged(table, row)
        time_us = statistics.median(_times(args.bench, device, n, candidate))
        ratio = f"{before / time_us:.3f} times as fast as the table's choice"
        print(f"n = {n}: {time_us:.6g} us, {ratio}: {json.dumps(row)}")
        if time_us < least:
            best, least = candidate, time_us
    if best is table:
        print(f"n = {n}: the table keeps its choice, {before:.6g} us")
    else:
        tuned_table.write(best, args.table)
    return best


def _parse(arguments: list[str]) -> argparse.Namespace:
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
    parser.add_argument("--strategy", default="random_sample", help="of Kernel Tuner")
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
    foreign = [name for name in known if known[name].nvidia and not device.capability]
    for name in names or ():
        if name in foreign:
            raise UserError(f"{name} needs an NVIDIA GPU, this is {device.label}")
    return [known[name] for name in names or known if name not in foreign]


def _search(args: argparse.Namespace, kernels: list, device: object, n: int, seconds: float):
    """What was found of all kernels, fastest first, each with an equal share of the time left."""
    from benchkit import tuning

    end = time.monotonic() + seconds
    found = []
    for at, kernel in enumerate(kernels):
        share = max(1.0, (end - time.monotonic()) / (len(kernels) - at))
        print(f"{kernel.kernel}, n = {n}, {share:.0f} s", file=sys.stderr)
        search = tuning.Search(args.strategy, share, args.cache)
        found += tuning.tune(kernel, device, n, search)
    return sorted(found, key=lambda winner: winner.milliseconds)


def _times(bench: Path, device: object, n: int, table: dict) -> list[float]:
    """Times of Tuned by this table, in bench's unit (us); proved by bench as every row is."""
    from benchkit import tuned_table

    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "tuned.json", Path(folder) / "run.json"
        file.write_text(tuned_table.text(table), encoding="utf-8")
        command = [bench, f"--device={device.label}", f"--n={n}", f"--tuned={file}", "--budget=0"]
        command += ["--benchmark_filter=^SGEMM/GPU/Tuned/n:", "--benchmark_repetitions=5"]
        command += [f"--benchmark_out={out}", "--benchmark_min_time=0.1"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0 or not out.exists():
            raise UserError(f"bench cannot measure the table: {done.stderr.strip()}")
        rows = json.loads(out.read_text())["benchmarks"]
    times = [row["real_time"] for row in rows if row.get("run_type") == "iteration"
             and not row.get("error_occurred") and not row.get("skipped")]  # fmt: skip
    if not times:
        raise UserError(f"bench measured nothing at n = {n}: {done.stderr.strip()}")
    return times


if __name__ == "__main__":
    environment.use_project_python()
    environment.run(main)
