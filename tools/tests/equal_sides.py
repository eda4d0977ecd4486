#!/usr/bin/env python3
"""Compares a program with itself, again and again: how often does compare.py raise a false alarm?

    tools/tests/equal_sides.py build/release/bench -o results.jsonl --comparisons 20 -- --n=64,128

Each comparison appends one line to the file, so that a long series can be stopped and continued;
--table prints what the file holds as Markdown. With --new PROGRAM the sides differ: a planted
slow-down must then be found (cmake -DPLANT_SLOWDOWN=10 builds one).
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOOLS))
from benchkit import environment  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program")
    parser.add_argument("--new", help="another program for the second side")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--comparisons", type=int, default=20)
    parser.add_argument("--launches", type=int, default=10)
    parser.add_argument("--table", action="store_true")
    args, flags = parser.parse_known_args()  # what is not known here goes to the program
    args.flags = [flag for flag in flags if flag != "--"]
    for _ in range(0 if args.table else args.comparisons):
        with args.output.open("a") as file:
            file.write(json.dumps(compare(args)) + "\n")
    if args.table:
        print_table([json.loads(line) for line in args.output.read_text().splitlines()])
    return 0


def compare(args: argparse.Namespace) -> dict:
    """One comparison; gives the counts of its words and what it called slower or faster."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        command = [sys.executable, str(TOOLS / "compare.py"), "benchmarks", args.program]
        command += [args.new or args.program, "--launches", str(args.launches), "--json", str(file)]
        done = subprocess.run([*command, *args.flags], capture_output=True, text=True, check=False)
        if not file.exists():
            sys.exit(done.stderr)
        report = json.loads(file.read_text())
    changed = [b for b in report["benchmarks"] if b["verdict"] in ("slower", "faster")]
    spreads = sorted(b["base"]["spread_between_launches"] or 0 for b in report["benchmarks"])
    return {
        "rows": report["family"],
        "exit": done.returncode,
        "counts": {word: count for word, count in report["counts"].items() if count},
        "changed": [f"{b['verdict']} {b['name']} {b['ratio'] - 1:+.1%}" for b in changed],
        "median_spread": spreads[len(spreads) // 2],
        "smallest_adjusted_p": min(
            (b["p_adjusted"] for b in report["benchmarks"] if b["p_adjusted"]), default=None
        ),
    }


def print_table(comparisons: list[dict]) -> None:
    print("| # | rows | exit | verdicts | slower or faster | median spread between launches |")
    print("| --- | --- | --- | --- | --- | --- |")
    for number, one in enumerate(comparisons, 1):
        counts = ", ".join(f"{count} {word}" for word, count in one["counts"].items())
        changed = "; ".join(one["changed"]) or "none"
        cells = (number, one["rows"], one["exit"], counts, changed, f"{one['median_spread']:.1%}")
        print("| " + " | ".join(map(str, cells)) + " |")
    alarms = sum(any(c.startswith("slower") for c in one["changed"]) for one in comparisons)
    print(f"\n{alarms} of {len(comparisons)} comparisons called anything slower.")


if __name__ == "__main__":
    environment.use_project_python()
    sys.exit(main())
