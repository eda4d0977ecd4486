"""The data of a comparison: how strict it is, a verdict per benchmark, and all of them together."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchkit import machines, margins
from benchkit.errors import NOT_COMPARABLE, OK, REGRESSION
from benchkit.noise import Noise
from benchkit.samples import TIME, Sample
from benchkit.statistics import Ratio

# Worst first: the order of every report.
WORDS = (
    "broke",
    "missing",
    "slower",
    "still failing",
    "not comparable",
    "unclear",
    "new",
    "fixed",
    "faster",
    "same",
)
MEASURED = ("slower", "faster", "same", "unclear")
# What fails a gate. "still failing" too: where both sides are broken, nothing was confirmed.
FAIL_ON = ("slower", "broke", "missing", "still failing")


@dataclass(frozen=True, slots=True)
class Settings:
    """How strict: `looks` is how often the data may be looked at before stopping (α is shared)."""

    alpha: float = 0.05
    confidence: float = 0.95
    rules: tuple[margins.Rule, ...] = tuple(margins.defaults())
    metric: str = TIME
    better: str = ""  # "higher" or "lower": what is better of a metric that no name tells it of
    looks: int = 1
    test: bool = True
    allow_different_machine: bool = False

    @property
    def level(self) -> float:
        return self.alpha / self.looks


@dataclass(slots=True)
class Verdict:
    """One benchmark (and one metric of it): the word, why, and the numbers behind it."""

    key: str
    word: str
    reason: str
    base: Sample
    new: Sample
    metric: str = TIME
    next_step: str = ""
    margin: float = 0.0
    ratio: Ratio | None = None
    p_adjusted: float | None = None
    floor: float | None = None  # how far, as a fraction, the machine differs from itself (A/A)
    held_back: str = ""  # the word that the floor has turned into "unclear"
    notes: list[str] = field(default_factory=list)
    others: "list[Verdict]" = field(default_factory=list)  # the counters of the same benchmark

    @property
    def run_name(self) -> str:
        """The name a program knows the benchmark by."""
        return (
            self.key.removesuffix(f" #{self.new.occurrence + 1}")
            if self.new.occurrence
            else self.key
        )


@dataclass(slots=True)
class Report:
    """All verdicts of a comparison, worst first, and what holds for all of them."""

    base_label: str
    new_label: str
    verdicts: list[Verdict]
    differences: list[machines.Difference]
    warnings: list[str]
    settings: Settings
    family: int
    geomean: Ratio | None = None
    geomean_rows: int = 0
    noise: tuple[Noise, Noise] = (Noise(), Noise())  # of BASE and NEW
    floor: int | None = None  # launches a side of the A/A floor; None: no floor was given

    def count(self, word: str) -> int:
        return sum(verdict.word == word for verdict in self.verdicts)

    @property
    def comparable(self) -> bool:
        """False when nothing could be compared, or what differs was not allowed by a flag."""
        common = any(v.word not in ("missing", "new", "not comparable") for v in self.verdicts)
        refused = any(d.level == machines.REFUSE for d in self.differences)
        return common and (self.settings.allow_different_machine or not refused)

    def exit_code(self, fail_on: Sequence[str] = FAIL_ON) -> int:
        if not self.comparable:
            return NOT_COMPARABLE
        context = "context" in fail_on and bool(self.differences)
        return REGRESSION if context or any(self.count(word) for word in fail_on) else OK
