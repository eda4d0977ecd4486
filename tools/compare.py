#!/usr/bin/env python3
"""Compares benchmark runs: a word per benchmark that people can trust, an exit code for a gate.

  compare.py benchmarks old.json new.json       two results, folders of launches, or two programs
  compare.py commits main HEAD                  builds both, measures them in turns, compares
  compare.py within run.json --baseline Eigen   speed-ups inside one run; --by n, op, side, …
  compare.py csv run.json -o run.csv            a result as a tidy table
  compare.py benchmarks bench bench --keep aa   a program against itself: the noise, for --floor aa

A side is a result file, a quoted pattern, a comma list, a folder (each file one launch), - for
standard input, .gz or not, or a program, which is then launched --launches times, in turns with
the other side. Words: faster, slower, same (the interval lies inside the margin), unclear, broke,
fixed, still failing, missing, new, not comparable.

Exit code: 0 no confirmed regression, 1 regression, or broken or missing in NEW, 2 bad usage or
unusable input, 3 not comparable (or no row is), 130 interrupted (what was measured is reported and
kept).
"Still failing" is broken in NEW and gives 1: nothing was measured that could be called fine. A gate
that knows of its broken rows says so with --fail-on slower,broke,missing.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchkit import environment, options
from benchkit.errors import INTERRUPTED, OK, REGRESSION, UserError

IDENTICAL = (
    "both programs are identical: every difference is noise (--keep DIR stores it as a --floor)"
)


def main(arguments: list[str]) -> int:
    args = options.parse(arguments, __doc__ or "")
    return VERBS[args.verb](args)


# ---- verbs ------------------------------------------------------------------------------------


def csv_verb(args: argparse.Namespace) -> int:
    """Results → tidy CSV; 1 when a row failed, as every report of failed rows."""
    from benchkit import tables

    launches = read(args, args.runs)
    write_outputs({args.output or "-": tables.write_csv(launches)}, launches)
    failed = sum(row.status in ("error", "invalid") for launch in launches for row in launch.rows)
    if failed:
        say(f"{failed} rows were not measured; their time cells are empty")
    return REGRESSION if failed else OK


def within_verb(args: argparse.Namespace) -> int:
    """Speed-ups of one run's benchmarks over a baseline among them."""
    from benchkit import within

    launches = read(args, args.runs)
    race = within.race(launches, args.by, args.baseline, args.confidence)
    if race.left_out:
        say(f"warning: --baseline finds nothing in {race.left_out} groups; they are left out")
    texts = {"json": within.as_json, "csv": within.as_csv, "markdown": within.markdown}
    wanted = {path: text(race) for kind, text in texts.items() if (path := getattr(args, kind))}
    if "-" not in wanted:
        wanted["-"] = within.terminal(race, *screen(args))
    write_outputs(wanted, launches)
    return OK


def benchmarks_verb(args: argparse.Namespace) -> int:
    return compare(args, Side(args.base), Side(args.new))


def filters_verb(args: argparse.Namespace) -> int:
    return compare(args, Side(args.base, args.base_filter), Side(args.base, args.new_filter))


def benchmarksfiltered_verb(args: argparse.Namespace) -> int:
    return compare(args, Side(args.base, args.base_filter), Side(args.new, args.new_filter))


def commits_verb(args: argparse.Namespace) -> int:
    """Builds two revisions in worktrees under the cache and compares their programs."""
    from benchkit import revisions

    repository = revisions.Repository.around(Path.cwd(), args.cache)
    given = args.base.split("..", 1) if args.base and ".." in args.base else [args.base, args.new]
    base, new = (revision or None for revision in given)
    if not new and repository.uncommitted():
        say("warning: uncommitted changes in your tree are not measured; HEAD is")
    new_id = repository.resolve(new or "HEAD")
    commits = [repository.resolve(base) if base else repository.merge_base(new_id), new_id]
    recipe = revisions.Recipe(args.build, args.program)
    programs = [repository.build(commit, recipe, say) for commit in commits]
    if not args.keep:
        pair = "-".join(commit[:8] for commit in commits)
        args.keep = str(repository.cache / "runs" / f"{pair}-{time.strftime('%Y%m%d-%H%M%S')}")
    labels = [repository.describe(commit) for commit in commits]
    return compare(
        args, *(Side(str(p), label=label) for p, label in zip(programs, labels, strict=True))
    )


VERBS = {
    "benchmarks": benchmarks_verb,
    "filters": filters_verb,
    "benchmarksfiltered": benchmarksfiltered_verb,
    "commits": commits_verb,
    "csv": csv_verb,
    "within": within_verb,
}


# ---- comparing --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """What the command line says of one side; `filter` is a regex of its benchmarks."""

    source: str
    filter: str = ""
    label: str = ""

    @property
    def name(self) -> str:
        return self.label or self.source + (f" [{self.filter}]" if self.filter else "")


def compare(args: argparse.Namespace, base: Side, new: Side) -> int:
    """Launches or reads both sides, judges, reports; the same for every verb."""
    from benchkit import launching

    judge, interrupted, sides = judge_of(args, base, new), False, (base, new)
    programs = [launching.is_program(side.source) for side in sides]
    same = all(programs) and launching.identical(base.source, new.source)
    identical = [IDENTICAL] if same and base.filter == new.filter else []
    if not any(programs):
        reject_flags(args)
    with results_folder(args, any(programs)) as folder:
        if all(programs):
            for warning in identical:
                say(f"warning: {warning}")
            launches, interrupted = in_turns(args, sides, folder, judge)
        else:
            launches = [read_or_launch(args, side, folder) for side in sides]
        if interrupted:
            say(f"interrupted: the launches so far are kept in {folder}")
            args.keep = str(folder)
            if not launches[0]:
                return INTERRUPTED
        report = judge(launches)
        report.warnings += identical
        show(args, report, [la for side in launches for la in side])
    broken = report.count("still failing")
    if broken and "still failing" not in args.fail_on:
        say(f"warning: {broken} benchmarks fail on both sides: nothing is known of their speed")
    return INTERRUPTED if interrupted else report.exit_code(args.fail_on)


def judge_of(args: argparse.Namespace, base: Side, new: Side) -> Callable:
    """The function (launches of BASE, launches of NEW) → Report; what it needs is read now."""
    from benchkit import verdicts
    from benchkit.reading import select

    settings, floor, sides = settings_of(args), floor_of(args), (base, new)

    def judge(launches: Sequence) -> verdicts.Report:
        if base.filter or new.filter:
            name = f"[{base.filter} vs. {new.filter}]"
            launches = [select(la, s.filter, name) for la, s in zip(launches, sides, strict=True)]
        return verdicts.judge(*launches, settings, (base.name, new.name), floor)

    return judge


def in_turns(
    args: argparse.Namespace, sides: Sequence[Side], folder: Path, judge: Callable
) -> tuple[Sequence, bool]:
    """The launches of two programs that take turns, and whether Ctrl-C ended them early."""
    from benchkit import launching

    programs = tuple(program_of(side, args) for side in sides)
    session = launching.Session(programs, folder, launching.Clock(say), random.Random(args.seed))

    def unclear() -> list[str] | None:
        rows = judge(session.balanced()).verdicts
        rows = [v for v in rows if v.word == "unclear" and not v.held_back]
        filtered = any(side.filter for side in sides)
        return None if rows and filtered else sorted({v.run_name for v in rows})

    session.measure_until(launching.Plan(args.launches, args.max_launches), unclear)
    return session.balanced(), session.interrupted


def read_or_launch(args: argparse.Namespace, side: Side, folder: Path) -> list:
    """The launches of one side when at most one of the sides is a program."""
    from benchkit import launching

    if launching.is_program(side.source):
        return launching.alone(program_of(side, args), args.launches, folder, launching.Clock(say))
    return read(args, [side.source])


def reject_flags(args: argparse.Namespace) -> None:
    """Without a program, flags of Google Benchmark have no effect and others are mistakes."""
    if unknown := [flag for flag in args.flags if not flag.startswith("--benchmark_")]:
        raise UserError(f"unknown option {unknown[0]} (see --help)")
    if useless := [*args.flags, *(["--keep"] if args.keep else [])]:
        say(f"warning: {' '.join(useless)} has no effect on results that are read from files")


def floor_of(args: argparse.Namespace):
    """The stored launches of one program against itself, if the command line names them."""
    from benchkit import floors

    if args.floor is None:
        return None
    if args.verb in ("filters", "benchmarksfiltered"):
        raise UserError(f"--floor: the sides of '{args.verb}' are different benchmarks")
    return floors.of(read(args, [args.floor]))


def program_of(side: Side, args: argparse.Namespace):
    from benchkit import launching

    launching.check_flags(args.flags)
    chosen = (f"--benchmark_filter={side.filter}",) if side.filter else ()
    return launching.Program(Path(side.source).resolve(), (*args.flags, *chosen))


def settings_of(args: argparse.Namespace):
    from benchkit import deciding, launching, margins, verdicts

    if not args.better and deciding.higher_is_better(args.metric) is None:
        raise UserError(
            f"--metric {args.metric}: nobody can know whether more of it is better; "
            "say --better higher or --better lower"
        )
    rules = margins.defaults(args.margin)
    rules += margins.read(args.margins) if args.margins else []
    return verdicts.Settings(
        args.alpha,
        args.confidence,
        tuple(rules),
        args.metric,
        args.better,
        launching.Plan(args.launches, args.max_launches).looks,
        args.utest,
        args.allow_different_machine,
    )


@contextmanager
def results_folder(args: argparse.Namespace, needed: bool) -> Iterator[Path]:
    """Where launches go: --keep, else a temporary folder, removed unless something went wrong."""
    keep = args.keep
    folder = Path(keep) if keep else Path(tempfile.mkdtemp(prefix="compare-")) if needed else Path()
    if keep and folder.exists() and any(folder.iterdir()):
        raise UserError(f"--keep {keep}: the folder is not empty; nothing is overwritten")
    try:
        yield folder
    except UserError as error:
        if needed and any(folder.rglob("*.json")):
            raise UserError(
                f"{error}; the launches so far are in {folder}", error.exit_code
            ) from error
        raise
    if needed and not args.keep:
        shutil.rmtree(folder, ignore_errors=True)


# ---- reading and showing ----------------------------------------------------------------------


def read(args: argparse.Namespace, sources: Sequence[str]) -> list:
    from benchkit import reading

    launches = reading.read(sources, args.salvage)
    if args.verb in ("csv", "within"):  # a comparison shows the warnings in its report
        for warning in (warning for launch in launches for warning in launch.warnings):
            say(f"warning: {warning}")
    return launches


def show(args: argparse.Namespace, report, launches: Sequence) -> None:
    """The report in every form asked for, and on the terminal unless one of them goes there."""
    from benchkit import page, records, rendering

    shown = report.verdicts
    if args.only_changed:
        shown = [v for v in shown if v.word not in ("same", "unclear") or v.held_back]
    forms = {
        "json": records.as_json,
        "csv": records.as_csv,
        "markdown": rendering.markdown,
        "junit": lambda r, s: rendering.junit(r, s, args.fail_on),
        "html": page.html,
        "annotations": lambda r, s: rendering.annotations(r, s, args.fail_on),
    }
    wanted = {
        path: forms[kind](report, shown)
        for kind in options.FORMATS
        if (path := getattr(args, kind))
    }
    if "-" not in wanted:
        wanted["-"] = rendering.terminal(report, shown, *screen(args))
    write_outputs(wanted, launches)


def write_outputs(texts: dict[str, str], launches: Sequence) -> None:
    from benchkit import output

    for path, text in texts.items():
        if path == "-":
            sys.stdout.reconfigure(errors="replace")
            sys.stdout.write(text)
        else:
            output.write(path, text, [launch.path for launch in launches])


def screen(args: argparse.Namespace) -> tuple[int | None, bool]:
    """Width (None: not a terminal) and whether to colour."""
    terminal = sys.stdout.isatty()
    width = max(100, shutil.get_terminal_size().columns) if terminal else None
    return width, terminal and args.color and not os.environ.get("NO_COLOR")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    environment.use_project_python()
    environment.run(main)
