"""Search of the best configuration of a kernel on an OpenCL device: by Kernel Tuner, or by bench
for the kernels that only bench can build.

Every configuration is proved with integers, exact in float32, before it counts.
"""

import contextlib
import hashlib
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchkit import tuned_table
from benchkit.errors import UserError
from benchkit.measuring import Bench, Device
from benchkit.tunables import Limits, Tunables

_BUILD_OPTIONS = ["-cl-std=CL1.2"]


@dataclass(frozen=True)
class Search:
    """How to look: a strategy of Kernel Tuner, its seconds, and where to note what was seen."""

    strategy: str
    seconds: float
    cache: Path


@dataclass(frozen=True)
class Winner:
    kernel: str
    config: dict[str, int]
    milliseconds: float


def tune(tunables: Tunables, device: Device, n: int, search: Search) -> list[Winner]:
    """The configurations found, fastest first; empty if the device can run none. Resumes what is
    cached; Kernel Tuner reports every configuration on stderr."""
    a, b, expected = _problem(n)
    c = np.full((n, n), np.nan, np.float32)
    size, none = np.int32(n), [None]
    timed = {} if search.strategy == "brute_force" else {"time_limit": search.seconds}
    if search.strategy == "random_sample":
        timed["fraction"] = 1.0  # in random order, all of it if time allows
    cache = _cache_file(tunables, device, n, search.cache)
    platform, number = _place(device)
    # On an error Kernel Tuner leaves the kernel's text in the folder it runs in.
    with contextlib.redirect_stdout(sys.stderr), contextlib.chdir(cache.parent):
        import kernel_tuner

        try:
            rows, _ = kernel_tuner.tune_kernel(
                tunables.kernel,
                tunables.text,
                (n, n),
                [size, size, size, a, size, b, size, c, size],
                {name: list(values) for name, values in tunables.values.items()},
                grid_div_x=["TILE_N"],
                grid_div_y=["TILE_M"],
                block_size_names=["WG_X", "WG_Y"],
                restrictions=[_restriction(tunables, device.limits)],
                answer=[*none * 7, expected, None],
                verify=lambda answer, result, atol: np.array_equal(answer[7], result[7]),
                lang="OpenCL",
                platform=platform,
                device=number,
                compiler_options=_BUILD_OPTIONS,
                strategy=search.strategy,
                strategy_options=timed,
                cache=str(cache),
            )
        except RuntimeError as error:
            if "verification failed" not in str(error):
                raise
            raise UserError(
                f"{tunables.kernel} computes a wrong product: {error}. Mend the kernel, or forbid "
                "the configuration with an #error line"
            ) from error
    return ranked(tunables, rows)


def tune_by_bench(tunables: Tunables, bench: Bench, n: int, seconds: float) -> list[Winner]:
    """The same for a kernel that needs bench's own way to the device: as many configurations as
    there is time for, in random order, each the only entry of a table."""
    end = time.monotonic() + seconds
    device = bench.device
    configs = [
        some for some in tunables.configurations() if not tunables.obstacle(some, device.limits)
    ]
    random.Random(1).shuffle(configs)
    found = []
    for config in configs:
        if time.monotonic() > end:
            break
        row = tuned_table.entry(device, (n, n), tunables.kernel, config, "")
        try:
            times = bench.times(n, {"entries": [row]}, repetitions=1)
        except UserError as error:
            print(f"{config}: {error}", file=sys.stderr)
            continue
        milliseconds = statistics.median(times) / 1000
        print(f"{config}: {milliseconds:.6g} ms", file=sys.stderr)
        found.append(Winner(tunables.kernel, config, milliseconds))
    return sorted(found, key=lambda winner: winner.milliseconds)


def strategies() -> list[str]:
    from kernel_tuner.interface import strategy_map

    return sorted(strategy_map)


def ranked(tunables: Tunables, rows: list[Mapping]) -> list[Winner]:
    """Rows of configurations that did not run carry an error in place of a time."""
    good = [row for row in rows if isinstance(row.get("time"), float) and "__error__" not in row]
    found = [
        Winner(tunables.kernel, {name: int(row[name]) for name in tunables.values}, row["time"])
        for row in good
    ]
    return sorted(found, key=lambda winner: winner.milliseconds)


def _problem(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    a, b = (random.integers(-8, 9, (n, n)).astype(np.float32) for _ in range(2))
    return a, b, a @ b


def _restriction(tunables: Tunables, limits: Limits) -> Callable[..., bool]:
    """In the form of Kernel Tuner, which gives the values now by name, now in their order."""

    def accepted(*values: int, **named: int) -> bool:
        config = named or dict(zip(tunables.values, values, strict=True))
        return not tunables.obstacle(config, limits)

    return accepted


def _cache_file(tunables: Tunables, device: Device, n: int, folder: Path) -> Path:
    """Another text of the kernel, device or size has another file."""
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    identity = f"{tunables.text}\0{device.label}".encode()
    path = folder / f"{tunables.kernel}_n{n}_{hashlib.sha256(identity).hexdigest()[:12]}.json"
    if path.exists() and not _continues(path, tunables):
        broken = path.rename(path.with_suffix(".broken"))
        print(f"{path} is no whole record of a search: now {broken.name}", file=sys.stderr)
    return path


def _continues(cache: Path, tunables: Tunables) -> bool:
    """Whether Kernel Tuner can go on from it; it writes a row at a time, but may be killed."""
    from kernel_tuner.util import read_cache

    try:
        record = read_cache(cache, open_cache=False)
        return record["tune_params_keys"] == list(tunables.values) and "device_name" in record
    except (ValueError, LookupError, TypeError, AttributeError):
        return False


def _place(device: Device) -> tuple[int, int]:
    """Its platform and its number there, as Kernel Tuner counts."""
    import pyopencl as cl

    places = [
        (platform, number, f"{handle.platform.name} / {handle.name}")
        for platform, each in enumerate(cl.get_platforms())
        for number, handle in enumerate(each.get_devices())
    ]
    if device.index >= len(places) or places[device.index][2] != device.label:
        raise UserError(f"pyopencl does not find {device.label}, OpenCL device {device.index}")
    return places[device.index][:2]
