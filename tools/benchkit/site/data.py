"""History and alarms → plain values for the page: what JSON can hold, and nothing else."""

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

import numpy as np

from benchkit import alarms, margins, roofline, statistics, steps, verdicts
from benchkit.alarms import Alarm, Rules
from benchkit.history import History, Machine, Night, Series
from benchkit.index import Index
from benchkit.machines import REFUSE, RULES
from benchkit.names import Name
from benchkit.roofline import Roofs

RECENT = 10  # nights that make the baseline of the last one
DIGITS = 7
QUARTILES = 1.349  # sigmas between the quartiles of a normal distribution
MOST_LAUNCHES = 40  # more of them in a night get no interval


def overview(history: History, found: list[Alarm], rules: Rules) -> dict[str, Any]:
    """What the first page needs: every machine, night, series and alarm, without the points."""
    return {
        "order": history.order,
        "warnings": history.warnings[:200],
        "machines": [_machine(history, machine, rules) for machine in history.machines],
        "alarms": [_alarm(history, alarm) for alarm in found],
        "rules": [
            [k, concerns, what] for k, (level, concerns, what) in RULES.items() if level == REFUSE
        ],
    }


def series(index: Index, machine: Machine, one: Series, stepped: bool) -> dict[str, Any]:
    """All points of one series along the machine's nights, its raw launches, its slow drift."""
    drift = None if stepped else steps.drift([v if v > 0 else None for v in one.value], 0.02)
    launches = index.launches(one.ids)
    there = one.value[np.isfinite(one.value)]
    scale = 10.0 ** (math.floor(math.log10(there.min())) - 4) if len(there) else 1.0
    raw = _split(
        [launches.get(night.id, b"") for night in machine.nights], lambda v: _whole(v, scale)
    )
    return {
        "scale": scale,  # of the whole numbers that follow: a third of the text, and of the time
        "v": _whole(one.value, scale),
        "lo": _whole(one.low, scale),
        "hi": _whole(one.high, scale),
        "r": numbers(one.rate, 5),
        "raw": [values or None for values in raw],
        "st": {str(at): list(said) for at, said in sorted(one.status.items())},
        "seg": machine.segments(one)[1:-1],
        "drift": drift,
        "noise": _noise(one),
    }


def _noise(one: Series) -> list[float | None]:
    """Robust sigma from night to night and from launch to launch, as fractions."""
    there = one.value > 0  # not NaN
    nights = steps.noise(np.log(one.value[there])) if there.sum() > 2 else np.nan
    launches = (one.high[there] - one.low[there]) / one.value[there] / QUARTILES
    return numbers(np.array([nights, np.median(launches) if len(launches) else np.nan]), 2)


def night(index: Index, one: Night) -> dict[str, Any]:
    """Every benchmark of a night by its name of then: [status, message, launches]."""
    rows = index.db.execute(
        "SELECT s.name, p.status, p.message, p.launches FROM point p "
        "JOIN series s ON s.id = p.series WHERE p.night=? ORDER BY s.name",
        (one.id,),
    ).fetchall()
    values = _split([row[3] or b"" for row in rows], numbers)
    return {
        name: [status, message, launches]
        for (name, status, message, _), launches in zip(rows, values, strict=True)
    }


def numbers(values: np.ndarray, digits: int = DIGITS) -> list[float | None]:
    """Rounded to significant digits; NaN and infinities are None, as JSON has it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** (digits - np.ceil(np.log10(np.abs(values))))
        rounded = np.where(values == 0, 0.0, np.round(values * scale) / scale)
    return [v if math.isfinite(v) else None for v in rounded.tolist()]


def _whole(values: np.ndarray, scale: float) -> list[int | None]:
    """Multiples of `scale`; None where there is no value."""
    finite = np.isfinite(values)
    whole = np.rint(np.where(finite, values, 0) / scale).astype(np.int64).tolist()
    if finite.all():
        return whole
    return [v if ok else None for v, ok in zip(whole, finite.tolist(), strict=True)]


def _split(blobs: Sequence[bytes], turn: Callable[[np.ndarray], list]) -> list[list]:
    """The launches of many nights or benchmarks, turned all at once."""
    flat = turn(np.frombuffer(b"".join(blobs), dtype="<f8"))
    ends = list(accumulate(len(blob) // 8 for blob in blobs))
    return [flat[a:b] for a, b in zip([0, *ends], ends, strict=False)]


# ---- the first page ---------------------------------------------------------------------------


def _machine(history: History, machine: Machine, rules: Rules) -> dict[str, Any]:
    roofs = roofline.roofs(_peaks(machine))
    return {
        "name": machine.name,
        "nights": [_night(machine, at) for at in range(len(machine.nights))],
        "roofs": {
            side: {"flops": roof.flops, "levels": roof.levels, "local": roof.local}
            for side, roof in roofs.items()
        },
        "series": [
            _series(machine, one, rules) | _under_roof(one, machine.last(one), roofs)
            for one in machine.series
        ],
        "unmeasured": [sha[:12] for sha in history.unmeasured(machine)[-200:]],
    }


def _peaks(machine: Machine) -> Iterator[tuple[Name, float]]:
    """The best rate of every Peak row, FLOP/s or bytes/s, in the baseline's nights and the last."""
    for one in machine.series:
        if one.fields.op == "Peak" and (last := machine.last(one)) is not None:
            bounds = [b for b in machine.segments(one) if b <= last]
            rates = one.rate[bounds[-1] if bounds else 0 : last + 1]
            rates = rates[np.isfinite(rates)][-RECENT - 1 :]
            if len(rates):
                yield one.fields, float(rates.max()) * 1e9


def _under_roof(one: Series, last: int | None, roofs: dict[str, Roofs]) -> dict[str, Any]:
    """Where the last value lies on the roofline, for products by their kernel alone."""
    if last is None:
        return {}
    own = float(one.percent[last])
    seconds, roof = float(one.value[last]), roofs.get(one.fields.side, Roofs(None))
    at = roofline.point(one.name, one.fields, seconds, roof, own if math.isfinite(own) else None)
    if at is None:
        return {}
    said = {"ai": at.intensity, "flops": at.flops, "percent": at.percent}
    said = {k: v and float(f"{v:.5g}") for k, v in said.items()}
    return {"point": said | {"bound": at.bound} | ({"remark": at.remark} if at.remark else {})}


def _night(machine: Machine, at: int) -> dict[str, Any]:
    one = machine.nights[at]
    said: dict[str, Any] = {"date": one.date, "sha": one.sha[:12], "state": one.state}
    if one.message:
        said["message"] = one.message
    if one.notes:
        said["notes"] = one.notes
    if one.apart:
        said["apart"] = 1
    previous = machine.nights[at - 1] if at else None
    if previous is None or one.context != previous.context:
        # Only what changed: the page puts the contexts together again.
        old = previous.context if previous else {}
        said["context"] = {k: v for k, v in one.context.items() if k in KEPT and old.get(k) != v}
        said["without"] = [k for k in old if k in KEPT and k not in one.context]
    if previous and (changed := alarms.changes(previous, one)):
        said["changed"] = changed
    return said


KEPT = {*RULES, "benchmark_version", "suite_version", "git_dirty"} - {"host_name"}


def _series(machine: Machine, one: Series, rules: Rules) -> dict[str, Any]:
    fields, last = one.fields, machine.last(one)
    said: dict[str, Any] = {
        "name": one.name,
        "op": fields.op,
        "side": fields.side,
        "variant": fields.variant + ("/EndToEnd" if fields.end_to_end else ""),
        "n": fields.n,
        "margin": margins.margin(rules.limits, one.name, "time"),
        "state": state(machine, one),
        "tests": bool(rules.reference.search(one.name)) * 1,
    }
    if one.formerly:
        said["formerly"] = one.formerly
    if said["state"] in ("failing", "skipped"):
        said["why"] = one.status[max(one.status)][1][:200]
    if last is not None:
        (value,) = numbers(one.value[last : last + 1])
        said |= {"last": last, "value": value, "base": _baseline(machine, one, last)}
        said["week"] = _week(machine, one, last)
        if math.isfinite(one.rate[last]):
            said |= {"rate": numbers(one.rate[last : last + 1], 5)[0], "unit": one.unit}
    return said


def state(machine: Machine, one: Series) -> str:
    """ok, failing, skipped, stale (not in the last night that measured), new, or none yet."""
    nights = machine.measured
    if not nights:
        return "ok" if machine.last(one) is not None else "failing"
    known = np.isfinite(one.value[: machine.on_branch])
    known[[at for at in one.status if at < machine.on_branch]] = True
    there = np.flatnonzero(known)
    if not len(there) or there[-1] < nights[-1]:
        return "stale" if len(there) else "apart"
    if nights[-1] in one.status:
        return "skipped" if one.status[nights[-1]][0] == "skipped" else "failing"
    return "new" if len(nights) > 3 and there[0] >= nights[-3] else "ok"


def _baseline(machine: Machine, one: Series, last: int) -> float | None:
    """Median of the nights before the last one, in the same segment."""
    bounds = [b for b in machine.segments(one) if b <= last]
    before = one.value[bounds[-1] if bounds else 0 : last]
    before = before[np.isfinite(before)][-RECENT:]
    return numbers(np.array([np.median(before)]))[0] if len(before) else None


def _week(machine: Machine, one: Series, last: int) -> float | None:
    """The value of the night a week before the last one, or the next older one."""
    try:
        day = datetime.fromisoformat(machine.nights[last].date)
    except ValueError:
        return None
    limit = (day - timedelta(days=7) + timedelta(hours=12)).strftime("%Y-%m-%dT%H:%M:%SZ")
    for at in range(last - 1, -1, -1):
        if machine.nights[at].date <= limit and math.isfinite(one.value[at]):
            return numbers(one.value[at : at + 1])[0]
    return None


def _alarm(history: History, one: Alarm) -> dict[str, Any]:
    place = next(i for i, m in enumerate(history.machines) if m.name == one.machine)
    return {
        "m": place,
        "series": one.series,
        "night": one.night,
        "state": one.state,
        "cause": one.cause,
        "why": one.why,
        "before": one.before,
        "after": one.after,
        "resolved": one.resolved,
        "changed": one.changed,
        "regression": one.regression,
    }


def tests(index: Index) -> dict[str, Any]:
    """What the page's verdicts share with compare.py: levels, and the cut of every interval for
    the numbers of launches that there are."""
    settings = verdicts.Settings()
    rows = index.db.execute(
        "SELECT DISTINCT length(launches) / 8 FROM point WHERE launches NOTNULL"
    )
    sizes = sorted(size for (size,) in rows if 2 <= size <= MOST_LAUNCHES)
    cuts = {
        f"{a},{b}": statistics.interval_cut(a, b, settings.confidence) for a in sizes for b in sizes
    }
    return {"alpha": settings.level, "cuts": cuts, "tied": statistics.MIN_TIED_ASYMPTOTIC}
