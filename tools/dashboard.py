#!/usr/bin/env python3
"""Turns a folder of results into a static site about the numbers over time.

  dashboard.py results -o build/site
  dashboard.py results -o build/site --exports build/site/exports

RESULTS holds `<machine>/<date>_<sha8>/` folders of nightly.py, or single result files. The site
opens from disk and from any static host, and asks nobody for anything. Nights stand in the order
of commits: from git, or from a file commits.txt (oldest first) in RESULTS or beside it, or
--commits-file. Also read from RESULTS: aliases.json {"old name": "new name"} and
acknowledged.toml ([[acknowledged]] benchmarks, commit, reason, machine).

--exports DIR also writes CSV, JSON, OpenMetrics, a Grafana dashboard, Bencher's and
github-action-benchmark's formats, an Atom feed and a badge.

Exit code: 0 built · 1 built, and there are rows that failed in the last night · 2 unusable input.
"""

import argparse
import gc
import re
import sys
from pathlib import Path

from benchkit import environment
from benchkit.errors import OK, REGRESSION, UserError


def main(arguments: list[str]) -> int:
    args = parse(arguments)
    gc.disable()  # a year of nights is a million small objects without circles, and then we end
    from benchkit import alarms, branch, history
    from benchkit.index import Index, index_of
    from benchkit.site import data, pages

    results, out = Path(args.results), Path(args.output)
    if out.resolve() == results.resolve():
        raise UserError(f"-o {out}: these are the results; the site needs a folder of its own")
    index = Index(Path(args.index) if args.index else index_of(results))
    index.ingest(results)
    aliases = next((f for f in beside(results, "aliases.json", args.aliases) if f.is_file()), None)
    order = branch.order_of(results, args.commits_file, args.branch)
    past = history.load(index, order, history.read_aliases(aliases) if aliases else {})
    known = alarms.read_acknowledgements(results / "acknowledged.toml")
    try:
        rules = alarms.Rules(reference=re.compile(args.reference), known=known)
    except re.error as error:
        raise UserError(f"--reference is not a regular expression: {error}") from error
    found = alarms.find(past, rules, branch.Between(results), index)
    written = pages.build(index, past, found, rules, out)
    for warning in past.warnings:
        say(f"warning: {warning}")
    if args.exports:
        from benchkit import exports

        written += exports.write_all(past, found, Path(args.exports), args.url)
    nights = sum(len(machine.nights) for machine in past.machines)
    say(f"{nights} nights of {len(past.machines)} machines; {len(written)} files written to {out}")
    states = [data.state(machine, one) for machine in past.machines for one in machine.series]
    return REGRESSION if "failing" in states else OK


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", metavar="RESULTS", help="folder of results")
    parser.add_argument("-o", "--output", metavar="DIR", required=True, help="where the site goes")
    parser.add_argument("--exports", metavar="DIR", help="also write the exports there")
    parser.add_argument("--url", default="", help="where the site will be, for feed and Grafana")
    parser.add_argument("--commits-file", metavar="FILE", help="commits, oldest first, one a line")
    parser.add_argument("--branch", default="HEAD", help="whose order of commits counts")
    parser.add_argument("--aliases", metavar="FILE", help="JSON of old name → new name")
    parser.add_argument("--reference", default="^Peak/", help="rows that stand for the machine")
    parser.add_argument("--index", metavar="FILE", help="default: .cache/history.sqlite")
    return parser.parse_args(arguments)


def beside(results: Path, name: str, given: str | None) -> list[Path]:
    if given and not Path(given).is_file():
        raise UserError(f"{given}: no such file")
    return [Path(given)] if given else [results / name, results.parent / name]


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    environment.use_project_python()
    environment.run(main)
