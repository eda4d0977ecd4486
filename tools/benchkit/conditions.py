"""The state of the machine now: load, governor, clocks, temperature, and the GPU's where NVML is.

What cannot be read is left out; nothing here ever fails a night.
"""

import os
import shutil
import subprocess
from pathlib import Path

CPU = Path("/sys/devices/system/cpu/cpu0/cpufreq")
THERMAL = Path("/sys/class/thermal")
QUERY = "name,driver_version,clocks.sm,clocks.mem,temperature.gpu,power.draw,pstate"


def now() -> dict[str, object]:
    facts: dict[str, object] = {"load": [round(load, 2) for load in os.getloadavg()]}
    if governor := _text(CPU / "scaling_governor"):
        facts["governor"] = governor
    if (clock := _text(CPU / "scaling_cur_freq")).isdecimal():
        facts["clock_mhz"] = int(clock) // 1000
    zones = [_text(zone / "temp") for zone in sorted(THERMAL.glob("thermal_zone*"))]
    degrees = [int(zone) / 1000 for zone in zones if zone.lstrip("-").isdecimal()]
    if degrees:
        facts["temperature_c"] = max(degrees)
    if gpus := _nvidia():
        facts["gpus"] = gpus
    return facts


def _nvidia() -> list[dict[str, str]]:
    """One table a GPU, through nvidia-smi, which speaks NVML."""
    if not (tool := shutil.which("nvidia-smi")):
        return []
    command = [tool, f"--query-gpu={QUERY}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    keys = QUERY.split(",")
    lines = [line.split(", ") for line in done.stdout.splitlines()]
    return [dict(zip(keys, line, strict=True)) for line in lines if len(line) == len(keys)]


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
