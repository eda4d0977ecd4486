"""Where should this size run? One machine's launches → the answer, size by size.

Contract: only rows of the run are used, none is made up. A time is a median with its interval; two
times whose intervals overlap are "unclear", never a winner. Times of reduced precision do not take
part unless asked for; rows that the program itself calls suspicious never do.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchkit import roofline, samples
from benchkit.errors import UserError
from benchkit.reading import Launch
from benchkit.samples import Sample
from benchkit.statistics import median

CPU, GPU, UNCLEAR, NEVER = "CPU", "GPU", "unclear", "never"
# TF32 keeps ten bits; "3xTf32" and its kin recover float32 from it.
REDUCED = re.compile(r"(?<!3x)T[fF]32")
LONE_SPREAD = 0.1  # assumed of a time that was measured once
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Time:
    """Seconds of the best row of a kind at one size: its median and the interval of the median."""

    name: str
    seconds: float
    low: float
    high: float

    def repeated(self, k: int) -> "Time":
        return Time(self.name, k * self.seconds, k * self.low, k * self.high)

    def overlaps(self, other: "Time") -> bool:
        return self.low <= other.high and other.low <= self.high


@dataclass(frozen=True, slots=True)
class Size:
    """The contestants at one n; None where the run has no such row."""

    n: int
    cpu: Time | None
    gpu: Time | None  # operands on the device already
    transfers: Time | None  # one product, upload and download included
    percent: dict[str, float | None]  # of the roof, by side; None on matrix units, which have none
    pairs: tuple[tuple[Time, Time], ...] = ()  # per GPU variant: its kernel, and with transfers

    def products(self, k: int) -> Time | None:
        """k products on the same operands: one with its transfers, then the kernel alone, by the
        variant that is best at it."""
        sums = (
            Time(
                moved.name,
                moved.seconds + (k - 1) * kernel.seconds,
                moved.low + (k - 1) * kernel.low,
                moved.high + (k - 1) * kernel.high,
            )
            for kernel, moved in self.pairs
        )
        return min(sums, key=lambda time: time.seconds, default=None)

    def race(self, k: int) -> tuple[Time | None, Time | None]:
        """k products on the CPU and on the GPU."""
        return (self.cpu.repeated(k) if self.cpu else None), self.products(k)

    def least_products(self) -> int | str | None:
        """The smallest k from which the GPU wins, transfers included; "never"; "unclear" where its
        kernel is not told from the CPU; None where one of the three was not measured."""
        if self.cpu is None or self.gpu is None or not self.pairs:
            return None
        if winner(self.cpu, self.gpu) == UNCLEAR:
            return UNCLEAR
        counts = [_least(self.cpu, kernel, moved) for kernel, moved in self.pairs]
        return min((k for k in counts if k is not None), default=NEVER)


@dataclass(frozen=True, slots=True)
class Crossover:
    """One question, answered at each size, and where the answer turns.

    `kind`: "crossover" between `low` (last size of the CPU) and `high` (first of the GPU), "CPU" or
    "GPU" at every size, "unclear", "mixed" (it turns more than once), "not measured".
    """

    question: str
    kind: str
    answers: dict[int, str]
    low: int | None = None
    high: int | None = None
    estimate: int | None = None

    def sentence(self) -> str:
        sizes = sorted(self.answers)
        span = f"n = {sizes[0]} … {sizes[-1]}" if sizes else ""
        if self.kind == "crossover":
            about = f", at about {self.estimate}" if self.estimate else ""
            return f"CPU up to n = {self.low}, GPU from n = {self.high}{about}"
        words = ", ".join(f"{n}: {self.answers[n]}" for n in sizes)
        return {
            CPU: f"CPU at every measured size ({span})",
            GPU: f"GPU at every measured size ({span})",
            UNCLEAR: f"unclear where the intervals overlap: {words}"
            if set(self.answers.values()) != {UNCLEAR}
            else f"unclear at every measured size ({span}): the intervals overlap",
            "mixed": f"it turns more than once: {words}",
        }.get(self.kind, "not measured: the run lacks one side")


@dataclass(frozen=True, slots=True)
class Advice:
    """Everything the reports say of one op on one machine."""

    op: str
    machine: dict[str, str]
    roofs: dict[str, roofline.Roofs]
    sizes: list[Size]
    crossovers: list[Crossover]
    products: dict[int, int | str | None]  # n → the least k, as Size.least_products
    remarks: list[str]


@dataclass(frozen=True, slots=True)
class Wishes:
    op: str = "SGEMM"
    products: tuple[int, ...] = (10, 100)
    reduced_precision: bool = False


def machines(launches: Sequence[Launch]) -> list[list[Launch]]:
    """Launches of the same CPU, threads, device and cache mode together, in order of appearance."""
    groups: dict[tuple[object, ...], list[Launch]] = {}
    for launch in launches:
        keys = ("cpu_model", "threads", "cl_device", "cache", "host_name")
        groups.setdefault(tuple(launch.context.get(key) for key in keys), []).append(launch)
    return list(groups.values())


def advise(launches: Sequence[Launch], wishes: Wishes) -> Advice:
    """The advice for one machine. Raises UserError if the run has no row of the op."""
    suspicious = {row.key for launch in launches for row in launch.rows if row.suspicious}
    contestants = [
        sample
        for sample in samples.collect(launches).values()
        if sample.fields.op == wishes.op
        and sample.values
        and sample.key not in suspicious
        and (wishes.reduced_precision or not REDUCED.search(sample.fields.variant))
    ]
    if not contestants:
        raise UserError(f"{launches[0].path}: no measured row of {wishes.op}")
    points = roofline.points(launches)
    percents = {point.key: point.percent for point in points}
    sizes = [
        _size(n, [s for s in contestants if s.fields.n == n], percents)
        for n in sorted({s.fields.n for s in contestants if s.fields.n})
    ]
    questions = [
        crossover("data already on the device", sizes, lambda size: (size.cpu, size.gpu)),
        crossover("one product with transfers", sizes, lambda size: (size.cpu, size.transfers)),
    ]
    questions += [
        crossover(f"{k} products on resident data", sizes, lambda size, k=k: size.race(k))
        for k in wishes.products
    ]
    return Advice(
        wishes.op,
        _machine(launches[0]),
        roofline.ceilings(launches),
        sizes,
        questions,
        {size.n: size.least_products() for size in sizes},
        _remarks(launches, contestants, suspicious),
    )


def crossover(
    question: str, sizes: Sequence[Size], race: Callable[[Size], tuple[Time | None, Time | None]]
) -> Crossover:
    """Where the two of a race, CPU and GPU, change places."""
    pairs = [(size.n, *race(size)) for size in sizes]
    known = [(n, cpu, gpu) for n, cpu, gpu in pairs if cpu is not None and gpu is not None]
    answers = {n: winner(cpu, gpu) for n, cpu, gpu in known}
    decided = [n for n in answers if answers[n] != UNCLEAR]
    words = [answers[n] for n in decided]
    if not answers:
        return Crossover(question, "not measured", answers)
    if not decided:
        return Crossover(question, UNCLEAR, answers)
    if len(set(words)) == 1:
        kind = words[0] if len(decided) == len(answers) else UNCLEAR
        return Crossover(question, kind, answers)
    turns = sum(a != b for a, b in pairwise(words))
    if turns > 1 or words[0] == GPU:
        return Crossover(question, "mixed", answers)
    low, high = (decided[i] for i in (words.index(GPU) - 1, words.index(GPU)))
    return Crossover(question, "crossover", answers, low, high, _estimate(known, low, high))


def winner(cpu: Time, gpu: Time) -> str:
    if cpu.overlaps(gpu):
        return UNCLEAR
    return CPU if cpu.seconds < gpu.seconds else GPU


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The interval of the median by order statistics at 95 %; all of a handful of values."""
    if len(values) == 1:
        return values[0] * (1 - LONE_SPREAD), values[0] * (1 + LONE_SPREAD)
    from scipy import stats

    ordered = sorted(values)
    cut = max(1, int(stats.binom.ppf((1 - CONFIDENCE) / 2, len(ordered), 0.5)))
    return ordered[cut - 1], ordered[-cut]


def _size(n: int, here: Sequence[Sample], percents: dict[str, float | None]) -> Size:
    def best(side: str, end_to_end: bool) -> Time | None:
        rows = [s for s in here if (s.fields.side, s.fields.end_to_end) == (side, end_to_end)]
        return min(map(_time, rows), key=lambda time: time.seconds, default=None)

    cpu, gpu = best(CPU, False), best(GPU, False)
    keys = {
        f"{s.fields.op}/{s.fields.side}/{s.fields.variant}": s.key
        for s in here
        if not s.fields.end_to_end
    }
    percent = {
        side: percents.get(keys.get(time.name, ""))
        for side, time in ((CPU, cpu), (GPU, gpu))
        if time
    }
    on_gpu = [s for s in here if s.fields.side == GPU]
    kernels, moved = (
        {s.fields.variant: _time(s) for s in on_gpu if s.fields.end_to_end == both}
        for both in (False, True)
    )
    pairs = tuple((kernels[v], moved[v]) for v in kernels.keys() & moved.keys())
    return Size(n, cpu, gpu, best(GPU, True), percent, pairs)


def _least(cpu: Time, kernel: Time, moved: Time) -> int | None:
    """The smallest k with moved + (k − 1) kernel < k cpu; None if there is none."""
    if moved.seconds < cpu.seconds:
        return 1
    gain = cpu.seconds - kernel.seconds
    return math.floor((moved.seconds - kernel.seconds) / gain) + 1 if gain > 0 else None


def _time(sample: Sample) -> Time:
    name = f"{sample.fields.op}/{sample.fields.side}/{sample.fields.variant}"
    return Time(name, median(sample.values), *interval(sample.values))


def _estimate(known: Sequence[tuple[int, Time, Time]], low: int, high: int) -> int | None:
    """The size at which the times are equal, by a straight line in the logarithms."""
    ratios = {n: math.log(gpu.seconds / cpu.seconds) for n, cpu, gpu in known}
    if not ratios[low] > 0 > ratios[high]:
        return None
    part = ratios[low] / (ratios[low] - ratios[high])
    return round(math.exp(math.log(low) + part * math.log(high / low)))


def _machine(launch: Launch) -> dict[str, str]:
    keys = ("cpu_model", "threads", "cl_device", "cl_device_type", "cache", "selftest")
    return {key: str(launch.context[key]) for key in keys if key in launch.context}


def _remarks(
    launches: Sequence[Launch], contestants: Sequence[Sample], suspicious: set[str]
) -> list[str]:
    remarks = [f"{key}: left out, the program calls it suspicious" for key in sorted(suspicious)]
    if any(len(sample.values) == 1 for sample in contestants):
        remarks.append(
            "some rows were measured once; a spread of 10 % is assumed of them "
            "(--benchmark_repetitions=5 measures it)"
        )
    points = [p for p in roofline.points(launches) if p.fields.op == contestants[0].fields.op]
    if any(point.bound == roofline.MATRIX_UNITS for point in points):
        remarks.append(
            "no row measures the peak of the matrix units: what runs on them has no % of roof"
        )
    if any(point.bound == roofline.MEMORY and point.remark for point in points):
        remarks.append("% of roof above 100: data from a cache, faster than the copy in memory")
    if not roofline.ceilings(launches):
        remarks.append("the run has no Peak rows, so there is no % of roof")
    if any(str(launch.context.get("selftest", "ok")).startswith("failed") for launch in launches):
        remarks.append("the clocks disagreed in the run's self-test: read its times with care")
    return remarks
