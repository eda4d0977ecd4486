"""tune.py: what kernel files say, the merge of the table, and a real search on a small kernel."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchkit import measuring, tunables, tuned_table
from benchkit.errors import UserError
from benchkit.tunables import Limits, Tunables

ROOT = Path(__file__).resolve().parents[2]
BENCH = Path(os.environ.get("BENCH", ROOT / "build/ci/bench"))
KERNELS = ROOT / "kernels"
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


def test_a_macro_may_choose():
    text = "#define LOCAL_BYTES (4 * MOST)\n#define MOST (TILE_M > 3 ? TILE_M : 3)\n"
    kernel = Tunables("small", "#ifndef TILE_M\n#define TILE_M 8\n#endif\n" + text)
    assert [kernel.local_bytes({"TILE_M": tile}) for tile in (2, 3, 5)] == [12, 12, 20]


def test_what_bench_runs_on_a_h200_is_in_its_search_space():
    """TileRegisterAsyncLarge: 49664 bytes, beyond what the driver answers to the query."""
    config = {"TILE_M": 128, "TILE_N": 256, "TILE_K": 8, "WARP_M": 64, "WARP_N": 64}
    config |= {"LANES_M": 4, "STAGES": 4, "WG_X": 256, "WG_Y": 1}
    kernel = tunables.read(KERNELS / "sgemm_tile_register_async.cl")
    assert kernel.local_bytes(config) == 49664
    assert kernel.obstacle(config, Limits(1024, (1024, 1024, 64), 227 << 10)) == ""
    assert "49664 bytes" in kernel.obstacle(config, Limits(1024, (1024, 1024, 64), 48 << 10))


def test_the_tables_own_entries_are_in_the_search_space():
    for entry in tuned_table.read(ROOT / "gpu" / "tuned.json")["entries"]:
        kernel = tunables.read(KERNELS / f"{entry['kernel']}.cl")
        config = dict(zip(tuned_table.GEOMETRY, entry["group"] + entry["tile"], strict=True))
        config |= entry.get("defines", {})
        defaults = {name: kernel._value(name, config) for name in kernel.values}
        assert defaults | config in kernel.configurations(), entry
        assert kernel.obstacle(defaults | config) == "", entry


def test_division_by_zero_is_refused_as_the_compiler_does():
    kernel = Tunables("small", SMALL.replace("HALF % 4 != 0", "8 % (TILE_M / 16) == 0"))
    assert "division by zero" in kernel.obstacle({"TILE_M": 8, "WG_X": 16, "WG_Y": 1})


@pytest.mark.skipif(not shutil.which("clang"), reason="needs clang")
@pytest.mark.parametrize("path", TUNED, ids=lambda path: path.stem)
def test_the_compiler_accepts_and_refuses_the_same(path):
    kernel = tunables.read(path)
    chosen = kernel.configurations()
    random.Random(1).shuffle(chosen)
    good = [config for config in chosen if not kernel.obstacle(config)][:8]
    bad = [config for config in chosen if kernel.obstacle(config)][:8]
    assert len(good) == len(bad) == 8
    for config in good + bad:
        done = _preprocess(path, config)
        said = kernel.obstacle(config)
        assert (done.returncode == 0) == (not said), (config, done.stderr)
        assert not said or f'"{said}"' in done.stderr or "division by zero" in done.stderr


PRODUCTS = sorted(KERNELS.glob("sgem[mv]_*.cl"))
ZERO = [(path.stem, {name: 0}) for path in PRODUCTS for name in set(
    re.findall(r"^#ifndef (\w+)", path.read_text(), re.M)) - {*tuned_table.GEOMETRY, "TRANSPOSED"}
]  # fmt: skip
WRONG = [
    ("sgemm_base", {"TILE_M": 32}), ("sgemm_naive", {"TILE_M": 64, "TILE_N": 64}),
    ("sgemm_row", {"WG_Y": 2}), ("sgemm_cached_row", {"TILE_M": 1}),
    ("sgemm_tile", {"WG_X": 16, "WG_Y": 8}), ("sgemm_tile", {"TILE_M": 32}),
    ("sgemm_block", {"WG_Y": 4}), ("sgemm_block", {"TILE_M": 256, "TILE_N": 256}),
    ("sgemm_tile_register_vector", {"TRANSPOSED": 2}),
    ("sgemm_tile_register_vector", {"BUFFERS": 3}),
    ("sgemm_tile_register_warp", {"LANES_M": 3}), ("sgemm_tile_register_async", {"LANES_M": 64}),
    ("sgemm_tile_register_sliced", {"WG_X": 64}), ("sgemm_tile_register_sliced", {"STAGES": 1}),
    ("sgemm_tile_register_sliced", {"SLICES": 3}), ("sgemm_tile_register_sliced", {"WG_Y": 2}),
    ("sgemm_tensor_core_tf32", {"WARP_M": 8}), ("sgemm_tensor_core_tf32", {"STAGES": 1}),
    ("sgemm_tensor_core_3xtf32", {"TILE_K": 8, "SLICES": 2}),
    ("sgemm_tensor_core_3xtf32", {"TILE_M": 48}), ("sgemm_tensor_core_3xtf32", {"WG_Y": 2}),
    ("sgemm_tensor_core_3xtf32_wgmma", {"TILE_M": 256}),
    ("sgemm_tensor_core_3xtf32_wgmma", {"TILE_M": 32, "TILE_N": 256}),
    ("sgemm_tensor_core_3xtf32_wgmma", {"STAGES": 2}),
    ("sgemm_tensor_core_tf32_wgmma", {"TILE_M": 32}),
    ("sgemm_tensor_core_tf32_wgmma", {"TILE_N": 96}),
    ("sgemm_tensor_core_tf32_wgmma_ring", {"TILE_N": 192}),
    ("sgemm_tensor_core_tf32_wgmma_ring", {"WG_X": 256}),
    ("sgemm_tensor_core_3xtf32_wgmma_ring", {"TILE_N": 256}),
    ("sgemm_tensor_core_3xtf32_wgmma_ring", {"STAGES": 5}),
    ("sgemm_tensor_core_3xtf32_wgmma_ring", {"TILE_M": 32, "TILE_N": 128, "SLICES": 4}),
    ("sgemm_tensor_core_3xtf32_wgmma_ring", {"TILE_N": 64, "SLICES": 3, "STAGES": 3}),
    ("sgemv_naive", {"TILE_M": 32}), ("sgemv_reduce", {"WG_X": 96}), ("sgemv_vector", {"WG_X": 96}),
    ("sgemv_stream", {"WG_X": 96}),
]  # fmt: skip


@pytest.mark.skipif(not shutil.which("clang"), reason="needs clang")
@pytest.mark.parametrize(("stem", "config"), ZERO + WRONG, ids=str)
def test_what_a_kernel_cannot_do_is_refused_in_a_sentence(stem, config):
    path = KERNELS / f"{stem}.cl"
    done = _preprocess(path, config)
    assert done.returncode != 0
    assert any(f"error: {said}" in done.stderr for said in _sentences(path)), done.stderr


def _preprocess(path: Path, config: dict[str, int]) -> subprocess.CompletedProcess:
    defines = [f"-D{name}={value}" for name, value in config.items()]
    command = ["clang", "-E", "-x", "cl", "-cl-std=CL1.2", *defines, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _sentences(path: Path) -> list[str]:
    return re.findall(r"^#error (.+)$", path.read_text(), re.M)


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
    """The search; skips where its packages are not."""
    pytest.importorskip("pyopencl")
    pytest.importorskip("kernel_tuner")
    from benchkit import tuning

    return tuning


@pytest.fixture
def bench(tuning):
    """The real one on its default device; skips where there is neither."""
    try:
        return measuring.find(BENCH, "")
    except UserError as none:
        pytest.skip(str(none))


def small_panel() -> Tunables:
    text = (KERNELS / "sgemm_vector_panel.cl").read_text()
    for values in ("32 48 64 96 120 128 192 240 256", "64 128 256 512", "4 6 8 10 12"):
        assert values in text
    text = text.replace("32 48 64 96 120 128 192 240 256", "32 36").replace("4 6 8 10 12", "8")
    return Tunables("sgemm_vector_panel", text.replace("64 128 256 512", "64 128"))


def test_a_search_finds_a_winner_and_resumes(tuning, bench, tmp_path):
    device = bench.device
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


@pytest.mark.parametrize("left", [0.7, 0.0, None], ids=["truncated", "empty", "garbage"])
def test_a_broken_record_is_set_aside(tuning, bench, tmp_path, capsys, left):
    search = tuning.Search("random_sample", 60, tmp_path)
    tuning.tune(small_panel(), bench.device, 64, search)
    (cache,) = tmp_path.glob("*.json")
    whole = cache.read_text()
    broken = "[1, 2]" if left is None else whole[: int(left * len(whole))]
    cache.write_text(broken)
    assert len(tuning.tune(small_panel(), bench.device, 64, search)) == 2
    assert cache.with_suffix(".broken").read_text() == broken
    assert f"{cache} is no whole record of a search" in capsys.readouterr().err
    assert len(json.loads(cache.read_text())["cache"]) == 2


def test_bench_itself_searches_what_kernel_tuner_cannot_build(tuning, bench):
    kernel = small_panel()
    assert not kernel.retargeted
    winner, second = tuning.tune_by_bench(kernel, bench, 64, 60)
    assert 0 < winner.milliseconds <= second.milliseconds
    assert {each.config["TILE_K"] for each in (winner, second)} == {64, 128}
    assert all(each.config["TILE_M"] == 32 for each in (winner, second))
    unknown = Tunables(kernel.kernel, kernel.text.replace("ROWS", "LINES"))
    assert tuning.tune_by_bench(unknown, bench, 64, 60) == []  # bench refuses its table


def test_kernels_of_marked_instructions_are_left_to_bench(tuning, monkeypatch):
    import tune

    ring = tunables.read(KERNELS / "sgemm_tensor_core_3xtf32_wgmma_ring.cl")
    assert ring.capability == 90 and not small_panel().retargeted
    monkeypatch.setattr(tuning, "tune_by_bench", lambda kernel, *_: [tuning.Winner(kernel, {}, 1)])
    assert tune._search(None, [ring], None, 64, 1)[0].kernel is ring


def test_a_wrong_product_never_wins(tuning, bench, tmp_path):
    kernel = small_panel()
    broken = kernel.text.replace("vstore16(sums[i][0], 0, to)", "vstore16(sums[i][1], 0, to)")
    assert broken != kernel.text
    search = tuning.Search("random_sample", 60, tmp_path)
    with pytest.raises(UserError, match="computes a wrong product"):
        tuning.tune(Tunables(kernel.kernel, broken), bench.device, 64, search)
    assert not list(Path.cwd().glob("temp_*.c"))


def test_an_unknown_device_is_named(bench):
    with pytest.raises(UserError, match='no OpenCL device matches "Abacus"; there are:'):
        measuring.find(BENCH, "Abacus")


def test_an_entry_for_an_nvidia_gpu_names_its_capability():
    gpu = SimpleNamespace(label="NVIDIA CUDA / NVIDIA H200", capability=90)
    config = {"WG_X": 128, "WG_Y": 1, "TILE_M": 64, "TILE_N": 128, "STAGES": 2}
    row = tuned_table.entry(gpu, [513, None], "sgemm_tile_register_async", config, "")
    assert (row["device"], row["nvidia_capability"]) == (gpu.label, 90)


def test_a_kernel_in_ptx_is_for_nvidia_alone(bench):
    command = [ROOT / "tools/tune.py", "--kernels", "sgemm_tile_register_async", "--bench", BENCH]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    said = "sgemm_tile_register_async needs an NVIDIA GPU of compute capability 8.0, this is "
    assert said in done.stderr


def test_local_bytes_are_those_of_the_built_kernel(tuning, bench):
    import pyopencl as cl

    platform, number = tuning._place(bench.device)
    handle = cl.get_platforms()[platform].get_devices()[number]
    for path in TUNED:
        kernel = tunables.read(path)
        if kernel.capability:
            continue
        default = {name: kernel._value(name, {}) for name in kernel.values}
        program = cl.Program(cl.Context([handle]), kernel.text).build(["-cl-std=CL1.2"])
        built = getattr(program, path.stem).get_work_group_info(
            cl.kernel_work_group_info.LOCAL_MEM_SIZE, handle
        )
        assert kernel.local_bytes(default) == built, path.stem


FAKE = """#!{python}
import json, sys
flags = dict(arg.lstrip("-").partition("=")[::2] for arg in sys.argv[1:])
print(flags.get("device"), file=open({folder!r} + "/devices", "a"))
if "describe_device" in flags:
    print(json.dumps(dict(index=1, label="D", nvidia_capability=0, work_group=1, items=[1, 1, 1],
                          local_bytes=65536)))
    sys.exit()
tuned = "tuned at" in open(flags["tuned"]).read()
row = dict(run_type="iteration", real_time={after} if tuned else 10.0)
if not tuned and {before!r}:
    row.update(error_occurred=True, error_message={before!r})
json.dump(dict(benchmarks=[row]), open(flags["benchmark_out"], "w"))
"""


@pytest.fixture
def tune(tuning, tmp_path, monkeypatch):
    """tune.py in a folder with a table and a program `bench` of these times; the search is done."""
    import tune

    others = row([1, None], "E")
    tuned_table.write({"version": 1, "entries": [others]}, tmp_path / "tuned.json")
    config = {"TILE_M": 32, "TILE_N": 32, "TILE_K": 64, "WG_X": 1, "WG_Y": 1, "ROWS": 8}
    searches = []
    winner = tuning.Winner("sgemm_vector_panel", config, 2)
    monkeypatch.setattr(tuning, "tune", lambda *_: searches.append(1) or [winner])
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, after: float = 5.0, before: str = "") -> int:
        text = FAKE.format(python=sys.executable, after=after, before=before, folder=str(tmp_path))
        Path("bench").write_text(text)
        Path("bench").chmod(0o755)
        wanted = ["--kernels", "sgemm_vector_panel", "--table", "tuned.json", "--bench", "./bench"]
        return tune.main([*wanted, *arguments])

    run.searches = searches
    return run


@pytest.mark.parametrize(("after", "adopted"), [(5.0, True), (10.0, False), (20.0, False)])
def test_only_what_bench_finds_faster_stays(tune, after, adopted):
    before = Path("tuned.json").read_text()
    assert tune("--device=1", after=after) == 0
    assert (Path("tuned.json").read_text() != before) == adopted
    entries = tuned_table.read(Path("tuned.json"))["entries"]
    assert len(entries) == 1 + adopted and entries[0] == row([1, None], "E")
    assert set(Path("devices").read_text().split()) == {
        "1"
    }  # not the label: it may be two devices'


def test_a_device_without_a_choice_takes_the_first_finalist(tune):
    none = "skipped: the table of tuned kernels has none for D at n = 1024"
    assert tune(before=none) == 0
    assert len(tuned_table.read(Path("tuned.json"))["entries"]) == 2


def test_what_bench_cannot_measure_is_said_before_the_search(tune):
    with pytest.raises(UserError, match="at n = 1024: failed: wrong result"):
        tune(before="failed: wrong result")
    assert not tune.searches


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--bench", "nowhere"], "nowhere is not there to compare with"),
        (["--bench", "tuned.json"], "tuned.json is no program that can be run"),
        (["--bench", "/bin/true"], "it is not this suite's bench"),
        (["--kernels", "sgemm_magic"], "no tunable kernel; there are: "),
        (["--table", "none.json"], "cannot read the table none.json"),
    ],
)
def test_bad_usage_is_said_before_any_search(tune, arguments, said):
    with pytest.raises(UserError, match=said):
        tune(*arguments)
    assert not tune.searches


def test_an_unknown_strategy_is_bad_usage(tune, capsys):
    with pytest.raises(SystemExit, match="2"):
        tune("--strategy", "nonsense")
    assert "'random_sample'" in capsys.readouterr().err and not tune.searches
