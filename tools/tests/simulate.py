#!/usr/bin/env python3
"""Proves the error rates of compare.py on simulated launches and prints them as a Markdown table.

    tools/tests/simulate.py                 the full numbers (2,000 runs each, some minutes)
    tools/tests/simulate.py planted         one question alone
    tools/tests/simulate.py --runs 200      a quick look

Every number comes from `verdicts.judge`, the code that compare.py runs, on launches made in memory:
log-normal or heavy-tailed noise from launch to launch, with or without drift during the run.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchkit import environment

if __name__ == "__main__":
    environment.use_project_python()

import random

import numpy as np

from benchkit import floors, launching, margins, names, verdicts
from benchkit.rows import Launch, Row

ROWS, LAUNCHES = 40, 10
NAMES = [f"SGEMM/CPU/V{i}/n:64/real_time" for i in range(ROWS)]
FIELDS = [names.parse(name) for name in NAMES]
ALL_THAT_IS_REAL = tuple(margins.defaults(0.001))  # a margin of 0.001 %: statistics alone decide


@dataclass(frozen=True)
class World:
    """How launches vary: `noise` per launch and row, `drift` over the run, shared by all rows."""

    title: str
    noise: float = 0.01
    tails: bool = False  # Student t with 3 degrees of freedom instead of normal
    drift: float = 0.0  # linear, over the whole run
    wander: float = 0.0  # random walk, per launch
    interleaved: bool = False
    days: float = 0.0  # what each row is shifted by from one occasion to the next


INDEPENDENT = World("independent launches, 1 % noise")
HEAVY = World("independent launches, heavy-tailed noise (t₃, 3 %)", 0.03, tails=True)
TURNS = World("in turns, 1 % noise", interleaved=True)
DRIFTING = World(
    "in turns, 1 % noise, 5 % drift and 1 % random walk", drift=0.05, wander=0.01, interleaved=True
)
RESTLESS = World("each side on a day of its own, 1 % noise, days 2 % apart", days=0.02)
RESTLESS_TURNS = World(
    "in turns on one day, 1 % noise, days 2 % apart", days=0.02, interleaved=True
)
WORLDS = (INDEPENDENT, HEAVY, TURNS, DRIFTING)
RECORDINGS = 6  # of the A/A floor, each on another day


def measure(world: World, rng: np.random.Generator, slow_down: float = 1.0, pairs: int = LAUNCHES):
    """(base, new) launches of ROWS rows; NEW's first row is slowed down."""
    order = list(launching.schedule(pairs, random.Random(int(rng.integers(2**32)))))
    count = 2 * pairs
    noise = rng.standard_t(3, (count, ROWS)) if world.tails else rng.standard_normal((count, ROWS))
    walk = np.cumsum(rng.normal(0, world.wander, count)) + np.linspace(0, world.drift, count)
    logs = world.noise * noise + walk[:, None]
    shift = rng.normal(0, world.days, (2, ROWS))
    sides: tuple[list[Launch], list[Launch]] = ([], [])
    for index, side in enumerate(order):
        times = 1e-3 * np.exp(logs[index] + shift[0 if world.interleaved else side])
        times[0] *= slow_down if side else 1
        sides[side].append(launch(times, index if world.interleaved else None))
    return sides


def record(world: World, rng: np.random.Generator) -> floors.Floor:
    """An A/A floor: each recording on a day of its own, as long as both sides together."""
    launches = []
    for day in range(RECORDINGS):
        made = [one for side in measure(replace(world, interleaved=True), rng) for one in side]
        launches += [replace(one, session=f"day {day}") for one in made]
    return floors.of(launches)


def launch(times: Sequence[float], index: int | None) -> Launch:
    rows = [
        Row(name, name, fields, "iteration", seconds=float(time), repetition=0)
        for name, fields, time in zip(NAMES, FIELDS, times, strict=True)
    ]
    return Launch("simulated", {}, rows, index=index, digest=str(random.random()))


def judge(sides, floor: floors.Floor | None = None, **settings: object) -> verdicts.Report:
    return verdicts.judge(*sides, verdicts.Settings(**settings), ("base", "new"), floor)


# ---- questions: one simulated comparison each, answered with numbers to be averaged -------------


def equal_sides(world: World, rng: np.random.Generator) -> tuple[float, ...]:
    """Any row slower or faster, and slower, at margin 0; slower by default; intervals right."""
    sides = measure(world, rng)
    report = judge(sides, rules=ALL_THAT_IS_REAL)
    slower = report.count("slower") > 0
    by_default = slower and judge(sides).count("slower") > 0
    right = np.mean([v.ratio.low <= 1 <= v.ratio.high for v in report.verdicts])
    return slower or report.count("faster") > 0, slower, by_default, right


def planted(world: World, rng: np.random.Generator) -> tuple[float, ...]:
    """A 3 % slow-down of one row among 40: called slower, no other row with it, interval right."""
    report = judge(measure(world, rng, 1.03))
    row = next(v for v in report.verdicts if v.key == NAMES[0])
    alone = [v.key for v in report.verdicts if v.word == "slower"] == [NAMES[0]]
    return alone, row.ratio.low <= 1.03 <= row.ratio.high


def floored(world: World, rng: np.random.Generator) -> tuple[float, ...]:
    """Equal sides: share of rows called slower, without and with the floor; 10 % found with it."""
    floor, sides = record(world, rng), measure(world, rng)
    alarms = [judge(sides, given).count("slower") / ROWS for given in (None, floor)]
    found = next(v for v in judge(measure(world, rng, 1.1), floor).verdicts if v.key == NAMES[0])
    return *alarms, found.word == "slower"


def sequential(world: World, rng: np.random.Generator) -> tuple[float, ...]:
    """--until-clear from 10 to 20 launches on equal sides, margin 0: any alarm at any look?"""
    plan = launching.Plan(10, 20)
    base, new = measure(world, rng, pairs=20)
    for start, more in plan.steps():
        sides = (base[: start + more], new[: start + more])
        report = judge(sides, rules=ALL_THAT_IS_REAL, looks=plan.looks)
        if report.count("slower") + report.count("faster"):
            return (True,)
    return (False,)


QUESTIONS = (
    # the question, its worlds, share of the runs, what its answers mean and must be
    (equal_sides, WORLDS, 1.0, (
        ("equal sides, margin 0: any row slower or faster", "≤ 5 %"),
        ("equal sides, margin 0: any row slower", "≤ 5 %"),
        ("equal sides, defaults: any row slower", "≤ 5 %"),
        ("95 % interval holds the true ratio 1", "93 – 97 %"),
    )),
    (planted, WORLDS[::2] + WORLDS[3:], 0.5, (
        ("3 % slow-down of one row of 40: found, nothing else", "≥ 95 % without drift"),
        ("95 % interval holds the true ratio 1.03", "93 – 97 %"),
    )),
    (floored, (RESTLESS, RESTLESS_TURNS), 0.1, (
        ("equal sides, defaults, no floor: rows called slower", "–"),
        (f"the same with a --floor of {RECORDINGS} recordings", "–"),
        ("10 % slow-down of one row, with that floor: found", "–"),
    )),
    (sequential, WORLDS[::3], 0.25, (
        ("--until-clear 10 → 20, equal sides, margin 0: any false alarm", "≤ 5 %"),
    )),
)  # fmt: skip


def answers(question: Callable, world: World, runs: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([question(world, rng) for _ in range(runs)], float)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2000)
    names = [question.__name__ for question, *_ in QUESTIONS]
    parser.add_argument("questions", nargs="*", default=names, help=f"of {', '.join(names)}")
    args = parser.parse_args()
    chosen = [entry for entry in QUESTIONS if entry[0].__name__ in args.questions]
    tasks = [
        (q, w, max(1, int(args.runs * share))) for q, worlds, share, _ in chosen for w in worlds
    ]
    means = {q: meanings for q, _, _, meanings in QUESTIONS}
    with ProcessPoolExecutor() as pool:
        futures = [pool.submit(answers, *task, seed) for seed, task in enumerate(tasks)]
        print(f"{ROWS} rows, {LAUNCHES} launches a side.\n")
        print("| question | launches | runs | goal | measured |\n| --- | --- | --- | --- | --- |")
        for (question, world, count), future in zip(tasks, futures, strict=True):
            rates = future.result().mean(axis=0)
            for (text, goal), measured in zip(means[question], rates, strict=True):
                print(f"| {text} | {world.title} | {count} | {goal} | {measured:.1%} |", flush=True)


if __name__ == "__main__":
    main()
