"""Where the tests' inputs are, and documents as Google Benchmark writes them."""

from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
CASES = Path(__file__).parent / "cases"
FAKE = Path(__file__).parent / "fake_bench.py"


def entry(name: str, seconds: float = 1e-3, **more: object) -> dict:
    """One repetition row; `more` adds or replaces fields."""
    row = {"name": name, "run_name": name, "run_type": "iteration", "repetitions": 1}
    row |= {"repetition_index": 0, "threads": 1, "iterations": 10}
    return row | {"real_time": seconds * 1e9, "cpu_time": seconds * 1e9, "time_unit": "ns"} | more


def document(rows: list[dict], **context: object) -> dict:
    return {"context": {"host_name": "h", "num_cpus": 2, **context}, "benchmarks": rows}
