#!/usr/bin/env python3
"""Fills the generated parts of README.md and of results/*/README.md from stored runs.

  tools/readme.py            rewrites them in place
  tools/readme.py --check    writes nothing; exit code 1 if a text differs from what the runs say

A generated part stands between a line that says what it is and a line that ends it:

  <!-- table SGEMM n=1024 results/MACHINE/FILE.json -->
  <!-- chart SGEMM n=1024,2048 results/MACHINE/FILE.json -> results/MACHINE/ladder.svg -->
  <!-- advice SGEMM results/MACHINE/FILE.json -->
  <!-- crossover SGEMM results/MACHINE/FILE.json -> results/MACHINE/crossover.svg -->
  <!-- roofline SGEMM results/MACHINE/FILE.json -> results/MACHINE/roofline.svg -->
  <!-- end -->

Several files, as a quoted pattern, are one run in several launches.
"""

import argparse
import re
import sys
from functools import partial
from pathlib import Path

from benchkit import environment
from benchkit.errors import OK, REGRESSION, UserError

ROOT = Path(__file__).resolve().parents[1]
PART = re.compile(
    r"<!-- (?P<kind>\w+) (?P<op>SGEM[MV])(?: n=(?P<sizes>[\d,]+))? (?P<run>\S+)"
    r"(?: -> (?P<out>\S+))? -->\n.*?<!-- end -->",
    re.DOTALL,
)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="only say whether the texts are true")
    args = parser.parse_args(arguments)
    stale = []
    for page in [ROOT / "README.md", *sorted((ROOT / "results").glob("*/README.md"))]:
        old = page.read_text(encoding="utf-8")
        new = PART.sub(partial(generated, page=page, draw=not args.check), old)
        if new != old:
            stale.append(str(page.relative_to(ROOT)))
            if not args.check:
                from benchkit import output

                output.write(str(page), new)
    if stale:
        print(f"{'stale' if args.check else 'rewritten'}: {', '.join(stale)}", file=sys.stderr)
    return REGRESSION if args.check and stale else OK


def generated(part: re.Match[str], page: Path, draw: bool) -> str:
    """The part with what its first line asks for."""
    head = part.group(0).split("\n", 1)[0]
    maker = {"table": laddered, "chart": laddered}.get(part["kind"], advised)
    return f"{head}\n\n{maker(part, page, draw)}\n\n<!-- end -->"


def advised(part: re.Match[str], page: Path, draw: bool) -> str:
    """CPU or GPU in words, or as a picture; the rooflines."""
    from benchkit import advice, counsel, pictures, reading, roofline

    machines = advice.machines(reading.read([ROOT / part["run"]]))
    advices = [advice.advise(machine, advice.Wishes(part["op"])) for machine in machines]
    if part["kind"] == "advice":
        return ("\n" + counsel.markdown(advices)).replace("\n## ", "\n#### ").strip()
    drawings = {
        "crossover": lambda: pictures.crossovers(advices),
        "roofline": lambda: pictures.roofline(advices[0], roofline.points(machines[0])),
    }
    if part["kind"] not in drawings or part["out"] is None:
        raise UserError(f"{page.name}: {part.group(0).splitlines()[0]}: no such part, or no file")
    if draw:
        pictures.save(drawings[part["kind"]](), str(ROOT / part["out"]))
    return f"![{part['op']}: {part['kind']}]({beside(page, part['out'])})"


def beside(page: Path, target: str) -> str:
    """A path from the root as the page has to write it."""
    return "../" * (len(page.relative_to(ROOT).parts) - 1) + target


def laddered(part: re.Match[str], page: Path, draw: bool) -> str:
    """The table or the chart of all variants."""
    from benchkit import ladder, ladder_chart, pictures, reading

    head = part.group(0).split("\n", 1)[0]
    if part["sizes"] is None:
        raise UserError(f"{page.name}: {head}: which n?")
    launches = reading.read([ROOT / part["run"]])
    sizes = [int(size) for size in part["sizes"].split(",")]
    ladders = {n: ladder.rungs(launches, part["op"], n) for n in sizes}
    if not any(ladders.values()):
        raise UserError(f"{page.name}: {head}: the run has no such rows")
    if part["kind"] == "table":
        body = "\n\n".join(
            f"n = {n}:\n\n{ladder.table(rungs, part['op'])}" for n, rungs in ladders.items()
        )
    else:
        if part["out"] is None:
            raise UserError(f"{page.name}: {head}: a chart needs '-> FILE.svg'")
        if draw:
            pictures.save(
                ladder_chart.chart(part["op"], ladders, launches), str(ROOT / part["out"])
            )
        body = f"![{part['op']} by variant, GFLOP/s]({beside(page, part['out'])})"
    return body


if __name__ == "__main__":
    environment.use_project_python()
    environment.run(main)
