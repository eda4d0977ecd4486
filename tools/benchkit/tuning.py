"""Search of the best configuration of a kernel on an OpenCL device, by Kernel Tuner.

Every configuration is proved with integers, exact in float32, before it counts.
"""

import contextlib
import hashlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchkit.errors import UserError
from benchkit.tunables import Limits, Tunables

_BUILD_OPTIONS = ["-cl-std=CL1.2"]


@dataclass(frozen=True)
class Device:
    platform: int
    index: int
    label: str
    limits: Limits
    capability: int = 0  # NVIDIA's compute capability, 90 for 9.0; 0: another vendor's


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


def choose_device(wanted: str) -> Device:
    """As `bench --device`: index or part of "platform / device"; the first GPU if empty."""
    import pyopencl as cl

    try:
        platforms = cl.get_platforms()
    except cl.LogicError:
        platforms = []
    all_devices = [
        (at, index, device)
        for at, platform in enumerate(platforms)
        for index, device in enumerate(platform.get_devices())
    ]
    found = [_describe(*each) for each in all_devices]
    if not found:
        raise UserError("there is no OpenCL device (install pocl-opencl-icd for one)")
    if not wanted:
        gpus = (i for i, (_, _, d) in enumerate(all_devices) if d.type & cl.device_type.GPU)
        return found[next(gpus, 0)]
    if wanted.isdigit() and int(wanted) < len(found):
        return found[int(wanted)]
    for device in found:
        if wanted in device.label:
            return device
    labels = ", ".join(device.label for device in found)
    raise UserError(f"no device is called {wanted!r}; there are: {labels}")


def _describe(platform: int, index: int, device: object) -> Device:
    limits = Limits(
        device.max_work_group_size, tuple(device.max_work_item_sizes), device.local_mem_size
    )
    label = f"{device.platform.name} / {device.name}"
    return Device(platform, index, label, limits, _capability(device))


def _capability(device: object) -> int:
    import pyopencl as cl

    if "cl_nv_device_attribute_query" not in device.extensions.split():
        return 0
    major = device.get_info(cl.device_info.COMPUTE_CAPABILITY_MAJOR_NV)
    return 10 * major + device.get_info(cl.device_info.COMPUTE_CAPABILITY_MINOR_NV)


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
                platform=device.platform,
                device=device.index,
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
    return folder / f"{tunables.kernel}_n{n}_{hashlib.sha256(identity).hexdigest()[:12]}.json"
