"""A Report → terminal table, Markdown, JUnit or annotations, by pure functions.

Words carry the meaning everywhere; colour only repeats them. Text from result files is escaped for
the format it goes into. As data, JSON and CSV: records.py.
"""

import io
from collections.abc import Sequence
from xml.etree import ElementTree

from benchkit import machines
from benchkit.samples import CPU_TIME, TIME, Sample
from benchkit.statistics import Ratio, spread
from benchkit.verdicts import MEASURED, WORDS, Report, Verdict

MARKDOWN_BYTES = 60_000
COLOURS = {
    "broke": "bold red",
    "missing": "bold red",
    "slower": "red",
    "still failing": "red",
    "not comparable": "magenta",
    "unclear": "yellow",
    "new": "cyan",
    "fixed": "green",
    "faster": "green",
    "same": "dim",
}
WORDY = ("benchmark", "baseline", "why", "remark")  # columns of words: they wrap
COLUMNS = ("verdict", "benchmark", "base ± CV", "new ± CV", "change", "interval", "p", "p adj.")
FLOOR, WHY = "A/A", "why"
# What report.noise holds: its name for people, its field, how it is written.
NOISE = (
    ("median CV from launch to launch", "between", "{:.1%}".format),
    ("median CV within a launch", "within", "{:.1%}".format),
    ("drift from the first half of the launches to the second", "drift", "{:+.1%}".format),
    ("load average per CPU when launches began", "load", lambda ends: span(ends, "{:.2f}")),
    ("CPU clock in MHz", "mhz", lambda ends: span(ends, "{:.0f}")),
)


# ---- numbers as people read them --------------------------------------------------------------


def quantity(value: float | None, metric: str = TIME) -> str:
    """Four digits with an SI prefix; times end in s."""
    if value is None:
        return "–"
    prefixes = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
    scale, prefix = next((p for p in prefixes if abs(value) >= p[0] * 0.9999), prefixes[-1])
    is_time = metric in (TIME, CPU_TIME)
    if is_time and scale > 1:
        scale, prefix = 1, ""
    return f"{value / scale:.4g} {prefix}{'s' if is_time else ''}".rstrip()


def percent(ratio: float | None) -> str:
    return "–" if ratio is None else f"{signed(ratio)} %"


def signed(ratio: float) -> str:
    """Percent with a sign; nothing is minus zero."""
    return f"{round((ratio - 1) * 100, 2) + 0.0:+.2f}"


def interval(ratio: Ratio | None) -> str:
    if ratio is None or ratio.low is None or ratio.high is None:
        return "–"
    return f"{signed(ratio.low)} … {signed(ratio.high)} %"


def probability(p: float | None) -> str:
    return "–" if p is None else f"{p:.2g}"


def printable(text: str) -> str:
    """Control characters made visible: no name can redraw a screen or break an XML document."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def span(ends: tuple[float, float], form: str) -> str:
    low, high = map(form.format, ends)
    return low if low == high else f"{low} … {high}"


def columns(report: Report) -> tuple[str, ...]:
    """The heads of `cells`."""
    return (*COLUMNS, *([FLOOR] if report.floor else []), WHY)


def cells(verdict: Verdict, report: Report) -> tuple[str, ...]:
    """One table line, in the order of `columns`."""
    ratio = verdict.ratio
    floor = "–" if verdict.floor is None else f"±{verdict.floor * 100:.2f} %"
    return (
        verdict.word,
        printable(verdict.key),
        measured(verdict.base, verdict.metric),
        measured(verdict.new, verdict.metric),
        percent(ratio.of_medians if ratio else None),
        interval(ratio),
        probability(ratio.p if ratio else None),
        probability(verdict.p_adjusted),
        *([floor] if report.floor else []),
        why(verdict),
    )


def measured(sample: Sample, metric: str) -> str:
    """The median and the coefficient of variation of the values behind it."""
    cv = spread(sample.values)
    return quantity(sample.median, metric) + ("" if cv is None else f" ±{cv:.1%}")


def why(verdict: Verdict) -> str:
    text = "; ".join([verdict.reason, *verdict.notes, *counter_words(verdict)])
    return printable(text + (f" → {verdict.next_step}" if verdict.next_step else ""))


def counter_words(verdict: Verdict) -> list[str]:
    return [f"{o.metric} ×{o.ratio.of_medians:.3f} ({o.word})" for o in verdict.others if o.ratio]


def summary(report: Report) -> str:
    counts = ", ".join(f"{n} {word}" for word in WORDS if (n := report.count(word)))
    rows = "1 benchmark" if len(report.verdicts) == 1 else f"{len(report.verdicts)} benchmarks"
    line = f"{rows}: {counts or 'none'}."
    if report.geomean is not None and report.geomean_rows > 1:
        kind = "time" if report.settings.metric == TIME else report.settings.metric
        within = "" if report.geomean.low is None else f" ({interval(report.geomean)})"
        change = percent(report.geomean.of_medians)
        line += (
            f" Geometric mean of {kind} over {report.geomean_rows} common rows: {change}{within}."
        )
    return line


def heading(report: Report) -> str:
    return f"{printable(report.base_label)} → {printable(report.new_label)}"


def remarks(report: Report, most: int | None = None) -> list[str]:
    """Everything a reader should know before believing the table; `most`: warnings of that many."""
    allowed = report.settings.allow_different_machine
    guard = [
        ("warning: " if d.level == machines.WARN or allowed else "not comparable: ") + d.sentence
        for d in report.differences
    ]
    same = [] if report.differences else ["context: identical on both sides"]
    lines = [*guard, *same, *(f"warning: {w}" for w in report.warnings)]
    if most is not None and len(lines) > most:
        left_out = len(lines) - most
        lines = [*lines[:most], f"warning: {left_out} more warnings are in the JSON"]
    return [printable(line) for line in [*lines, *noise(report)]]


def noise(report: Report) -> list[str]:
    """How much the launches of each side vary: what any verdict has to be seen against."""
    lines = []
    for what, field, write in NOISE:
        sides = zip(("BASE", "NEW"), report.noise, strict=True)
        known = [(name, value) for name, side in sides if (value := getattr(side, field))]
        if known:
            parts = ", ".join(f"{name} {write(value)}" for name, value in known)
            lines.append(f"noise: {what}: {parts}")
    if report.floor:
        lines.append(f"noise: A/A floor: {report.floor} launches a side of one program")
    return lines


# ---- formats ----------------------------------------------------------------------------------


def terminal(report: Report, shown: Sequence[Verdict], width: int | None, colour: bool) -> str:
    """Heading, table, remarks, summary; `width` None: not a terminal, nothing is wrapped."""
    heads = columns(report)
    lines = [(cells(verdict, report), COLOURS[verdict.word]) for verdict in shown]
    if width:
        heads, lines = on_screen(heads), [(on_screen(row), style) for row, style in lines]
    text = table(heads, lines, width, colour) if lines else ""
    return (
        "\n".join([heading(report), text + "\n".join([*remarks(report), summary(report)])]) + "\n"
    )


def on_screen(row: Sequence[str]) -> tuple[str, ...]:
    """Cells of one line stacked in pairs: a screen has room below a number, not beside it."""
    word, name, base, new, change, between, p, adjusted, *floor, why = row
    base, new = (cell.replace(" ±", "\n±") for cell in (base, new))
    return (word, f"{name}\n{why}", base, new, f"{change}\n{between}", f"{p}\n{adjusted}", *floor)


def table(
    columns: Sequence[str],
    lines: Sequence[tuple[Sequence[str], str]],
    width: int | None,
    colour: bool,
) -> str:
    """Lines of cells, each with the colour of its first cell, as a table for people."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    out = io.StringIO()
    console = Console(
        file=out,
        width=width or 1000,
        force_terminal=colour,
        no_color=not colour,
        highlight=False,
        legacy_windows=False,
        color_system="standard" if colour else None,
    )
    grid = Table(box=box.SIMPLE_HEAD if width else None, pad_edge=False)
    for name in columns:
        fold = name.split("\n")[0] in WORDY
        grid.add_column(
            name,
            justify="left" if fold or name == columns[0] else "right",
            no_wrap=not fold,
            overflow="fold",
        )
    for (first, *rest), style in lines:
        grid.add_row(Text(first, style), *map(Text, rest))
    console.print(grid)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def markdown(report: Report, shown: Sequence[Verdict]) -> str:
    """A table for a comment: worst first, the tail folded, whole lines under 60 kB."""
    head = [f"### {escape_markdown(heading(report))}", "", escape_markdown(summary(report)), ""]
    head += [f"> {escape_markdown(line[:500])}  " for line in remarks(report, 20)] + [""]
    heads = columns(report)
    frame = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    lines = [
        "| " + " | ".join(escape_markdown(cell[:600]) for cell in cells(v, report)) + " |"
        for v in shown
    ]
    budget = MARKDOWN_BYTES - len("\n".join(head).encode()) - 1000
    fitting = []
    for line in lines:
        budget -= len(line.encode()) + 1
        if budget < 0:
            break
        fitting.append(line)
    first, folded = fitting[:30], fitting[30:]
    text = [*head, *frame, *first] if first else [*head, "Nothing to show."]
    if folded:
        title = f"<details><summary>{len(folded)} more</summary>"
        text += ["", title, "", *frame, *folded, "", "</details>"]
    if len(fitting) < len(lines):
        text += [
            "",
            f"{len(lines) - len(fitting)} rows left out; the JSON or CSV output has them all.",
        ]
    return "\n".join(text) + "\n"


def junit(report: Report, shown: Sequence[Verdict], fail_on: Sequence[str]) -> str:
    """One test case per benchmark; a word of `fail_on` is a failure, no measurement a skip."""
    suite = ElementTree.Element("testsuite", name=heading(report), tests=str(len(shown)))
    counts = {"failures": 0, "skipped": 0}
    for verdict in shown:
        fields = verdict.base.fields
        group = ".".join(part for part in (fields.op, fields.side) if part)
        case = ElementTree.SubElement(
            suite, "testcase", name=printable(verdict.key), classname=printable(group)
        )
        reason = printable(f"{verdict.word}: {'; '.join(cells(verdict, report)[2:])}")
        if verdict.word in fail_on or (verdict.word == "not comparable" and not report.comparable):
            ElementTree.SubElement(case, "failure", message=reason)
            counts["failures"] += 1
        elif verdict.word not in MEASURED:
            ElementTree.SubElement(case, "skipped", message=reason)
            counts["skipped"] += 1
        else:
            ElementTree.SubElement(case, "system-out").text = reason
    suite.attrib.update({key: str(value) for key, value in counts.items()})
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def annotations(report: Report, shown: Sequence[Verdict], fail_on: Sequence[str]) -> str:
    """GitHub's workflow commands: an error for each word of `fail_on`, the rest in one notice."""

    def command(kind: str, title: str, message: str) -> str:
        title = title.replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
        message = message.replace("%", "%25")  # line ends are visible characters already
        return f"::{kind} title={title}::{message}"

    lines = [
        command("error", f"{v.word}: {printable(v.key)}", why(v))
        for v in shown
        if v.word in fail_on
    ]
    lines += [
        command("notice" if line.startswith(("noise", "context")) else "warning", "remark", line)
        for line in remarks(report)
    ]
    return "\n".join([*lines, command("notice", heading(report), summary(report))]) + "\n"


def escape_markdown(text: str) -> str:
    for character in "\\|<>`*_[]":
        text = text.replace(character, {"<": "&lt;", ">": "&gt;"}.get(character, "\\" + character))
    return text
