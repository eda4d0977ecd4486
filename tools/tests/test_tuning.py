"""tune.py: what kernel files say, the merge of the table, and a real search on a small kernel."""

import itertools
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchkit import tunables, tuned_table
from benchkit.errors import UserError
from benchkit.tunables import Limits, Tunables

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
TUNED = [path for path in sorted(KERNELS.glob("*.cl")) if "// tune:" in path.read_text()]
LIMITS = Limits(256, (256, 256, 64), 1 << 15)

SMALL = """#ifndef TILE_M
#define TILE_M 8  // tune: 4 8
#endif
#ifndef WG_X
#define WG_X (2 * TILE_M)
#endif
#ifndef WG_Y
#define WG_Y 1  // one row
#endif
#define HALF (TILE_M / 2)
#define LOCAL_BYTES (4 * HALF * WG_X)
#if HALF % 4 != 0 && !(WG_X < 9)
#error "half a tile must be whole"
#endif
"""


def configurations(kernel: Tunables) -> list[dict[str, int]]:
    combinations = itertools.product(*kernel.values.values())
    return [dict(zip(kernel.values, some, strict=True)) for some in combinations]


def test_values_are_those_listed_or_the_default():
    kernel = Tunables("small", SMALL)
    assert kernel.values == {"TILE_M": (4, 8), "WG_X": (16,), "WG_Y": (1,)}
    assert kernel.local_bytes({"TILE_M": 8, "WG_X": 16, "WG_Y": 1}) == 256


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"TILE_M": 8, "WG_X": 16, "WG_Y": 1}, ""),
        ({"TILE_M": 4, "WG_X": 16, "WG_Y": 1}, "half a tile must be whole"),
        ({"TILE_M": 4, "WG_X": 8, "WG_Y": 1}, ""),
        ({"TILE_M": 8, "WG_X": 16, "WG_Y": 17}, "needs 272 work-items in a work-group"),
        ({"TILE_M": 8, "WG_X": 1, "WG_Y": 300}, "needs 300 work-items in a work-group"),
        ({"TILE_M": 8192, "WG_X": 16, "WG_Y": 1}, "needs 262144 bytes of local memory"),
    ],
)
def test_constraints_and_limits(config, expected):
    found = Tunables("small", SMALL).obstacle(config, LIMITS)
    assert found.startswith(expected) and bool(found) == bool(expected)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("4 8", "4 x", "small.cl:2: tune: expects whole numbers"),
        ("HALF % 4 != 0", "WIDTH % 4 != 0", "small.cl:12: WIDTH is no macro of this file"),
        ("HALF % 4 != 0", "(HALF % 4", "small.cl:12: cannot read the expression"),
        ("HALF % 4 != 0", "1 < HALF < 4", "small.cl:12: cannot compute the expression"),
        ("HALF % 4 != 0", "defined(HALF)", "small.cl:12: cannot compute the expression"),
    ],
)
def test_what_cannot_be_understood_is_named_by_line(old, new, said):
    kernel = Tunables("small", SMALL.replace(old, new))
    with pytest.raises(UserError, match=said.replace("(", r"\(")):
        kernel.obstacle({name: values[0] for name, values in kernel.values.items()})


def test_division_by_zero_is_refused_as_the_compiler_does():
    kernel = Tunables("small", SMALL.replace("HALF % 4 != 0", "8 % (TILE_M / 16) == 0"))
    assert "division by zero" in kernel.obstacle({"TILE_M": 8, "WG_X": 16, "WG_Y": 1})


@pytest.mark.skipif(not shutil.which("clang"), reason="needs clang")
@pytest.mark.parametrize("path", TUNED, ids=lambda path: path.stem)
def test_the_compiler_accepts_and_refuses_the_same(path):
    kernel = tunables.read(path)
    chosen = configurations(kernel)
    random.Random(1).shuffle(chosen)
    good = [config for config in chosen if not kernel.obstacle(config)][:8]
    bad = [config for config in chosen if kernel.obstacle(config)][:8]
    assert len(good) == len(bad) == 8
    for config in good + bad:
        defines = [f"-D{name}={value}" for name, value in config.items()]
        command = ["clang", "-E", "-x", "cl", "-cl-std=CL1.2", *defines, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = kernel.obstacle(config)
        assert (done.returncode == 0) == (not said), (config, done.stderr)
        assert not said or f'"{said}"' in done.stderr or "division by zero" in done.stderr


def test_ranges_meet_between_sizes():
    assert tuned_table.ranges([1024]) == {1024: (724, 1448)}
    assert tuned_table.ranges([1024, 512]) == {512: (362, 724), 1024: (725, 1448)}
    assert tuned_table.ranges([1]) == {1: (1, 1)}


def row(n: list, device: str = "D", **more: object) -> dict:
    return {"device": device, "n": n, "kernel": "k", "note": "old", **more}


def new(n: list) -> dict:
    config = {"TILE_M": 8, "TILE_N": 4, "WG_X": 2, "WG_Y": 1, "ROWS": 4}
    return tuned_table.entry(SimpleNamespace(label="D", capability=0), n, "k", config, "new")


@pytest.mark.parametrize(
    ("old", "left"),
    [
        ([1, None], [[1, 9], [21, None]]),
        ([1, 5], [[1, 5]]),
        ([5, 15], [[5, 9]]),
        ([15, 25], [[21, 25]]),
        ([12, 14], []),
        ([10, 20], []),
        ([25, None], [[25, None]]),
        ([21, 21], [[21, 21]]),
    ],
)
def test_a_new_entry_takes_its_sizes_and_no_more(old, left):
    others = [row(old, "E"), row(old, type="CPU"), row(old, nvidia_capability=90)]
    table = {"version": 1, "entries": [*others, row(old)]}
    entries = tuned_table.merged(table, new([10, 20]))["entries"]
    assert entries[:3] == others and entries[-1]["n"] == [10, 20]
    assert [entry["n"] for entry in entries[3:-1]] == left
    assert all(entry["note"] == "old" for entry in entries[3:-1])


def test_an_entry_holds_the_configuration():
    assert new([1, 2]) == {
        "device": "D", "n": [1, 2], "kernel": "k", "group": [2, 1], "tile": [8, 4],
        "defines": {"ROWS": 4}, "note": "new",
    }  # fmt: skip


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "tuned.json"
    table = {"version": 1, "entries": [row([1, None]), new([3, 4])]}
    tuned_table.write(table, path)
    assert tuned_table.read(path) == table
    assert [path.name for path in tmp_path.iterdir()] == ["tuned.json"]


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 2, "entries": []}', '{"version": 1}'])
def test_a_broken_table_is_left_alone(tmp_path, text):
    path = tmp_path / "tuned.json"
    path.write_text(text)
    with pytest.raises(UserError, match=r"tuned\.json"):
        tuned_table.read(path)
    assert path.read_text() == text


def test_an_entry_without_sizes_is_shown():
    table = {"version": 1, "entries": [row("all")]}
    with pytest.raises(UserError, match="has no usable n"):
        tuned_table.merged(table, new([1, 2]))


@pytest.fixture
def tuning():
    """The search; skips where there is no device to search on."""
    pytest.importorskip("pyopencl")
    pytest.importorskip("kernel_tuner")
    from benchkit import tuning

    try:
        tuning.choose_device("")
    except UserError as none:
        pytest.skip(str(none))
    return tuning


def small_panel() -> Tunables:
    text = (KERNELS / "sgemm_vector_panel.cl").read_text()
    for values in ("32 48 64 96 120 128 192 240 256", "64 128 256 512", "4 6 8 10 12"):
        assert values in text
    text = text.replace("32 48 64 96 120 128 192 240 256", "32 36").replace("4 6 8 10 12", "8")
    return Tunables("sgemm_vector_panel", text.replace("64 128 256 512", "64 128"))


def test_a_search_finds_a_winner_and_resumes(tuning, tmp_path):
    device = tuning.choose_device("")
    search = tuning.Search("random_sample", 60, tmp_path)
    winner, second = tuning.tune(small_panel(), device, 64, search)
    assert winner.milliseconds <= second.milliseconds
    assert winner.config["TILE_M"] == 32 and winner.config["TILE_K"] in (64, 128)
    assert winner.milliseconds > 0
    (cache,) = tmp_path.glob("*.json")
    seen = cache.read_text()
    assert len(json.loads(seen)["cache"]) == 2  # 36 rows are no multiple of 8
    assert tuning.tune(small_panel(), device, 64, search) == [winner, second]
    assert cache.read_text() == seen  # nothing was measured again


def test_a_wrong_product_never_wins(tuning, tmp_path):
    kernel = small_panel()
    broken = kernel.text.replace("vstore16(sums[i][0], 0, to)", "vstore16(sums[i][1], 0, to)")
    assert broken != kernel.text
    search = tuning.Search("random_sample", 60, tmp_path)
    with pytest.raises(UserError, match="computes a wrong product"):
        tuning.tune(Tunables(kernel.kernel, broken), tuning.choose_device(""), 64, search)
    assert not list(Path.cwd().glob("temp_*.c"))


def test_an_unknown_device_is_named(tuning):
    with pytest.raises(UserError, match="no device is called 'Abacus'; there are: "):
        tuning.choose_device("Abacus")


def test_an_entry_for_an_nvidia_gpu_names_its_capability():
    gpu = SimpleNamespace(label="NVIDIA CUDA / NVIDIA H200", capability=90)
    config = {"WG_X": 128, "WG_Y": 1, "TILE_M": 64, "TILE_N": 128, "STAGES": 2}
    row = tuned_table.entry(gpu, [513, None], "sgemm_tile_register_async", config, "")
    assert (row["device"], row["nvidia_capability"]) == (gpu.label, 90)


def test_a_kernel_in_ptx_is_for_nvidia_alone(tuning):
    tune = Path(__file__).resolve().parents[1] / "tune.py"
    command = [tune, "--kernels", "sgemm_tile_register_async", "--bench", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "sgemm_tile_register_async needs an NVIDIA GPU, this is " in done.stderr


def test_local_bytes_are_those_of_the_built_kernel(tuning):
    import pyopencl as cl

    device = tuning.choose_device("")
    handle = cl.get_platforms()[device.platform].get_devices()[device.index]
    for path in TUNED:
        kernel = tunables.read(path)
        if kernel.nvidia:
            continue
        default = {name: kernel._value(name, {}) for name in kernel.values}
        program = cl.Program(cl.Context([handle]), kernel.text).build(["-cl-std=CL1.2"])
        built = getattr(program, path.stem).get_work_group_info(
            cl.kernel_work_group_info.LOCAL_MEM_SIZE, handle
        )
        assert kernel.local_bytes(default) == built, path.stem


BENCH = """#!{python}
import json, sys
flags = dict(arg.lstrip("-").split("=", 1) for arg in sys.argv[1:])
tuned = "tuned at" in open(flags["tuned"]).read()
rows = [dict(run_type="iteration", real_time={after} if tuned else 10.0)]
json.dump(dict(benchmarks=rows), open(flags["benchmark_out"], "w"))
"""


@pytest.mark.parametrize(("after", "adopted"), [(5.0, True), (10.0, False), (20.0, False)])
def test_only_what_bench_finds_faster_stays(tuning, tmp_path, monkeypatch, after, adopted):
    import tune

    bench, table = tmp_path / "bench", tmp_path / "tuned.json"
    bench.write_text(BENCH.format(python=sys.executable, after=after))
    bench.chmod(0o755)
    tuned_table.write({"version": 1, "entries": [row([1, None])]}, table)
    before = table.read_text()
    config = {"TILE_M": 32, "TILE_N": 32, "TILE_K": 64, "WG_X": 1, "WG_Y": 1, "ROWS": 8}
    winner = tuning.Winner("sgemm_vector_panel", config, 2)
    monkeypatch.setattr(tuning, "tune", lambda *_: [winner])
    arguments = ["--kernels", "sgemm_vector_panel", "--bench", str(bench), "--table", str(table)]
    assert tune.main(arguments) == 0
    assert (table.read_text() != before) == adopted
    entries = tuned_table.read(table)["entries"]
    assert len(entries) == 1 + adopted and entries[0] == row([1, None])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--bench", "nowhere"], "nowhere is not there to compare with"),
        (["--bench", "/bin/true", "--kernels", "sgemm_magic"], "no tunable kernel; there are: "),
        (["--bench", "/bin/true", "--table", "none.json"], "cannot read the table none.json"),
    ],
)
def test_bad_usage_is_said_before_any_search(tuning, arguments, said):
    import tune

    with pytest.raises(UserError, match=said):
        tune.main(arguments)
