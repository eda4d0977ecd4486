"""A machine against itself: how much a comparison shows there when nothing has changed (A/A floor).

A floor is stored launches of one program, as `benchmarks PROGRAM PROGRAM --keep DIR` leaves them.
They are dealt into two sides as the comparison at hand was measured, in turns or one side after the
other, and compared with the same statistics: the reach of the interval is the floor of a benchmark.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from benchkit import deciding, samples
from benchkit.deciding import Design
from benchkit.errors import UserError
from benchkit.reading import Launch
from benchkit.report import Settings, Verdict

Sides = tuple[list[Launch], list[Launch]]
FEWEST = 8  # launches of a recording: below, no two sides have an interval


@dataclass(frozen=True, slots=True)
class Floor:
    """The launches of each recording, in the order they ran."""

    recordings: tuple[tuple[Launch, ...], ...]

    @property
    def launches(self) -> list[Launch]:
        return [launch for recording in self.recordings for launch in recording]

    def dealt(self, in_turns: bool) -> list[Sides]:
        """The launches as pairs of sides, measured as the comparison was.

        In turns: each recording in blocks of ABBA. Else one side after the other: recordings of
        one commit against each other, where there are several, or each recording's two halves.
        """
        if in_turns:
            return [(_places(one, (0, 3)), _places(one, (1, 2))) for one in self.recordings]
        apart = [
            (list(one), list(other))
            for one, other in combinations(self.recordings, 2)
            if _commits(one) == _commits(other)
        ]
        halves = [(one, len(one) // 2) for one in self.recordings]
        return apart or [(list(one[:half]), list(one[half:])) for one, half in halves]

    def a_side(self, in_turns: bool) -> int:
        """How many launches are compared with as many, at most."""
        return max(min(map(len, sides)) for sides in self.dealt(in_turns))


def of(launches: Sequence[Launch]) -> Floor:
    """The floor that these launches are; UserError when they cannot be one."""
    recordings: dict[str, list[Launch]] = {}
    for launch in launches:
        recordings.setdefault(launch.session, []).append(launch)
    for recording in recordings.values():
        recording.sort(key=lambda launch: -1 if launch.index is None else launch.index)
        if len(commits := sorted(_commits(recording))) > 1:
            raise UserError(
                f"--floor: {recording[0].path} and the launches around it are of different commits "
                f"({', '.join(commit[:12] for commit in commits)}): a floor is one program "
                "against itself"
            )
    floor = Floor(tuple(map(tuple, recordings.values())))
    if max(map(len, floor.recordings)) < FEWEST:
        raise UserError(
            f"--floor: no recording of {FEWEST} launches or more: too few for an interval; make "
            "one with compare.py benchmarks PROGRAM PROGRAM --keep DIR"
        )
    return floor


def reaches(floor: Floor, metric: str, settings: Settings, in_turns: bool) -> dict[str, float]:
    """Each benchmark's floor as a fraction: the widest that any two sides of its program give."""
    found: dict[str, float] = {}
    design = Design(settings.level, interleaved=in_turns)
    for sides in floor.dealt(in_turns):
        one, other = (samples.collect(side, metric) for side in sides)
        for key in one.keys() & other.keys():
            if one[key].unit != samples.BY_LAUNCH or not one[key].values or not other[key].values:
                continue
            ratio = deciding.ratio(one[key], other[key], settings, design)
            if ratio.low is not None and ratio.high is not None:
                reach = math.exp(max(-math.log(ratio.low), math.log(ratio.high))) - 1
                found[key] = max(found.get(key, 0.0), reach)
    return found


def hold_back(verdict: Verdict, reach: float | None) -> None:
    """Gives a verdict its floor; a change that is no larger than it is not confirmed.

    The word becomes "unclear" and says so: neither an alarm nor silence. "Same" stays, for it rests
    on this comparison's own interval, and is told apart from the floor by a note.
    """
    verdict.floor, ratio = reach, verdict.ratio
    if reach is None or ratio is None:
        return
    inside = abs(math.log(ratio.estimate)) <= math.log1p(reach)
    against = f"the machine differs from itself by up to ±{reach:.1%} (A/A floor)"
    if verdict.word in ("slower", "faster") and inside:
        verdict.held_back, verdict.word = verdict.word, "unclear"
        verdict.reason = f"would be {verdict.held_back} ({verdict.reason}), but {against}"
        verdict.next_step = "measure in turns on a quieter machine, and its floor again"
    elif verdict.word == "unclear" and inside:
        verdict.reason += f"; no more than the A/A floor of ±{reach:.1%}"
    elif verdict.word == "same" and reach > verdict.margin:
        verdict.notes.append(f"{against}, more than the margin")


def warnings(a_side: int, verdicts: Sequence[Verdict]) -> list[str]:
    """What a floor of so many launches did to the verdicts, and where it falls short of them."""
    found = []
    if held := [verdict for verdict in verdicts if verdict.held_back]:
        slower = sum(verdict.held_back == "slower" for verdict in held)
        found.append(
            f"{len(held)} unclear by the A/A floor alone: {slower} would be slower and "
            f"{len(held) - slower} faster, but no more than the machine differs from itself"
        )
    measured = [verdict for verdict in verdicts if verdict.ratio is not None]
    if unknown := sum(verdict.floor is None for verdict in measured):
        found.append(f"the A/A floor says nothing of {unknown} of {len(measured)} benchmarks")
    most = max((min(v.base.launches, v.new.launches) for v in measured), default=0)
    if a_side < most:
        found.append(
            f"the A/A floor has {a_side} launches a side, the comparison {most}: the floor "
            "is wider than need be"
        )
    return found


def _places(recording: Sequence[Launch], places: tuple[int, int]) -> list[Launch]:
    """One side of blocks of four; of an odd rest both sides leave one out."""
    whole = recording[: len(recording) // 2 * 2]
    return [launch for i, launch in enumerate(whole) if i % 4 in places]


def _commits(launches: Sequence[Launch]) -> set[str]:
    return {str(launch.context.get("git_sha", "")) for launch in launches}
