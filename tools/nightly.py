#!/usr/bin/env python3
"""Measures one night and says whether something got slower for good.

  nightly.py                              builds HEAD, measures it, checks the history
  nightly.py --config night.toml          the rows, sizes, devices and peers of a file
  nightly.py --commits v1..main           older commits, one night each (those without one yet)
  nightly.py --check                      measures nothing, checks the history only
  nightly.py --prune 90                   says what packing nights older than 90 days would save;
                                          with --yes packs their raw files (gz, nothing is lost)

A night is N launches (default 10) of every family of rows, CPU and OpenCL apart, in
results/<machine>/<date>_<sha8>/: one JSON a launch and night.jsonl, what happened. A killed night
goes on where it stopped. The configuration, every key optional:

  machine = "laptop"            # the folder; default: the host's name
  launches = 10
  extra = 5                     # more launches, of unclear rows alone; default: half, 0: none
  limit = 3600                  # seconds a launch may take
  reference = "^Peak/"          # rows that tell a slower machine from slower code
  build = "cmake --preset release && cmake --build --preset release --target bench"
  program = "build/release/bench"
  [[family]]
  name = "GPU"
  filter = "SGEMM/GPU"          # --benchmark_filter
  n = [256, 1024]               # --n
  device = "NVIDIA"             # --device
  peers = ["libclblast.so.1"]   # --peers
  flags = ["--budget=10"]       # any others

Exit code: 0 measured, no confirmed regression · 1 a confirmed regression of the code (three nights
or more, until it is sure among all series; not acknowledged in results/acknowledged.toml, not
explained by a reference row) · 2 bad usage or configuration · 3 another night is running · 4 some
launches lost · 5 did not build · 6 no rows · 7 all skipped · 130 interrupted. A regression goes
before 4.
"""

import argparse
import signal
import sys
from pathlib import Path

from benchkit import environment
from benchkit.errors import INTERRUPTED, OK, REGRESSION, UserError


def main(arguments: list[str]) -> int:
    args = parse(arguments)
    from benchkit import night

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # systemd stops us as Ctrl-C does
    config = night.read_config(args.config)
    results = Path(args.results)
    folder = results / (args.machine or config.machine)
    if args.prune is not None:
        return prune(folder, args.prune, args.yes)
    code = OK
    if not args.check:
        try:
            with night.locked(folder):
                code = measure_all(args, config, folder)
        except KeyboardInterrupt:
            say("interrupted; the next night of this commit goes on from here")
            return INTERRUPTED
    regressions = check(args, config, results, folder.name)
    return REGRESSION if regressions and code in (0, 4) else code


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config", metavar="TOML", help="what to measure")
    parser.add_argument("--results", metavar="DIR", default="results", help="default: results")
    parser.add_argument("--machine", metavar="NAME", help="the folder under DIR")
    parser.add_argument("--commits", metavar="A..B", help="backfill: every commit after A up to B")
    parser.add_argument(
        "--launches", metavar="N", type=int, help="instead of the configured number"
    )
    parser.add_argument("--program", metavar="FILE", help="measure this program, build nothing")
    parser.add_argument("--cache", metavar="DIR", help="built commits; default: .cache/commits")
    parser.add_argument("--index", metavar="FILE", help="default: .cache/history.sqlite")
    parser.add_argument("--branch", default="HEAD", help="whose order of commits counts")
    parser.add_argument("--check", action="store_true", help="only check the history")
    parser.add_argument("--prune", metavar="DAYS", type=int, help="only pack older nights")
    parser.add_argument("--yes", action="store_true", help="with --prune: do it")
    args = parser.parse_args(arguments)
    if args.yes and args.prune is None:
        parser.error("--yes belongs to --prune")
    if args.program and args.commits:
        parser.error("--program and --commits exclude each other")
    if args.launches is not None and args.launches < 1:
        parser.error("--launches must be positive")
    return args


# ---- measuring --------------------------------------------------------------------------------


def measure_all(args: argparse.Namespace, config, folder: Path) -> int:
    """One night, or one for each commit of --commits; the worst exit code."""
    from benchkit import launching, night
    from benchkit.revisions import Repository

    if args.launches:
        from dataclasses import replace

        config = replace(config, launches=args.launches)
    if args.program:
        if not launching.is_program(args.program):
            raise UserError(f"{args.program}: not an executable file")
        return measure_one(config, Path(args.program).resolve(), folder, "")
    repository = Repository.around(Path.cwd(), args.cache)
    commits = commits_of(repository, args.commits) if args.commits else [repository.resolve("HEAD")]
    if not args.commits and repository.uncommitted():
        say("warning: uncommitted changes are not measured; HEAD is")
    done = set(night.measured(folder)) if args.commits else set()
    codes = [build_and_measure(repository, config, folder, c) for c in commits if c not in done]
    return max(codes, default=OK)


def commits_of(repository, span: str) -> list[str]:
    """A..B along the first parents, oldest first."""
    first, dots, last = span.partition("..")
    if not dots or not first:
        raise UserError(f"--commits {span}: write A..B")
    ends = f"{repository.resolve(first)}..{repository.resolve(last or 'HEAD')}"
    commits = repository.git("rev-list", "--first-parent", "--reverse", ends).split()
    if not commits:
        raise UserError(f"--commits {span}: no commit lies between them")
    return commits


def build_and_measure(repository, config, folder: Path, commit: str) -> int:
    from benchkit import journal, night, revisions

    recipe = revisions.Recipe(config.build or revisions.BUILD, config.program or revisions.PROGRAM)
    try:
        program = repository.build(commit, recipe, say)
    except UserError as error:
        message = str(error).split("; all of it")[0]
        say(f"warning: {message}")
        night.failed_build(night.start(folder, commit), commit, message[:500])
        return journal.STATES["did not build"][0]
    return measure_one(config, program, folder, commit)


def measure_one(config, program: Path, folder: Path, commit: str) -> int:
    from benchkit import journal, night

    done = night.measure(config, program, night.start(folder, commit), commit, say)
    log = journal.read(done)
    say(f"{done.name}: {log.state}" + (f" ({log.message})" if log.message else ""))
    return journal.STATES[log.state][0]


# ---- packing ----------------------------------------------------------------------------------


def prune(folder: Path, days: int, really: bool) -> int:
    """Packs the raw files of old nights, or says what would be packed."""
    from benchkit import night, pruning

    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such machine; --machine names one")
    with night.locked(folder):
        files = pruning.candidates(folder, days)
        nights, size = len({file.parent for file in files}), sum(f.stat().st_size for f in files)
        said = f"{len(files)} files of {nights} nights older than {days} days in {folder}"
        if files and not really:
            print(f"would pack {said}, {size / 1e6:.1f} MB; --yes does it")
        else:
            after = pruning.pack(files)
            print(f"packed {said}: {size / 1e6:.1f} MB → {after / 1e6:.1f} MB")
    return OK


# ---- checking ---------------------------------------------------------------------------------


def check(args: argparse.Namespace, config, results: Path, machine: str) -> int:
    """Takes in what is new and prints this machine's alarms; how many are confirmed regressions."""
    import re

    from benchkit import alarms, branch, history
    from benchkit.index import Index, index_of

    index = Index(Path(args.index) if args.index else index_of(results))
    index.ingest(results)
    aliases = results / "aliases.json"
    past = history.load(
        index,
        branch.order_of(results, branch=args.branch),
        history.read_aliases(aliases) if aliases.exists() else {},
    )
    for warning in past.warnings:
        say(f"warning: {warning}")
    known = alarms.read_acknowledgements(results / "acknowledged.toml")
    rules = alarms.Rules(reference=re.compile(config.reference), known=known)
    mine = [
        a for a in alarms.find(past, rules, branch.Between(results), index) if a.machine == machine
    ]
    nights = {m.name: m.nights for m in past.machines}
    for alarm in mine:
        if alarm.state != alarms.RESOLVED:
            print(sentence(alarm, nights[machine]))
    regressions = sum(alarm.regression for alarm in mine)
    print(f"{regressions} confirmed regressions, {len(mine)} changes in all. {past.order}")
    return regressions


def sentence(alarm, nights) -> str:
    night = nights[alarm.night]
    what = "slower" if alarm.slower else "faster"
    said = f"{alarm.state}: {alarm.series}: {(alarm.ratio - 1) * 100:+.1f} % time ({what}) since "
    said += f"{night.date[:10]} {night.sha[:8]}"
    said += f" [the {alarm.cause} moved{': ' + alarm.why if alarm.why else ''}]"
    return said + "".join(f"\n    {line}" for line in alarm.changed[:8])


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    environment.use_project_python()
    environment.run(main)
