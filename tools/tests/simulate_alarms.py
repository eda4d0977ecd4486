#!/usr/bin/env python3
"""Measures how often alarms are right, on simulated series, night by night as they would be seen.

    tools/tests/simulate_alarms.py [--series N] [--otava DIR]

Every night the code of nightly.py analyses the series so far. A confirmed step in noise or around
one-night spikes is a false alarm, even when a later night would take it back. With --otava, Apache
Otava (pip install --no-deps --target DIR apache-otava) is measured beside it, with the same clip
and the same confirmation. Prints a Markdown table.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchkit import environment

if __name__ == "__main__":
    environment.use_project_python()

import numpy as np

from benchkit import steps

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


def noise(rng: np.random.Generator) -> np.ndarray:
    return np.exp(rng.normal(0, SIGMA, NIGHTS))


def heavy(rng: np.random.Generator) -> np.ndarray:
    return np.exp(SIGMA * rng.standard_t(3, NIGHTS))


def wandering(rng: np.random.Generator) -> np.ndarray:
    shocks, level = rng.normal(0, SIGMA, NIGHTS), np.zeros(NIGHTS)
    for i in range(1, NIGHTS):
        level[i] = 0.3 * level[i - 1] + shocks[i]
    return np.exp(level)


def spikes(rng: np.random.Generator) -> np.ndarray:
    values = noise(rng)
    values[rng.choice(np.arange(10, NIGHTS), 2, replace=False)] *= np.exp(8 * SIGMA)
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


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=100)
    parser.add_argument("--otava", metavar="DIR")
    args = parser.parse_args(arguments)
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
