#!/usr/bin/env python3
"""Where should this size run, CPU or GPU? Reads runs of bench and answers, size by size.

  advise.py run.json                            Markdown on the terminal
  advise.py run.json --json advice.json --markdown advice.md --plot crossover.svg
  advise.py laptop.json server/*.json           one section a machine
  advise.py run.json --roofline roofline.svg    every variant under its device's roofs

A RUN is a result file (--benchmark_out), a folder of launches, a quoted pattern or - for standard
input. Measure all that it needs in one go, the Peak rows included:

  bench --n=128,256,512,1024,2048,4096 --benchmark_repetitions=5 --benchmark_out=run.json

For each n: the best CPU row, the best GPU row with its data on the device, and the best GPU row
with transfers; then the sizes at which the answer turns for resident data, for one product with
transfers and for k products on resident data; then the decision flow with this machine's figures.
Where the intervals of two times overlap the answer is "unclear"; a time that was measured once has
no interval and is given 10 % either way. Variants of reduced precision (Tf32) take part with
--reduced-precision only.

Exit code: 0 answered, 2 bad usage or unusable input.
"""

import argparse
import sys
from collections.abc import Sequence

from benchkit import environment
from benchkit.errors import OK, UserError

MOST_WARNINGS = 5


def main(arguments: list[str]) -> int:
    args = _parse(arguments)
    from benchkit import advice, counsel, reading

    launches = reading.read(args.runs, args.salvage)
    warnings = [warning for launch in launches for warning in launch.warnings]
    for warning in warnings[:MOST_WARNINGS]:
        print(f"advise.py: warning: {warning}", file=sys.stderr)
    if len(warnings) > MOST_WARNINGS:
        print(f"advise.py: warning: {len(warnings) - MOST_WARNINGS} more", file=sys.stderr)
    wishes = advice.Wishes(args.op, args.products, args.reduced_precision)
    machines = advice.machines(launches)
    advices = [advice.advise(machine, wishes) for machine in machines]
    texts = {
        path: form(advices)
        for path, form in ((args.json, counsel.as_json), (args.markdown, counsel.markdown))
        if path
    }
    if not texts and not args.plot and not args.roofline:
        texts["-"] = counsel.markdown(advices)
    _write(texts, launches)
    _draw(args, advices, machines)
    return OK


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="advise.py",
        description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("--op", choices=("SGEMM", "SGEMV"), default="SGEMM", help="the product")
    parser.add_argument(
        "--products",
        type=_counts,
        default=(10, 100),
        metavar="K,…",
        help="k of the question about k products (default 10,100)",
    )
    parser.add_argument("--reduced-precision", action="store_true", help="let Tf32 variants win")
    parser.add_argument("--json", metavar="FILE", help="the advice as JSON (- for stdout)")
    parser.add_argument("--markdown", metavar="FILE", help="the advice as Markdown (- for stdout)")
    parser.add_argument("--plot", metavar="FILE", help="crossover picture, .svg, .png or .pdf")
    parser.add_argument(
        "--roofline",
        metavar="FILE",
        help="roofline picture of the (only) machine, .svg, .png or .pdf",
    )
    parser.add_argument("--salvage", action="store_true", help="use the rows of truncated files")
    return parser.parse_args(arguments)


def _counts(text: str) -> tuple[int, ...]:
    counts = tuple(int(part) for part in text.split(",") if part.isdigit() and int(part) > 0)
    if not counts or len(counts) != len(text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r}: expected whole numbers, such as 10,100")
    return counts


def _write(texts: dict[str, str], launches: Sequence) -> None:
    from benchkit import output

    for path, text in texts.items():
        if path == "-":
            sys.stdout.reconfigure(errors="replace")
            sys.stdout.write(text)
        else:
            output.write(path, text, [launch.path for launch in launches])


def _draw(args: argparse.Namespace, advices: Sequence, machines: Sequence) -> None:
    if not args.plot and not args.roofline:
        return
    from benchkit import pictures, roofline

    if args.plot:
        pictures.save(pictures.crossovers(advices), args.plot)
    if args.roofline:
        if len(machines) > 1:
            raise UserError(f"--roofline draws one machine; these runs are of {len(machines)}")
        pictures.save(pictures.roofline(advices[0], roofline.points(machines[0])), args.roofline)


if __name__ == "__main__":
    environment.use_project_python()
    environment.run(main)
