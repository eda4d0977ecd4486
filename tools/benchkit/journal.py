"""What happened in a night: `night.jsonl` in its folder, one line an event, only ever appended to.

A line cut short by a kill is left out. The state is that of the last line that has one.
"""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchkit.errors import UserError

NAME = "night.jsonl"
SAID = 10  # rows that a note names
# state → (exit code of nightly.py, what it means)
STATES = {
    "complete": (0, "every launch of every family gave rows"),
    "partial": (4, "some launches of some family were lost; the others are measured"),
    "did not build": (5, "the commit could not be built"),
    "no rows": (6, "no launch gave a row: the filters match nothing or every launch failed"),
    "all skipped": (7, "every row was skipped"),
}


@dataclass(slots=True)
class Log:
    """The events of one night and what follows from them."""

    events: list[dict[str, Any]] = field(default_factory=list)
    date: str = ""
    sha: str = ""
    state: str = ""
    message: str = ""
    notes: list[str] = field(default_factory=list)
    unclear: dict[str, list[str]] = field(default_factory=dict)  # family → rows to measure again

    @property
    def launches(self) -> set[str]:
        """Names of the files of complete launches."""
        return {event["file"] for event in self.events if event.get("event") == "launch"}


def append(folder: Path, event: str, **facts: Any) -> None:
    """Adds one line; what is written before it stays."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / NAME).open("a", encoding="utf-8") as file:
            at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            file.write(json.dumps({"event": event, "at": at, **facts}) + "\n")
    except OSError as error:
        raise UserError(f"{folder / NAME}: cannot be written: {error.strerror}") from error


def read(folder: Path) -> Log:
    log = Log()
    if not (folder / NAME).exists():
        return log
    for line in (folder / NAME).read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            log.notes.append("a line of its journal is damaged and left out")
            continue
        if isinstance(event, dict):
            log.events.append(event)
            _follow(log, event)
    return log


def _follow(log: Log, event: dict[str, Any]) -> None:
    log.date = log.date or str(event.get("at", ""))
    log.sha = str(event.get("sha", "")) or log.sha
    if event.get("state"):
        log.state, log.message = str(event["state"]), str(event.get("message", ""))
    if event.get("event") == "unclear":
        log.unclear[str(event.get("family"))] = rows = list(event.get("rows", []))
        rest = f" and {len(rows) - SAID} more" if len(rows) > SAID else ""
        log.notes.append(
            f"{event.get('family')}: {len(rows)} rows were unclear against the last nights and "
            f"measured up to {event.get('launches')} times more: {', '.join(rows[:SAID])}{rest}"
        )
    if event.get("event") == "lost":
        log.notes.append(f"{event.get('family')}: {event.get('message')}")
    if event.get("event") in ("before", "after"):
        facts = {k: v for k, v in event.items() if k not in ("event", "at")}
        log.notes.append(f"{event['event']}: {_said(facts)}")


def _said(fact: Any) -> str:
    """Tables and lists of facts in words."""
    if isinstance(fact, dict):
        return ", ".join(f"{key} {_said(value)}" for key, value in fact.items())
    return " ".join(map(_said, fact)) if isinstance(fact, list) else str(fact)
