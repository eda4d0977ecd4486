"""The page's values and assets → files under OUT; nothing is written that did not change.

Small histories become one file; larger ones get `data/`: scripts that the page loads when it needs
them, because a page opened from a disk may not fetch. The content-security policy allows the
page's own scripts by hash, `data/` by 'self', and nothing else.
"""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from benchkit import output
from benchkit.alarms import Alarm, Rules
from benchkit.errors import UserError
from benchkit.history import History, Index, Machine
from benchkit.site import data

HERE = Path(__file__).parent
SCRIPTS = ("chart.js", "verdict.js", "app.js")
ONE_FILE = 60_000  # raw launches up to which the site is one file


def build(index: Index, history: History, found: list[Alarm], rules: Rules, out: Path) -> list[str]:
    """Writes the site; the names of the files that were written."""
    _check_target(out)
    values = data.overview(history, found, rules) | {"tests": data.tests(index)}
    single = sum(len(m.nights) * len(m.series) for m in history.machines) * 10 <= ONE_FILE
    inside: dict[str, Any] = {}
    written, wanted = [], set()
    for place, machine in enumerate(history.machines):
        files = _of_machine(index, machine, place, values, inside if single else None, out)
        wanted |= files.keys()
        for name, text in files.items():
            if text is not None:
                (out / name).parent.mkdir(parents=True, exist_ok=True)
                output.write(str(out / name), text)
                written.append(name)
    _remove_old(out, wanted)
    page = render(values, inside)
    if not (out / "index.html").exists() or (out / "index.html").read_text() != page:
        output.write(str(out / "index.html"), page)
        written.append("index.html")
    return written


def render(values: dict[str, Any], inside: dict[str, Any]) -> str:
    """The page; its text is escaped by the template engine, its data by `_embed`."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined
    )
    script = "\n".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS)
    style = (HERE / "style.css").read_text(encoding="utf-8")
    return environment.get_template("page.html.j2").render(
        script=Markup(script),
        style=Markup(style),
        script_hash=_hash(script),
        style_hash=_hash(style),
        overview=Markup(_embed(values)),
        inside=Markup(_embed(inside)),
        warnings=len(values["warnings"]),
    )


def _of_machine(
    index: Index,
    machine: Machine,
    place: int,
    values: dict[str, Any],
    inside: dict | None,
    out: Path,
) -> dict[str, str | None]:
    """name → text of every data file of a machine; None where it is there already."""
    files: dict[str, str | None] = {}
    about = values["machines"][place]
    for at, one in enumerate(machine.nights):
        key = _digest(index, one.place)
        about["nights"][at]["key"] = key
        _put(files, inside, out, f"n/{key}", lambda one=one: data.night(index, one))
    stepped = {a["series"] for a in values["alarms"] if a["m"] == place}
    stamp = hashlib.sha256(json.dumps([about, DATA_VERSION]).encode()).hexdigest()[:12]
    about["stamp"] = stamp
    for at, one in enumerate(machine.series):
        key = f"s/{place}-{at}-{stamp}"
        _put(
            files,
            inside,
            out,
            key,
            lambda one=one: data.series(index, machine, one, one.name in stepped),
        )
    return files


DATA_VERSION = 1


def _put(files: dict, inside: dict | None, out: Path, key: str, make: Any) -> None:
    if inside is not None:
        inside[key] = make()
        return
    name = f"data/{key}.js"
    there = (out / name).exists()
    files[name] = None if there else f"dashboardData({json.dumps(key)},{_embed(make())});\n"


def _digest(index: Index, place: str) -> str:
    rows = index.db.execute("SELECT path, digest FROM file WHERE place=? ORDER BY path", (place,))
    return hashlib.sha256(json.dumps([place, rows.fetchall()]).encode()).hexdigest()[:16]


def _embed(values: Any) -> str:
    """JSON that may stand inside a script element."""
    text = json.dumps(values, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _check_target(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise UserError(f"{out}: not a folder")
    if out.is_dir() and any(out.iterdir()) and not (out / "index.html").exists():
        raise UserError(
            f"{out}: the folder is not empty and holds no dashboard; nothing is overwritten"
        )
    out.mkdir(parents=True, exist_ok=True)


def _remove_old(out: Path, wanted: set[str]) -> None:
    for file in (out / "data").glob("[ns]/*.js"):
        if f"data/{file.parent.name}/{file.name}" not in wanted:
            file.unlink()
