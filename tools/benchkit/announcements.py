"""Alarms → what tells people: an Atom feed, a message for Slack's webhooks, JUnit XML, a badge.

Each is one text, whole and standard in its format; names of benchmarks are escaped by its writer.
"""

import json
import re
import xml.etree.ElementTree as ET
from urllib.parse import urlencode

from benchkit.alarms import Alarm
from benchkit.history import History, Night

ATOM = "http://www.w3.org/2005/Atom"
MOST = 20  # changes in a message


def atom(history: History, found: list[Alarm], url: str) -> str:
    """A feed with an entry for every step that was confirmed; ids stay the same from day to day."""
    nights = {machine.name: machine.nights for machine in history.machines}
    dates = [night.date for mine in nights.values() for night in mine if night.date]
    feed = ET.Element("feed", xmlns=ATOM)
    _text(feed, "title", "Benchmark changes")
    _text(feed, "id", url or "urn:benchmark-history")
    _text(feed, "updated", max(dates, default="1970-01-01T00:00:00Z"))
    ET.SubElement(ET.SubElement(feed, "author"), "name").text = "nightly run"
    for alarm in sorted(found, key=lambda a: nights[a.machine][a.night].date, reverse=True)[:200]:
        night = nights[alarm.machine][alarm.night]
        entry = ET.SubElement(feed, "entry")
        _text(entry, "title", title(alarm))
        place = urlencode({"m": alarm.machine, "s": alarm.series, "at": night.date})
        _text(entry, "id", f"urn:benchmark-history:{place}")
        _text(entry, "updated", night.date or "1970-01-01T00:00:00Z")
        _text(entry, "summary", details(alarm, night))
        if url:
            ET.SubElement(entry, "link", href=link(alarm, url))
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(feed, encoding="unicode") + "\n"


def _text(parent: ET.Element, tag: str, text: str) -> None:
    """Control characters, which XML cannot hold, become a sign that can be seen."""
    ET.SubElement(parent, tag).text = _xml(text)


def _xml(text: str) -> str:
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\U0010ffff]", "\ufffd", text)


def title(alarm: Alarm) -> str:
    what = "slower" if alarm.slower else "faster"
    change = f"{(alarm.ratio - 1) * 100:+.1f} % time"
    return f"{alarm.state}: {alarm.series} {what} on {alarm.machine} ({change})"


def details(alarm: Alarm, night: Night) -> str:
    said = [f"since {night.sha[:12]}; the {alarm.cause} moved", alarm.why, *alarm.changed]
    return "; ".join(filter(None, said))


def link(alarm: Alarm, url: str) -> str:
    """The page of the alarm's series."""
    view = {"view": "series", "m": alarm.machine, "s": alarm.series}
    return f"{url}#{urlencode(view)}"


def slack(found: list[Alarm], url: str) -> str:
    """The body of a POST to an incoming webhook: confirmed regressions, or that there are none."""
    regressions = [alarm for alarm in found if alarm.regression]
    lines = [f"*{_count(len(regressions))}*"]
    for alarm in regressions[:MOST]:
        text = title(alarm).translate({ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"})
        lines.append(f"• <{link(alarm, url)}|{text}>" if url else f"• {text}")
    if len(regressions) > MOST:
        lines.append(f"and {len(regressions) - MOST} more")
    return json.dumps({"text": "\n".join(lines)}, indent=1) + "\n"


def junit(history: History, found: list[Alarm]) -> str:
    """A test case a series, as CI shows them; a confirmed regression of the code is a failure."""
    failed = {(a.machine, a.series): a for a in found if a.regression}
    root = ET.Element("testsuites")
    for machine in history.machines:
        failures = sum(name == machine.name for name, _ in failed)
        counts = {"tests": str(len(machine.series)), "failures": str(failures)}
        suite = ET.SubElement(root, "testsuite", {"name": _xml(machine.name), **counts})
        for series in machine.series:
            group = ".".join(filter(None, (series.fields.op, series.fields.side)))
            names = {"name": _xml(series.name), "classname": _xml(group)}
            case = ET.SubElement(suite, "testcase", names)
            if alarm := failed.get((machine.name, series.name)):
                said = _xml(f"{title(alarm)}: {details(alarm, machine.nights[alarm.night])}")
                ET.SubElement(case, "failure", message=said)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _count(regressions: int) -> str:
    return f"{regressions} regression{'s' * (regressions != 1)}" if regressions else "no regression"


def badge(found: list[Alarm]) -> str:
    """The count of confirmed regressions; words as well as colour."""
    count = sum(alarm.regression for alarm in found)
    says = _count(count)
    left, right = 82, 12 + 7 * len(says)
    svg = ET.Element(
        "svg", xmlns="http://www.w3.org/2000/svg", width=str(left + right), height="20"
    )
    svg.attrib |= {"role": "img", "aria-label": f"benchmarks: {says}"}
    ET.SubElement(svg, "title").text = f"benchmarks: {says}"
    for x, width, colour in ((0, left, "#444"), (left, right, "#a40e26" if count else "#0b6332")):
        ET.SubElement(svg, "rect", x=str(x), width=str(width), height="20", fill=colour)
    for x, text in ((left / 2, "benchmarks"), (left + right / 2, says)):
        style = {
            "fill": "#fff",
            "text-anchor": "middle",
            "font-family": "sans-serif",
            "font-size": "11",
        }
        ET.SubElement(svg, "text", {"x": str(x), "y": "14", **style}).text = text
    return ET.tostring(svg, encoding="unicode") + "\n"
