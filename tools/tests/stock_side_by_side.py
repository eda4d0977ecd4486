#!/usr/bin/env python3
"""The same inputs through Google Benchmark's own compare.py and ours, as a Markdown table.

    tools/tests/stock_side_by_side.py > table.md

Needs the Debian package libbenchmark-tools (/usr/share/benchmark/compare.py).
"""

import re
import subprocess
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
ROOT = TOOLS.parent
sys.path.insert(0, str(TOOLS))
from benchkit import environment  # noqa: E402

STOCK = Path("/usr/share/benchmark/compare.py")
CASES = TOOLS / "tests" / "cases"
PAIRS = (
    ("C-01", "a real +0.2 %, heavy ties", "old.json", "new.json"),
    ("C-03", "one repetition a side", "old.json", "new.json"),
    ("C-04", "3 v 3, +49.5 %", "old.json", "new.json"),
    ("C-06", "ns against ms and us", "old.json", "new.json"),
    ("C-09", "removed, renamed, added", "old.json", "new.json"),
    ("C-09", "nothing in common", "old.json", "new_disjoint.json"),
    ("C-10", "one benchmark fails in NEW", "old.json", "new.json"),
    ("C-12", "twice as fast", "old.json", "new.json"),
    ("C-14", "cold start in NEW", "old.json", "new.json"),
    ("C-20", "a real +20.5 %", "old.json", "new.json"),
    ("J-03", "NEW was killed", "../C-20/old.json", "run.json"),
    ("J-05", "NEW is empty", "../C-20/old.json", "run.json"),
    ("J-11", "aggregates only", "run.json", "run.json"),
    ("J-13", "with complexity fits", "run.json", "run.json"),
    ("J-16", "broken timers", "run.json", "run.json"),
)
OURS = re.compile(
    r"^(broke|missing|slower|still failing|not comparable|unclear|new|fixed|faster|same)  "
)


def main() -> int:
    if not STOCK.exists():
        print("install the Debian package libbenchmark-tools first", file=sys.stderr)
        return 2
    print("| case | what it is | stock compare.py | exit | tools/compare.py | exit |")
    print("| --- | --- | --- | --- | --- | --- |")
    for case, what, base, new in PAIRS:
        sides = [str((CASES / case / file).relative_to(ROOT)) for file in (base, new)]
        stock = run([sys.executable, str(STOCK), "--no-color", "benchmarks", *sides])
        ours = run([sys.executable, str(TOOLS / "compare.py"), "benchmarks", *sides])
        line = [case, what, stock_words(stock), stock.returncode, our_words(ours), ours.returncode]
        print("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |")
    return 0


def run(command: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def stock_words(done: subprocess.CompletedProcess) -> str:
    """Its verdict lines: the median or the only row, the p-value, the geomean."""
    if "Traceback" in done.stderr:
        return "traceback: " + done.stderr.strip().splitlines()[-1][:90]
    rows = [line.split() for line in done.stdout.splitlines() if re.search(r" [+-]\S+ +[+-]", line)]
    wanted = [row for row in rows if row[0].endswith(("_median", "_pvalue", "GEOMEAN"))] or rows
    said = [f"{short(row[0])} {percent(row[1])}" for row in wanted if "pvalue" not in row[0]]
    p_lines = re.findall(r"(\S+)_pvalue +(\S+)", done.stdout)
    said += [f"{short(name)} p {p}" for name, p in p_lines]
    said = said or [(done.stderr + done.stdout).strip().splitlines()[-1][:120]]
    return "; ".join(said[:4] + ["…"] * (len(said) > 4))


def our_words(done: subprocess.CompletedProcess) -> str:
    lines = [re.split(r" {2,}", line) for line in done.stdout.splitlines() if OURS.match(line)]
    said = [f"**{cells[0]}** {short(cells[1])}: {cells[-1].split(' → ')[0]}" for cells in lines]
    error = re.sub(r"\S*/", "", done.stderr.strip())
    return "; ".join(said[:4] + ["…"] * (len(said) > 4)) or error


def short(name: str) -> str:
    return re.sub(r"/(n:\d+/)?(real_time|manual_time)", "", name)


def percent(ratio: str) -> str:
    try:
        return f"{float(ratio) * 100:+.1f} %"
    except ValueError:
        return ratio


if __name__ == "__main__":
    environment.use_project_python()
    sys.exit(main())
