"""compare.py's command line, as tables: what each verb takes, what all verbs take.

The stock tool's verbs, flags and habits are part of it: options may stand before or after the verb,
and options nobody here knows go to the measured program.
"""

import argparse
import os

FORMATS = ("json", "csv", "markdown", "junit", "html", "annotations")
VERB_FORMATS = {"within": ("json", "csv", "markdown"), "csv": ()}  # the others make them all
FAIL_WORDS = ("slower", "broke", "missing", "still failing", "unclear", "context")


def parse(arguments: list[str], description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="compare.py",
        description=description,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser, top=True)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, (help_text, positionals) in POSITIONALS.items():
        verb = verbs.add_parser(
            name,
            help=help_text,
            description=help_text,
            allow_abbrev=False,
            argument_default=argparse.SUPPRESS,
        )
        for positional, options in positionals.items():
            verb.add_argument(positional, **options)
        add_options(verb, top=False)
        for option, options in VERB_OPTIONS.get(name, {}).items():
            verb.add_argument(*option.split(), **options)
    if arguments and ".." in arguments[0] and not os.path.exists(arguments[0]):
        arguments = ["commits", *arguments]  # BASE..NEW says what is meant
    args, unknown = parser.parse_known_args(arguments)
    args.flags = [flag for flag in unknown if flag != "--"]
    check_arguments(args, parser)
    return args


def check_arguments(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    if args.verb in ("csv", "within") and args.flags:
        parser.error(f"unknown option {args.flags[0]}")
    check_effect(args, parser)
    check_outputs(args, parser)
    if not 0 < args.alpha < 1 or not 0.5 <= args.confidence < 1:
        parser.error("--alpha lies between 0 and 1, --confidence between 0.5 and 1")
    if args.launches < 1 or args.max_launches < 1:
        parser.error("at least one launch a side")
    args.max_launches = max(args.launches, args.max_launches) if args.until_clear else args.launches
    args.fail_on = tuple(word for word in args.fail_on.split(",") if word)
    if unknown := set(args.fail_on) - set(FAIL_WORDS):
        parser.error(f"--fail-on: '{sorted(unknown)[0]}' is not one of {', '.join(FAIL_WORDS)}")


def check_effect(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """A run alone gets no verdicts and is not measured: options of theirs are mistakes."""
    if args.verb not in ("csv", "within"):
        return
    for names, settings in (OPTIONS["verdicts"] | OPTIONS["measuring"]).items():
        name = str(settings.get("dest", names.split()[-1].lstrip("-").replace("-", "_")))
        if name != "confidence" and getattr(args, name) != parser.get_default(name):
            parser.error(f"{names} has no effect on '{args.verb}'")


def check_outputs(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """What is asked for is written, each to a place of its own, or the mistake is said."""
    wanted = [form for form in FORMATS if getattr(args, form)]
    if useless := [form for form in wanted if form not in VERB_FORMATS.get(args.verb, FORMATS)]:
        parser.error(f"'{args.verb}' makes no --{useless[0]} (see {args.verb} --help)")
    places = [
        os.path.realpath(path) if path != "-" else path for path in map(vars(args).get, wanted)
    ]
    if twice := {place for place in places if places.count(place) > 1}:
        parser.error(f"two outputs to one place: {twice.pop()}")


RUNS = {
    "nargs": "+",
    "metavar": "RUN",
    "help": "result files, quoted patterns, folders, or - for stdin",
}
SIDE = {"help": "result file, pattern, comma list, folder, - or program"}
FILTER = {"help": "regular expression of benchmark names"}
POSITIONALS = {
    "benchmarks": ("compare two results or programs", {"base": SIDE, "new": SIDE}),
    "filters": (
        "compare two groups of benchmarks of one result or program",
        {"base": SIDE, "base_filter": FILTER, "new_filter": FILTER},
    ),
    "benchmarksfiltered": (
        "compare a group of one result or program with a group of another",
        {"base": SIDE, "base_filter": FILTER, "new": SIDE, "new_filter": FILTER},
    ),
    "commits": (
        "build two git revisions, measure them in turns, compare; other options go to the program",
        {
            "base": {
                "nargs": "?",
                "default": None,
                "help": "revision or BASE..NEW (default: the merge base)",
            },
            "new": {"nargs": "?", "default": None, "help": "revision (default: HEAD)"},
        },
    ),
    "csv": ("result as a tidy CSV table, one line a row, all fields", {"runs": RUNS}),
    "within": ("speed-ups inside one run over a baseline", {"runs": RUNS}),
}
BUILD = "cmake --preset release && cmake --build --preset release --target bench"
VERB_OPTIONS = {
    "csv": {
        "-o --output": {"default": None, "metavar": "FILE", "help": "write here instead of stdout"}
    },
    "within": {
        "--by": {
            "default": "impl",
            "metavar": "FIELD",
            "help": "compare benchmarks that differ in this alone: impl (side and variant; the "
            "default), op, side, variant, end_to_end, n, threads, clock or a parameter's name",
        },
        "--baseline": {
            "default": None,
            "metavar": "REGEX",
            "help": "finds the baseline's name (default: the first of each group)",
        },
    },
    "commits": {
        "--build": {"default": BUILD, "help": "shell command that builds (default: %(default)s)"},
        "--program": {
            "default": "build/release/bench",
            "help": "what it builds (default: %(default)s)",
        },
        "--cache": {
            "default": None,
            "metavar": "DIR",
            "help": "worktrees and results (default: .cache/commits)",
        },
    },
}


def add_options(parser: argparse.ArgumentParser, top: bool) -> None:
    """The options of all verbs, accepted before the verb (as in the stock tool) and after it."""
    for group, options in OPTIONS.items():
        section = parser.add_argument_group(group)
        for names, settings in options.items():
            default = {} if top else {"default": argparse.SUPPRESS}
            section.add_argument(*names.split(), **{**settings, **default})


def flag(text: str, **more: object) -> dict:
    return {"action": "store_true", "help": text, **more}


FAIL_ON = "slower,broke,missing,still failing"
OPTIONS = {
    "verdicts": {
        "--alpha": {
            "type": float,
            "default": 0.05,
            "help": "error rate of the whole comparison (0.05)",
        },
        "--confidence": {"type": float, "default": 0.95, "help": "of the intervals (0.95)"},
        "--margin": {
            "type": float,
            "metavar": "PERCENT",
            "help": "smallest change that matters (2; GPU 3)",
        },
        "--margins": {"metavar": "FILE", "help": "TOML file with margins per benchmark"},
        "--floor": {
            "metavar": "RUNS",
            "help": "stored launches of one program against itself (benchmarks PROGRAM PROGRAM "
            "--keep RUNS): no change that is smaller than theirs is called slower or faster",
        },
        "--metric": {
            "default": "time",
            "help": "time (by each row's own clock: wall or device events), cpu_time, or the name "
            "of a counter (time)",
        },
        "--better": {
            "choices": ("higher", "lower"),
            "default": "",
            "help": "what is better of --metric, where its name does not tell",
        },
        "--fail-on": {
            "default": FAIL_ON,
            "metavar": "WORDS",
            "help": "what exit code 1 stands for, of "
            + ", ".join(FAIL_WORDS)
            + f" ({FAIL_ON}); without 'still failing' rows that are broken on both sides pass, "
            "and a warning says how many",
        },
        "--allow-different-machine": flag("compare although device, CPU or build type differ"),
        "--no-utest": {"dest": "utest", "action": "store_false", "help": "no significance test"},
    },
    "measuring": {
        "--launches": {
            "type": int,
            "default": 10,
            "metavar": "N",
            "help": "process launches a side (10)",
        },
        "--until-clear": flag("go on with the unclear benchmarks, at fixed looks that share alpha"),
        "--max-launches": {
            "type": int,
            "default": 20,
            "metavar": "N",
            "help": "with --until-clear (20)",
        },
        "--keep": {"metavar": "DIR", "help": "keep the result of each launch here"},
        "--seed": {"type": int, "default": None, "help": "of the random order of the sides"},
    },
    "reading and output": {
        "--salvage": flag("use the complete rows of truncated results"),
        "--only-changed": flag("leave out what is same or unclear (not what the floor holds back)"),
        "-d --dump_to_json --json": {
            "dest": "json",
            "metavar": "FILE",
            "help": "JSON (- for stdout)",
        },
        "--csv": {"metavar": "FILE", "help": "CSV"},
        "--markdown": {"metavar": "FILE", "help": "Markdown, below 60 kB, worst first"},
        "--junit": {"metavar": "FILE", "help": "JUnit XML"},
        "--html": {"metavar": "FILE", "help": "one self-contained page with a picture"},
        "--annotations": {"metavar": "FILE", "help": "GitHub workflow commands (- for the log)"},
        "--no-color": {
            "dest": "color",
            "action": "store_false",
            "help": "no colours (also NO_COLOR)",
        },
        "-a --display_aggregates_only": flag("accepted; rows are always one per benchmark"),
    },
}
