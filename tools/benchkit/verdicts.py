"""Two sides of launches → one word per benchmark, with its reason and what would settle it.

`judge` is the whole comparison; what the numbers of one benchmark mean is in deciding.py. Pure
functions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from benchkit import deciding, floors, machines, margins, noise, samples
from benchkit.deciding import Design
from benchkit.floors import Floor
from benchkit.reading import Launch
from benchkit.report import FAIL_ON, MEASURED, WORDS, Report, Settings, Verdict
from benchkit.samples import Sample
from benchkit.statistics import Ratio

__all__ = ["FAIL_ON", "MEASURED", "WORDS", "Report", "Settings", "Verdict", "judge"]
SAME_NUMBERS = 0.003  # medians this close make a rename likely
LONGEST = 500  # characters of a program's message in a reason; the CSV of the run has all of it


def judge(
    base: Sequence[Launch],
    new: Sequence[Launch],
    settings: Settings,
    labels: tuple[str, str],
    floor: Floor | None = None,
) -> Report:
    """The whole comparison. Launches with an `index` on both sides are taken as interleaved."""
    case = Case(_in_order(base), _in_order(new), settings, machines.guard(base, new), floor)
    verdicts, design = _judge_metric(case)
    for metric in _directed(base, new):
        if metric != settings.metric:
            other = replace(case, settings=replace(settings, metric=metric))
            _attach(verdicts, _judge_metric(other)[0])
    _note_renames(verdicts)
    verdicts.sort(key=_severity)
    report = Report(
        *labels,
        verdicts,
        [*case.differences, *case.floor_differences],
        list(dict.fromkeys(w for launch in (*base, *new) for w in launch.warnings)),
        settings,
        design.family,
        floor=floor.a_side(case.interleaved) if floor else None,
    )
    report.warnings += _doubts(base, new, report)
    if design.drifting:
        report.warnings.append(
            "the machine drifted during the run; the sides are compared within short blocks of it"
        )
    report.warnings += floors.warnings(report.floor, verdicts) if report.floor else []
    report.geomean, report.geomean_rows = _geomean(verdicts, settings, case.interleaved)
    report.noise = (
        noise.of(case.base, [verdict.base for verdict in verdicts]),
        noise.of(case.new, [verdict.new for verdict in verdicts]),
    )
    return report


@dataclass(frozen=True)
class Case:
    """What is judged: both sides in the order they ran, and what holds for all their rows."""

    base: Sequence[Launch]
    new: Sequence[Launch]
    settings: Settings
    differences: Sequence[machines.Difference]
    floor: Floor | None

    @cached_property
    def interleaved(self) -> bool:
        return _interleaved(self.base, self.new)

    @cached_property
    def floor_differences(self) -> list[machines.Difference]:
        both = [*self.base, *self.new]
        return machines.floor_guard(self.floor.launches, both) if self.floor else []

    def floor_of(self, verdict: Verdict) -> float | None:
        """The A/A floor of a benchmark, where one of this machine knows it."""
        fits = not machines.refused(self.floor_differences, verdict.base.fields.side)
        usable = fits or self.settings.allow_different_machine
        return self.reaches.get(verdict.key) if usable else None

    @cached_property
    def reaches(self) -> dict[str, float]:
        if not self.floor:
            return {}
        return floors.reaches(self.floor, self.settings.metric, self.settings, self.interleaved)


# ---- one metric -------------------------------------------------------------------------------


def _judge_metric(case: Case) -> tuple[list[Verdict], Design]:
    """All verdicts of one metric, and the design that their tests share."""
    settings, sides = case.settings, (case.base, case.new)
    old, now = (samples.collect(side, settings.metric) for side in sides)
    verdicts = [_by_status(key, old.get(key), now.get(key), settings) for key in {**old, **now}]
    for verdict in verdicts:
        _guard(verdict, sides, settings, case.differences)
    measured = [verdict for verdict in verdicts if verdict.word == "unclear"]
    design = Design.of(measured, case.interleaved, settings.level)
    for verdict in measured:
        verdict.ratio = deciding.ratio(verdict.base, verdict.new, settings, design)
    deciding.adjust(measured)
    for verdict in measured:
        deciding.decide(verdict, settings, design)
        verdict.notes += deciding.notes(verdict)
        floors.hold_back(verdict, case.floor_of(verdict))
    return verdicts, design


def _by_status(key: str, base: Sample | None, new: Sample | None, settings: Settings) -> Verdict:
    """The word that follows from what was measured at all; "unclear" where a ratio is possible."""
    known = base or new
    assert known is not None
    base, new = base or Sample(key, known.fields), new or Sample(key, known.fields)
    word, reason = _outcome(base, new, settings.metric)
    margin = margins.margin(settings.rules, key, settings.metric)
    return Verdict(key, word, reason, base, new, settings.metric, margin=margin)


def _outcome(base: Sample, new: Sample, metric: str) -> tuple[str, str]:
    failed = ("error", "invalid")
    if new.status in failed:
        word = "still failing" if base.status in failed else "broke"
        return word, f"fails in NEW: {_short(new.message)}"
    if base.status in failed:
        if new.status == "ok":
            return "fixed", f"failed in BASE: {_short(base.message)}"
        return "not comparable", f"failed in BASE, {_why_absent(new)} in NEW"
    if "ok" not in (base.status, new.status):
        return "not comparable", f"{_why_absent(base)} in BASE, {_why_absent(new)} in NEW"
    if new.status != "ok":
        return "missing", f"measured in BASE, {_why_absent(new)} in NEW"
    if base.status != "ok":
        return "new", f"{_why_absent(base)} in BASE"
    if not base.values or not new.values:
        side = "BASE" if not base.values else "NEW"
        return "not comparable", f"no usable value of '{metric}' in {side}"
    return "unclear", ""


def _why_absent(sample: Sample) -> str:
    return f"skipped ({_short(sample.message)})" if sample.status == "skipped" else sample.status


def _short(message: str) -> str:
    return message if len(message) <= LONGEST else message[:LONGEST] + "…"


def _guard(
    verdict: Verdict,
    sides: tuple[Sequence[Launch], Sequence[Launch]],
    settings: Settings,
    differences: Sequence[machines.Difference],
) -> None:
    if verdict.word != "unclear":
        return
    why = machines.refused(differences, verdict.base.fields.side)
    if why and not settings.allow_different_machine:
        verdict.word, verdict.reason = "not comparable", why
        verdict.next_step = (
            "measure both sides on one machine, or allow it: --allow-different-machine"
        )
    elif doubts := [
        f"{name} cannot be true: {sample.doubt}"
        for name, sample in (("BASE", verdict.base), ("NEW", verdict.new))
        if sample.doubt
    ]:
        verdict.word, verdict.reason = "not comparable", "; ".join(doubts)
        verdict.next_step = "check the clock (bench --selftest) and measure the Peak rows again"
    elif max(verdict.base.threads, verdict.new.threads) > 1:
        versions = [machines.library_version(side) for side in sides]
        if len({version is not None and version >= (1, 9) for version in versions}) > 1:
            verdict.word = "not comparable"
            verdict.reason = (
                "real_time of threaded rows means another thing from Google Benchmark 1.9 on"
            )


# ---- everything together ----------------------------------------------------------------------


def _directed(base: Sequence[Launch], new: Sequence[Launch]) -> list[str]:
    common = set(samples.counters(base)) & set(samples.counters(new))
    return sorted(metric for metric in common if deciding.higher_is_better(metric) is not None)


def _attach(verdicts: Sequence[Verdict], others: Sequence[Verdict]) -> None:
    by_key = {verdict.key: verdict for verdict in verdicts}
    for other in others:
        if other.word in MEASURED:
            by_key[other.key].others.append(other)


def _note_renames(verdicts: Sequence[Verdict]) -> None:
    """A benchmark that vanished and a new one of the same problem with the same numbers."""
    come = [v for v in verdicts if v.word == "new" and v.base.status == "absent"]
    for old in verdicts:
        if old.word != "missing" or old.new.status != "absent" or not old.base.median:
            continue
        for now in come:
            same_problem = old.base.fields.group() == now.new.fields.group()
            if same_problem and abs((now.new.median or 0) / old.base.median - 1) < SAME_NUMBERS:
                old.notes.append(f"renamed to {now.key}? It has the same numbers")


def _in_order(launches: Sequence[Launch]) -> list[Launch]:
    if all(launch.index is not None for launch in launches):
        return sorted(launches, key=lambda launch: launch.index or 0)
    return list(launches)


def _interleaved(base: Sequence[Launch], new: Sequence[Launch]) -> bool:
    """Whether launch i of both sides ran next to each other, the sides taking turns."""
    if len(base) != len(new) or len(base) < 2 or len({la.session for la in (*base, *new)}) > 1:
        return False
    order = [(launch.index, side) for side in (0, 1) for launch in (base, new)[side]]
    if any(index is None for index, _ in order) or len({index for index, _ in order}) < len(order):
        return False
    sides = [side for _, side in sorted(order)]
    return all(
        {first, second} == {0, 1} for first, second in zip(sides[::2], sides[1::2], strict=True)
    )


def _doubts(base: Sequence[Launch], new: Sequence[Launch], report: Report) -> list[str]:
    doubts = []
    if {launch.identity for launch in base} & {launch.identity for launch in new}:
        doubts.append("the same launch is on both sides")
    commits = {str(launch.context.get("git_sha", "")) for launch in (*base, *new)}
    clean = not any(launch.context.get("git_dirty") == "true" for launch in (*base, *new))
    if len(commits) == 1 and commits != {""} and clean and not any(la.selection for la in base):
        doubts.append("both sides are of the same commit: every difference is noise or the machine")
    if report.family and any(
        samples.BY_REPETITION in (v.base.unit, v.new.unit) for v in report.verdicts
    ):
        doubts.append(
            "one launch a side: repetitions inside one process are not independent, the noise from "
            "launch to launch is not seen; several launches a side give verdicts to rely on"
        )
    return doubts


def _geomean(
    verdicts: Sequence[Verdict], settings: Settings, interleaved: bool
) -> tuple[Ratio | None, int]:
    """Geometric mean of the ratio over the rows measured on both sides, and nothing else."""
    rows = [v for v in verdicts if v.word in MEASURED and v.metric == settings.metric]
    if not rows:
        return None, 0
    mean = math.exp(math.fsum(math.log(v.ratio.of_medians) for v in rows if v.ratio) / len(rows))
    shape = {(tuple(v.base.places), tuple(v.new.places), v.base.unit, v.new.unit) for v in rows}
    if (
        len(shape) > 1
        or rows[0].base.unit != samples.BY_LAUNCH
        or rows[0].new.unit != samples.BY_LAUNCH
    ):
        return Ratio(mean, mean, None, None, None, "no interval: the rows differ in launches"), len(
            rows
        )
    base, new = (
        _launch_means([side(v) for v in rows]) for side in (lambda v: v.base, lambda v: v.new)
    )
    design = Design(settings.level, interleaved=interleaved)
    return replace(deciding.ratio(base, new, settings, design), of_medians=mean), len(rows)


def _launch_means(rows: Sequence[Sample]) -> Sample:
    logs = [[math.log(v) for v in sample.values] for sample in rows]
    means = [math.exp(math.fsum(launch) / len(rows)) for launch in zip(*logs, strict=True)]
    return Sample(
        "geomean",
        rows[0].fields,
        status="ok",
        values=means,
        places=rows[0].places,
        launches=len(means),
    )


def _severity(verdict: Verdict) -> tuple[int, float, str]:
    size = abs(math.log(verdict.ratio.estimate)) if verdict.ratio else 0.0
    return WORDS.index(verdict.word), -size, verdict.key
