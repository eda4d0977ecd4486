"""Where the tests' inputs are, and documents and launches as Google Benchmark writes them."""

import json
import random
from pathlib import Path

from benchkit import reading
from benchkit.reading import Launch

TOOLS = Path(__file__).resolve().parents[1]
CASES = Path(__file__).parent / "cases"
NAME = "SGEMM/CPU/Ikj/n:64/real_time"
FAKE = Path(__file__).parent / "fake_bench.py"


def entry(name: str, seconds: float = 1e-3, **more: object) -> dict:
    """One repetition row; `more` adds or replaces fields."""
    row = {"name": name, "run_name": name, "run_type": "iteration", "repetitions": 1}
    row |= {"repetition_index": 0, "threads": 1, "iterations": 10}
    return row | {"real_time": seconds * 1e9, "cpu_time": seconds * 1e9, "time_unit": "ns"} | more


def document(rows: list[dict], **context: object) -> dict:
    return {"context": {"host_name": "h", "num_cpus": 2, **context}, "benchmarks": rows}


def launches(times: list[float | None], name: str = NAME, **context: object) -> list[Launch]:
    """One launch a time; None is a failed row."""
    rows = [
        entry(name, t)
        if t
        else entry(name, error_occurred=True, error_message="-54", real_time=0.0)
        for t in times
    ]
    texts = [json.dumps(document([row], launch_id=str(id(row)), **context)) for row in rows]
    return [reading.parse(text.encode(), f"{i}.json") for i, text in enumerate(texts)]


def noisy(
    level: float = 1e-3, count: int = 10, spread: float = 0.005, seed: int = 1
) -> list[float]:
    rng = random.Random(seed)
    return [level * rng.lognormvariate(0, spread) for _ in range(count)]
