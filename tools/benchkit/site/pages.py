"""The page's values and assets → files under OUT; nothing is written that did not change.

Small histories become one file; larger ones get `data/`: scripts that the page loads when it needs
them, because a page opened from a disk may not fetch. The content-security policy allows the
page's own scripts by hash, `data/` by 'self', and nothing else.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from benchkit import output
from benchkit.alarms import Alarm, Rules
from benchkit.errors import UserError
from benchkit.history import History
from benchkit.index import Index
from benchkit.site import data

HERE = Path(__file__).parent
SCRIPTS = ("chart.js", "series.js", "roofline.js", "verdict.js", "app.js")
DATA_VERSION = 3  # of what the files of data/ hold
ONE_FILE = 60_000  # raw launches up to which the site is one file


def build(index: Index, history: History, found: list[Alarm], rules: Rules, out: Path) -> list[str]:
    """Writes the site; the names of the files that were written."""
    _check_target(out)
    values = data.overview(history, found, rules) | {"tests": data.tests(index)}
    files = _stamped(index, history, values)
    inside, written = {}, []
    if sum(len(m.nights) * len(m.series) for m in history.machines) * 10 <= ONE_FILE:
        inside, files = {key: make() for key, make in files.items()}, {}
    for key, make in files.items():
        file = out / "data" / f"{key}.js"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            output.write(str(file), f"dashboardData({json.dumps(key)},{_embed(make())});\n")
            written.append(f"data/{key}.js")
    _remove_old(out, files.keys())
    page, index_file = render(values, inside), out / "index.html"
    if not index_file.exists() or index_file.read_text(encoding="utf-8") != page:
        output.write(str(index_file), page)
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


def _stamped(
    index: Index, history: History, values: dict[str, Any]
) -> dict[str, Callable[[], dict[str, Any]]]:
    """name → what makes its content, of all nights and series; a name stands for one content."""
    files: dict[str, Callable[[], dict[str, Any]]] = {}
    for place, machine in enumerate(history.machines):
        about = values["machines"][place]
        for at, night in enumerate(machine.nights):
            key = about["nights"][at]["key"] = _digest(index, night.place)
            files[f"n/{key}"] = partial(data.night, index, night)
        stepped = {a["series"] for a in values["alarms"] if a["m"] == place}
        stamp = hashlib.sha256(
            json.dumps([about, sorted(stepped), DATA_VERSION]).encode()
        ).hexdigest()[:12]
        about["stamp"] = stamp
        for at, one in enumerate(machine.series):
            make = partial(data.series, index, machine, one, one.name in stepped)
            files[f"s/{place}-{at}-{stamp}"] = make
    return files


def _digest(index: Index, place: str) -> str:
    """What a night's file and links are called by: its content, packed or not."""
    rows = index.db.execute("SELECT path, digest FROM file WHERE place=? ORDER BY path", (place,))
    content = [(path.removesuffix(".gz"), digest) for path, digest in rows]
    return hashlib.sha256(json.dumps([place, content]).encode()).hexdigest()[:16]


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


def _remove_old(out: Path, wanted: Iterable[str]) -> None:
    keep = {f"{key}.js" for key in wanted}
    for file in (out / "data").glob("[ns]/*.js"):
        if f"{file.parent.name}/{file.name}" not in keep:
            file.unlink()
