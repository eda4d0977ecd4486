#!/usr/bin/env python3
"""Measures how often alarms are right, on simulated series, night by night as they would be seen.

    tools/tests/simulate_alarms.py [--series N] [--otava DIR]
    tools/tests/simulate_alarms.py --together 400 [--nights 90]

Every night the code of nightly.py analyses the series so far. A confirmed step in noise or around
one-night spikes is a false alarm, even when a later night would take it back. With --otava, Apache
Otava (pip install --no-deps --target DIR apache-otava) is measured beside it, with the same clip
and the same confirmation. --together measures that many noise series as one machine's: on how many
nights somebody finds a confirmed alarm, each series for itself and corrected for their number; and
how many of 100 steps, each alone among so many series, are found. Prints a Markdown table.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchkit import environment

if __name__ == "__main__":
    environment.use_project_python()

import numpy as np

from benchkit import alarms, history, names, steps

NIGHTS, STEP_AT, SIGMA, MARGIN = 90, 60, 0.02, 0.02
Detector = Callable[[np.ndarray], list[int]]


def ours(values: np.ndarray) -> list[int]:
    return [step.index for step in steps.find(list(values), MARGIN) if step.confirmed]


def otava(clipped: bool) -> Detector:
    from otava.analysis import compute_change_points

    def detect(values: np.ndarray) -> list[int]:
        data = np.exp(steps.clip(np.log(values))[0]) if clipped else values
        try:
            points, _ = compute_change_points(list(data), 50, 0.001, MARGIN)
        except ValueError:  # a change at the very first night
            return []
        last = len(values) - steps.NIGHTS if clipped else len(values)
        return [int(point.index) for point in points if point.index <= last]

    return detect


def noise(rng: np.random.Generator, nights: int = NIGHTS) -> np.ndarray:
    return np.exp(rng.normal(0, SIGMA, nights))


def heavy(rng: np.random.Generator, nights: int = NIGHTS) -> np.ndarray:
    return np.exp(SIGMA * rng.standard_t(3, nights))


def wandering(rng: np.random.Generator, nights: int = NIGHTS) -> np.ndarray:
    shocks, level = rng.normal(0, SIGMA, nights), np.zeros(nights)
    for i in range(1, nights):
        level[i] = 0.3 * level[i - 1] + shocks[i]
    return np.exp(level)


def spikes(rng: np.random.Generator, nights: int = NIGHTS) -> np.ndarray:
    values = noise(rng, nights)
    values[rng.choice(np.arange(10, nights), 2, replace=False)] *= np.exp(8 * SIGMA)
    return values


def stepped(rng: np.random.Generator) -> np.ndarray:
    return noise(rng) * np.where(np.arange(NIGHTS) >= STEP_AT, np.exp(3 * SIGMA), 1)


FALSE = {
    "noise (normal)": noise,
    "noise (heavy tails, t₃)": heavy,
    "noise (each night 0.3 of the last)": wandering,
    "two one-night spikes of 8 sigma": spikes,
}


def alarmed(values: np.ndarray, detect: Detector) -> bool:
    """Whether any night would have shown a confirmed alarm."""
    return any(detect(values[:night]) for night in range(8, NIGHTS + 1))


def found(values: np.ndarray, detect: Detector) -> bool:
    """Whether the step is seen within 12 nights, at most 3 nights from its place."""
    nights = range(STEP_AT + 1, STEP_AT + 13)
    return any(abs(i - STEP_AT) <= 3 for night in nights for i in detect(values[:night]))


def measure(series: int, detect: Detector, seed: int = 1) -> dict[str, int]:
    counts = {}
    for name, make in FALSE.items():
        rng = np.random.default_rng(seed)
        counts[name] = sum(alarmed(make(rng), detect) for _ in range(series))
    rng = np.random.default_rng(seed)
    counts["step of 3 sigma found"] = sum(found(stepped(rng), detect) for _ in range(series))
    return counts


# ---- many series of one machine ---------------------------------------------------------------


def seen(values: np.ndarray) -> list[alarms.Alarm]:
    """Confirmed alarms that the last of these nights (series × nights) shows, corrected or not."""
    nights = [
        history.Night(i, "m", "", "", "", "complete", "", {}, [], i) for i in range(values.shape[1])
    ]
    series = [
        history.Series("m", name, names.parse(name), [i], *[row] * 5)
        for i, row in enumerate(values)
        for name in [f"SGEMM/CPU/Variant/n:{i}/real_time"]
    ]
    past = history.History([history.Machine("m", nights, series)], "", [], [])
    return [a for a in alarms.find(past, alarms.Rules(level=1)) if a.p is not None]


def _said(shown: list[tuple[int, alarms.Alarm]]) -> str:
    nights, series = ({night for night, _ in shown}, {alarm.series for _, alarm in shown})
    return f"{len(nights)} nights, {len(series)} series" if shown else "0"


def together(series: int, nights: int, seed: int = 1) -> Iterator[tuple[str, str, str]]:
    """What happens, and how often: each series for itself, and corrected for their number."""
    level = alarms.Rules().level
    for name, make in FALSE.items():
        rng = np.random.default_rng(seed)
        values = np.array([make(rng, nights) for _ in range(series)])
        every = [(n, a) for n in range(8, nights + 1) for a in seen(values[:, :n])]
        yield name, *(_said([(n, a) for n, a in every if a.p <= q]) for q in (1, level))
    rng = np.random.default_rng(seed)
    values = np.array([noise(rng) for _ in range(series)])
    places = {f"SGEMM/CPU/Variant/n:{i}/real_time": 28 + 2 * i for i in range(25)}
    for row, at in zip(values, places.values(), strict=False):
        row[at:] *= np.exp(3 * SIGMA)
    least = dict.fromkeys(places, 2.0)
    for night in range(30, NIGHTS + 1):
        for alarm in seen(values[:, :night]):
            at = places.get(alarm.series, -99)
            if abs(alarm.night - at) <= 3 and at < night <= at + 12:
                least[alarm.series] = min(least[alarm.series], alarm.p)
    counts = (str(sum(p <= q for p in least.values())) for q in (1, level))
    yield "of 25 steps of 3 sigma, each alone on its night, found", *counts


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=100)
    parser.add_argument("--otava", metavar="DIR")
    parser.add_argument("--together", metavar="N", type=int)
    parser.add_argument("--nights", type=int, default=NIGHTS, help="of --together")
    args = parser.parse_args(arguments)
    if args.together:
        what = f"alarms in {args.together} series, {args.nights} nights"
        print(f"| {what} | each for itself | corrected for their number |")
        print("| --- | ---: | ---: |")
        for what, *counts in together(args.together, args.nights):
            print(f"| {what} | " + " | ".join(counts) + " |", flush=True)
        return 0
    detectors: dict[str, Detector] = {"suite": ours}
    if args.otava:
        sys.path.insert(0, args.otava)
        detectors |= {"Otava, defaults": otava(False), "Otava, clip and confirmation": otava(True)}
    counts = {name: measure(args.series, detect) for name, detect in detectors.items()}
    print(f"| of {args.series} series, {NIGHTS} nights | " + " | ".join(counts) + " |")
    print("| --- |" + " ---: |" * len(counts))
    for row in next(iter(counts.values())):
        print(f"| {row} | " + " | ".join(str(c[row]) for c in counts.values()) + " |")
    return 0


if __name__ == "__main__":
    environment.run(main)
