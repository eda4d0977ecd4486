"""The program bench as tune.py's instrument: it chooses the device, knows its limits, proves and
times what a table of tuned kernels says. Nothing of that is decided twice.
"""

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchkit import tuned_table
from benchkit.errors import UserError
from benchkit.tunables import Limits

_NO_CHOICE = "the table of tuned kernels has none for"  # of bench's skipped rows


@dataclass(frozen=True)
class Device:
    index: int  # among all OpenCL devices: equal ones share their label
    label: str
    limits: Limits
    capability: int = 0  # NVIDIA's compute capability, 90 for 9.0; 0: another vendor's


@dataclass(frozen=True)
class Bench:
    path: Path
    device: Device

    def times(self, n: int, table: dict, repetitions: int = 5) -> list[float]:
        """Of SGEMM/GPU/Tuned, in microseconds; none if the table has no choice for the device."""
        with tempfile.TemporaryDirectory() as folder:
            file, out = Path(folder) / "tuned.json", Path(folder) / "run.json"
            file.write_text(tuned_table.text(table), encoding="utf-8")
            command = [self.path, f"--device={self.device.index}", f"--n={n}", f"--tuned={file}"]
            command += ["--benchmark_filter=^SGEMM/GPU/Tuned/n:", "--budget=0"]
            command += [f"--benchmark_repetitions={repetitions}", "--benchmark_min_time=0.1"]
            done = _run([*command, f"--benchmark_out={out}"])
            rows = json.loads(out.read_text())["benchmarks"] if out.exists() else []
        reasons = [row.get("error_message") or row.get("skip_message") for row in rows]
        said = next(filter(None, reasons), "" if rows else done.stderr.strip())
        if said and _NO_CHOICE not in said:
            raise UserError(f"bench cannot measure the table at n = {n}: {said}")
        return [row["real_time"] for row in rows if row.get("run_type") == "iteration" and not said]


def find(program: Path, wanted: str) -> Bench:
    """`wanted` as of `bench --device`; the default choice if empty."""
    path = program.resolve()
    if not path.exists():
        raise UserError(f"{program} is not there to compare with; run tools/bench.sh once")
    if path.is_dir() or not os.access(path, os.X_OK):
        raise UserError(f"{program} is no program that can be run")
    done = _run([path, "--describe_device", *([f"--device={wanted}"] if wanted else [])])
    if done.returncode != 0:
        raise UserError(done.stderr.strip().removeprefix("bench: "))
    try:
        told = json.loads(done.stdout)
        limits = Limits(told["work_group"], tuple(told["items"]), told["local_bytes"])
        return Bench(path, Device(told["index"], told["label"], limits, told["nvidia_capability"]))
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{program} describes no device: it is not this suite's bench") from error


def _run(command: list) -> subprocess.CompletedProcess:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"{command[0]} cannot be run: {error.strerror}") from error
