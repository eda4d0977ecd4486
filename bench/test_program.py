"""The program from outside: flags, exit codes, devices that PoCL plays, planted faults, results.

Runs build/ci/bench, or the program that the environment variable BENCH names.
"""

import json
import math
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BENCH = os.environ.get("BENCH", str(ROOT / "build/ci/bench"))
FAST = "--benchmark_min_time=0.01"
IKJ = ("--n=17", "--benchmark_filter=CPU/Ikj/")
NO_OPENCL = {"OCL_ICD_VENDORS": "/nonexistent/"}
ACCURACY = "--accuracy=SGEMM/(CPU/Packed|GPU/(Naive|Tile16))/"
CONTEXT_KEYS = """suite_version git_sha git_dirty build_type compiler cxx_flags benchmark_version
    eigen_version cpu_model isa threads launch_id cl_platform cl_device cl_device_type cl_driver
    cl_version cl_build_options cl_compute_units cl_max_clock_mhz cache seed selftest warnings"""
NAME = re.compile(r"(SGEM[MV]|Peak)/[CG]PU/[A-Z]\w+(/EndToEnd)?/n:\d+/(real|manual)_time")


def bench(*flags, env=None, **options):
    """Runs the program to its end; flags and environment as given."""
    return subprocess.run(
        [BENCH, *flags],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def rows(tmp_path, *flags, env=None):
    """The run's rows by name, and the finished process."""
    out = tmp_path / "run.json"
    done = bench(FAST, f"--benchmark_out={out}", *flags, env=env)
    found = json.loads(out.read_text())["benchmarks"] if out.exists() else []
    return {row["name"]: row for row in found}, done


def reason(row):
    return row.get("error_message") or row.get("skip_message") or ""


# Names, listing, usage


def test_listing_is_quick_and_names_follow_the_design():
    begin = time.monotonic()
    done = bench("--benchmark_list_tests")
    assert time.monotonic() - begin < 2  # 0.01 s on an idle machine; timing decides no test
    names = done.stdout.split()
    assert done.returncode == 0 and len(names) == len(set(names)) > 100
    assert [name for name in names if not NAME.fullmatch(name)] == []


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("Tile16", lambda name: "Tile16" in name),
        ("/Row/", lambda name: "/Row/" in name),
        ("SGEMM/GPU", lambda name: name.startswith("SGEMM/GPU")),
        ("n:1024(/|$)", lambda name: "/n:1024/" in name),
        ("-SGEMM", lambda name: not name.startswith("SGEMM")),
    ],
)
def test_filters_select_what_they_say(pattern, expected):
    everything = bench("--benchmark_list_tests", "--n=256,1024,10240").stdout.split()
    listed = bench("--benchmark_list_tests", "--n=256,1024,10240", f"--benchmark_filter={pattern}")
    assert listed.stdout.split() == [name for name in everything if expected(name)]


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--bogus", "--bogus"),
        ("--benchmark_bogus=1", "--benchmark_bogus"),
        ("stray", "stray"),
        ("--n=0", "--n"),
        ("--n=-1", "--n"),
        ("--n=many", "many"),
        ("--n=1000000000", "1000000000"),
        ("--n=256,x", "x"),
        ("--n=0x10", "0x10"),
        ("--n=", "--n= needs a value"),
        ("--device=", "--device= needs a value"),
        ("--threads=0", "--threads"),
        ("--cache=warm", "--cache"),
        ("--explain=Tile(", "no regular expression"),
        ("--accuracy=Tile(", "no regular expression"),
        ("--budget=-1", "no number of seconds"),
        ("--budget=nan", "no number of seconds"),
        ("--budget=inf", "no number of seconds"),
        ("--budget=1,5", "no number of seconds"),
        ("--device=nonsense", "there are:"),
        ("--kernels=/nonexistent", "/nonexistent"),
        ("--batch=0", "--batch"),
        ("--peers=libnothing.so", "libnothing.so"),
        ("--peers=libm.so.6", "no library that this suite can call"),
        ("--benchmark_filter=Tile(", "no regular expression"),
        ("--benchmark_min_time=soon", "expected seconds"),
        ("--benchmark_format=xml", "expected one of"),
        ("--benchmark_out_format=xml", "expected one of"),
        ("--benchmark_out=/nonexistent/x.json", "cannot be written"),
        ("--benchmark_out=/tmp", "is a folder"),
        ("--benchmark_repetitions=0", "whole number from 1"),
        ("--benchmark_repetitions=x", "whole number from 1"),
    ],
)
def test_bad_usage_is_one_sentence_and_code_2(flag, words):
    done = bench(flag)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == ""


def test_an_empty_value_does_not_swallow_the_next_flag():
    done = bench("--threads=", "--benchmark_list_tests")
    assert done.returncode == 2 and "--threads= needs a value" in done.stderr


def test_numbers_are_decimal():
    listed = bench("--benchmark_list_tests", "--n=010", "--benchmark_filter=CPU/Ikj/").stdout
    assert listed.split() == ["SGEMM/CPU/Ikj/n:10/real_time"]


@pytest.mark.parametrize("flag", ["--bogus", "foo", "--benchmark_bogus"])
def test_no_mode_ignores_what_it_does_not_know(flag):
    for mode in ("--list_devices", "--selftest", "--benchmark_list_tests"):
        done = bench(mode, flag)
        assert done.returncode == 2 and flag in done.stderr


def test_help_names_our_flags():
    done = bench("--help")
    assert done.returncode == 0
    assert re.search(r"--n .*\b256,512,1024,2048\b", done.stdout)
    for flag in ("--device", "--list_devices", "--n", "--threads", "--budget", "--kernels"):
        assert flag in done.stdout


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--benchmark_filter=Nope"], "--benchmark_filter=Nope matches no row;"),
        (["--explain=Nope"], "--explain=Nope matches no kernel; only a device's kernels"),
        (["--explain=CPU"], "--explain=CPU matches no kernel; only a device's kernels"),
        (["--accuracy=Nope"], "--accuracy=Nope matches no row;"),
        (
            ["--accuracy", "--benchmark_filter=Nope"],
            "--accuracy=all matches no row that --benchmark_filter=Nope lets through;",
        ),
    ],
    ids=str,
)
def test_flags_that_match_nothing_are_named_with_code_1_and_leave_no_file(tmp_path, flags, words):
    found, done = rows(tmp_path, *flags)
    assert done.returncode == 1 and words in done.stderr and done.stdout == ""
    assert list(tmp_path.iterdir()) == [] and not found
    listed = bench("--benchmark_list_tests", *flags)
    assert listed.returncode == 1 and words in listed.stderr


@pytest.mark.parametrize("form", ["0.01", "0.01s"])
def test_min_time_is_taken_in_both_forms(form):
    done = bench(f"--benchmark_min_time={form}", "--n=17", "--benchmark_filter=CPU/Ikj/")
    assert done.returncode == 0, done.stderr


# Where the results go


@pytest.mark.parametrize(
    "flag", ["--bogus", "--device=bogus", "--peers=bogus", "--selftest", "--benchmark_list_tests"]
)
def test_a_run_that_measures_nothing_leaves_no_file(tmp_path, flag):
    bench(flag, f"--benchmark_out={tmp_path / 'x.json'}")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_regular_file_is_not_replaced(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("nowhere/x.json")
    for path in (pipe, link):
        done = bench(FAST, *IKJ, f"--benchmark_out={path}")
        assert done.returncode == 2 and "is no regular file" in done.stderr
    assert pipe.is_fifo() and link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, pipe]


def test_a_link_stays_and_its_target_gets_the_results(tmp_path):
    target = tmp_path / "data" / "real.json"
    target.parent.mkdir()
    target.write_text("old")
    (tmp_path / "run.json").symlink_to("data/real.json")
    found, done = rows(tmp_path, *IKJ)
    assert done.returncode == 0 and len(found) == 1
    assert (tmp_path / "run.json").is_symlink() and "Ikj" in target.read_text()


def test_a_full_disk_is_no_result(tmp_path):
    (tmp_path / "run.json").write_text("the last result")
    (tmp_path / "run.json.partial").symlink_to("/dev/full")
    done = bench(FAST, *IKJ, f"--benchmark_out={tmp_path / 'run.json'}")
    assert done.returncode == 1 and "run.json.partial" in done.stderr
    assert (tmp_path / "run.json").read_text() == "the last result"
    for flags in (IKJ, ["--benchmark_list_tests"], ["--help"], ["--list_devices"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [BENCH, FAST, *flags], stdout=full, stderr=subprocess.PIPE, check=False
            )
        assert done.returncode == 1 and b"written to its end" in done.stderr


def test_bench_sh_runs_where_its_caller_is(tmp_path):
    clone, caller = tmp_path / "clone", tmp_path / "caller"
    program, dpkg = clone / "build/release/bench", clone / "bin/dpkg-query"
    for folder in (clone / "tools", clone / ".venv", program.parent, dpkg.parent, caller):
        folder.mkdir(parents=True)
    for name in ("bench.sh", "setup.sh", "requirements.txt"):
        shutil.copy(ROOT / "tools" / name, clone / "tools")
    shutil.copy(ROOT / "tools/requirements.txt", clone / ".venv")
    (program.parent / "build.ninja").touch()
    for tool, text in ((dpkg, "echo installed"), (dpkg.parent / "cmake", ""), (program, "pwd")):
        tool.write_text(f"#!/bin/sh\n{text}\n")
        tool.chmod(0o755)
    done = subprocess.run(
        [clone / "tools/bench.sh"],
        cwd=caller,
        env={**os.environ, "PATH": f"{dpkg.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{caller}\n"


# Results


@pytest.fixture(scope="session")
def comma(tmp_path_factory):
    """The environment of a decimal comma: a locale built here, as few systems have it."""
    folder = tmp_path_factory.mktemp("locales")
    command = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(folder / "de_DE.UTF-8")]
    subprocess.run(command, capture_output=True, check=False)
    env = {"LOCPATH": str(folder), "LC_ALL": "de_DE.UTF-8"}
    point = subprocess.check_output(["locale", "decimal_point"], env={**os.environ, **env})
    if point != b",\n":
        pytest.skip("localedef finds no sources of de_DE; install the package locales")
    return env


def test_context_counters_and_clocks(tmp_path, comma):
    found, done = rows(tmp_path, "--n=100", env=comma)
    assert done.returncode == 0, done.stdout + done.stderr
    context = json.loads((tmp_path / "run.json").read_text())["context"]
    assert [key for key in CONTEXT_KEYS.split() if not isinstance(context.get(key), str)] == []
    products = {name: row for name, row in found.items() if not name.startswith("Peak")}
    assert any(name.startswith("Peak/GPU/Copy") for name in found)
    for name, row in products.items():
        if reason(row):
            continue  # skipped: it needs another device
        flops = 2 * 100**3 if name.startswith("SGEMM") else 2 * 100**2
        size = 4 * 3 * 100**2 if name.startswith("SGEMM") else 4 * (100**2 + 200)
        seconds = row["real_time"] * 1e-6
        assert row["time_unit"] == "us" and row["iterations"] >= 1
        assert math.isclose(row["GFLOP/s"] * 1e9, flops / seconds, rel_tol=1e-9)
        assert math.isclose(row["GB/s"] * 1e9, size / seconds, rel_tol=1e-9)
        assert math.isclose(row["FLOP/byte"], flops / size, rel_tol=1e-9)
        assert row["% of roof"] > 0
        assert "launches" not in row
        on_events = "/GPU/" in name and "EndToEnd" not in name
        assert name.endswith("/manual_time" if on_events else "/real_time")


def test_explain_names_a_bound_for_every_kernel(comma):
    done = bench(FAST, "--n=128", "--explain=SGEMM/GPU/(Tile16|CachedRow)/", env=comma)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("SGEMM")]
    assert [line.split()[0] for line in lines] == ["SGEMM/GPU/CachedRow", "SGEMM/GPU/Tile16"]
    assert "512 bytes of array for each of 64 work-items" in done.stdout
    assert re.search(r"Tile16 +128 .* 2048 ", done.stdout)  # the bytes of its local memory


def test_accuracy_holds_rows_against_eigen(comma):
    done = bench(FAST, "--n=33", ACCURACY, env=comma)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("SGEMM")]
    names = ["CPU/Packed", "CPU/Eigen", "GPU/Naive", "GPU/Tile16"]
    assert [words[0] for words in lines] == [f"SGEMM/{name}" for name in names]
    assert lines[1][3::2] == ["(1.00x)"] * 4
    assert bench(ACCURACY, "--cache=cold").returncode == 2


def test_cold_caches_are_in_the_context_and_right(tmp_path):
    only = "(SGEMV/CPU/Naive|SGEMM/CPU/Ikj|SGEMM/GPU/Naive)/"
    found, done = rows(tmp_path, "--n=17,300", "--cache=cold", f"--benchmark_filter={only}")
    assert done.returncode == 0, done.stdout
    assert json.loads((tmp_path / "run.json").read_text())["context"]["cache"] == "cold"
    assert len(found) == 8
    for name, row in found.items():
        small = "choose a larger n" in reason(row)
        assert small if "/n:17/" in name else not reason(row)
    assert bench("--cache=cold", "--batch=2").returncode == 2


def test_selftest_prints_its_table_and_says_by_its_code_whether_the_clocks_agree():
    done = bench("--selftest")
    assert "host clock" in done.stdout and "wall/event" in done.stdout
    assert done.returncode == (0 if "it is\n" in done.stdout else 1)
    assert bench("--selftest", env=NO_OPENCL).returncode == 0


def test_oversubscription_is_warned_of(tmp_path):
    _, done = rows(tmp_path, "--n=17", "--threads=300", "--benchmark_filter=CPU/Ikj/")
    assert done.returncode == 0
    assert "bench: warning: 300 threads on" in done.stderr
    assert (
        "300 threads on" in json.loads((tmp_path / "run.json").read_text())["context"]["warnings"]
    )


def test_csv_survives_rows_that_were_skipped():
    done = bench(
        FAST,
        "--benchmark_format=csv",
        "--n=17,64",
        "--benchmark_filter=GPU/Tile(16|32)/n",
        env={"POCL_MAX_WORK_GROUP_SIZE": "256"},
    )
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1 + 4


def test_a_launch_far_shorter_than_its_overhead_is_bounded_and_counted_honestly(tmp_path):
    begin = time.monotonic()
    done = bench(
        "--benchmark_min_time=0.2",
        "--n=1",
        "--benchmark_filter=SGEMM/GPU/Naive/n",
        f"--benchmark_out={tmp_path / 'x.json'}",
    )
    assert done.returncode == 0 and time.monotonic() - begin < 60
    (row,) = json.loads((tmp_path / "x.json").read_text())["benchmarks"]
    # As many launches as were made, which the wall time bounds, not the millions asked for.
    assert 1 <= row["iterations"] < 3_000_000


def test_too_long_a_case_is_skipped_with_its_prediction(tmp_path):
    found, done = rows(tmp_path, "--n=64,1024", "--budget=0.05", "--benchmark_filter=CPU/NaiveIjk")
    assert done.returncode == 0
    assert "iterations" in found["SGEMM/CPU/NaiveIjk/n:64/real_time"]
    assert re.search(
        r"skipped: predicted .* from .* at n = ",
        reason(found["SGEMM/CPU/NaiveIjk/n:1024/real_time"]),
    )


def test_a_size_that_the_variant_is_not_for_predicts_nothing(tmp_path):
    found, done = rows(
        tmp_path, "--n=256", tuned(tmp_path, n=[200, None]), "--benchmark_filter=Tuned/n"
    )
    assert done.returncode == 0 and not reason(found["SGEMM/GPU/Tuned/n:256/manual_time"])


def test_operands_beyond_the_hosts_memory_are_a_skip(tmp_path):
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if memory > 100e9:
        pytest.skip("this machine holds 7 matrices of 65536 x 65536")
    flags = ["--n=65536", "--budget=0", "--benchmark_filter=CPU/Ikj/"]
    found, done = rows(tmp_path, *flags)
    text = reason(found["SGEMM/CPU/Ikj/n:65536/real_time"])
    assert done.returncode == 0 and "take 120.3 GB of the host's memory" in text


@pytest.mark.parametrize("to_file", [True, False])
def test_sigterm_leaves_no_half_result_under_the_real_name(tmp_path, to_file):
    out = tmp_path / "x.json"
    flags = [f"--benchmark_out={out}"] if to_file else []
    process = subprocess.Popen(
        [BENCH, "--benchmark_min_time=1", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert "interrupted" in stderr
    assert (f"stays in {out}.partial" in stderr) == ("partial" in stderr) == to_file
    assert [path.name for path in tmp_path.iterdir()] == ["x.json.partial"] * to_file


def test_sigterm_before_the_first_device_was_asked_says_so(tmp_path):
    vendor = tmp_path / "slow.icd"  # the loader waits for somebody to write into it
    os.mkfifo(vendor)
    process = subprocess.Popen(
        [BENCH], stderr=subprocess.PIPE, env={**os.environ, "OCL_ICD_VENDORS": f"{tmp_path}/"}
    )
    with vendor.open("wb"):  # waits for the program in its turn
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert stderr == b"\nbench: interrupted\n"


def test_progress_appears_on_a_terminal_only():
    ours, theirs = pty.openpty()
    flags = [BENCH, FAST, "--n=17", "--benchmark_filter=CPU/Ikj/"]
    subprocess.run(flags, stdout=subprocess.DEVNULL, stderr=theirs, check=True)
    os.close(theirs)
    assert "[1/1] SGEMM/CPU/Ikj/n:17/real_time" in os.read(ours, 65536).decode()
    assert "[1/1]" not in bench(*flags[1:]).stderr


def on_a_terminal(*flags, env=None):
    """What the program shows where its results go to a terminal."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", **(env or {})}
    subprocess.run(
        [BENCH, FAST, *flags], stdout=theirs, stderr=subprocess.DEVNULL, env=env, check=True
    )
    os.close(theirs)
    return os.read(ours, 65536).decode()


def test_no_color_is_respected():
    assert "\033[" in on_a_terminal(*IKJ, env={"NO_COLOR": ""})
    assert "\033[" not in on_a_terminal(*IKJ, env={"NO_COLOR": "1"})
    assert "\033[" in on_a_terminal(*IKJ, "--benchmark_color=true", env={"NO_COLOR": "1"})


def test_the_console_calls_a_skipped_row_skipped():
    flags = ("--n=17", "--benchmark_filter=GPU/Tile(16|32)/n", "--benchmark_repetitions=2")
    done = bench(FAST, *flags, env={"POCL_MAX_WORK_GROUP_SIZE": "256"})
    assert done.returncode == 0 and "ERROR" not in done.stdout
    line = r"(?m)^SGEMM/GPU/Tile32/n:17/\S+ +skipped: needs .*work-items in a work-group"
    assert re.search(line, done.stdout), done.stdout


# Devices, played by PoCL's environment


def test_without_opencl_the_cpu_rows_run(tmp_path):
    found, done = rows(tmp_path, "--n=17", env=NO_OPENCL)
    assert done.returncode == 0 and "no OpenCL device" in done.stderr
    assert found and all("/CPU/" in name for name in found)
    for flag, code in (("--list_devices", 1), ("--device=0", 2), ("--benchmark_filter=GPU", 1)):
        done = bench(flag, env=NO_OPENCL)
        assert done.returncode == code and "no platform; install pocl-opencl-icd" in done.stderr
    done = bench("--explain", env=NO_OPENCL)
    assert done.returncode == 1 and "--explain=all matches no kernel, because" in done.stderr


@pytest.mark.parametrize(
    "env", [{"POCL_DEVICES": "none"}, {"POCL_CACHE_DIR": "/proc/nowhere/kc"}], ids=str
)
def test_a_platform_without_devices_is_no_error(tmp_path, env):
    found, done = rows(tmp_path, "--n=17", "--benchmark_filter=Ikj", env=env)
    assert done.returncode == 0 and "SGEMM/CPU/Ikj/n:17/real_time" in found
    for said in (done, bench("--list_devices", env=env), bench("--device=0", env=env)):
        assert "the platform Portable Computing Language has none" in said.stderr
        assert next(iter(env)) in said.stderr and "install" not in said.stderr


def test_two_devices_of_one_name():
    env = {"POCL_DEVICES": "pthread pthread"}
    listed = bench("--list_devices", env=env)
    if len(listed.stdout.splitlines()) != 2:
        pytest.skip("this PoCL names its CPU devices otherwise")
    for wanted in ("1", "pthread", " portable COMPUTING Language / "):
        done = bench(FAST, "--n=17", "--benchmark_filter=GPU/Naive", f"--device={wanted}", env=env)
        assert done.returncode == 0, done.stderr
    assert bench("--device=2", env=env).returncode == 2


def test_a_device_is_described_as_rows_see_it():
    env = {"POCL_DEVICES": "pthread pthread", "POCL_MAX_WORK_GROUP_SIZE": "64"}
    done = bench("--describe_device", "--device=1", env=env)
    found = json.loads(done.stdout)
    assert (found["index"], found["work_group"], found["nvidia_capability"]) == (1, 64, 0)
    assert found["label"].startswith("Portable Computing Language / ")
    assert len(found["items"]) == 3 and found["local_bytes"] > 0
    assert bench("--describe_device", env=NO_OPENCL).returncode == 2
    nowhere = bench("--describe_device", "--device=nowhere")
    assert nowhere.returncode == 2 and "there are:" in nowhere.stderr


@pytest.mark.parametrize("limit", ["256", "64", "16", "1"])
def test_small_work_groups_give_rows_or_reasons(tmp_path, limit):
    found, done = rows(
        tmp_path, "--n=17", "--benchmark_filter=GPU", env={"POCL_MAX_WORK_GROUP_SIZE": limit}
    )
    assert done.returncode == 0, done.stdout
    skipped = [row for row in found.values() if reason(row)]
    # TensorCore and other rows for one vendor's GPUs say so on every other device.
    words = ("work-items in a work-group", "needs an NVIDIA GPU")
    assert [row for row in skipped if not any(word in reason(row) for word in words)] == []
    assert any("/Tile32/" in row["name"] for row in skipped)
    assert "-54" not in done.stdout


def test_buffers_beyond_the_device_are_a_skip_with_the_sizes(tmp_path):
    found, done = rows(
        tmp_path,
        "--n=9000",
        "--budget=0",
        "--peers=libclblast.so.1",
        "--benchmark_filter=GPU/(Block4x4|PeerCLBlast)/n",
        env={"POCL_MEMORY_LIMIT": "1"},
    )
    assert done.returncode == 0 and len(found) == 2
    words = r"needs a buffer of 309\.00 MiB, the device allows \d"
    assert all(re.search(words, reason(row)) for row in found.values())


def test_private_arrays_beyond_the_stack_are_a_skip():
    done = bench(
        FAST,
        "--n=4096",
        "--budget=0",
        "--benchmark_filter=CachedRow/n",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (1 << 19, 1 << 19)),
    )
    assert done.returncode == 0 and "bytes of private memory" in done.stdout


@pytest.mark.parametrize("method", ["loopvec", "loops", "repl", "cbs"])
def test_every_code_generator_of_pocl_agrees(tmp_path, method):
    # "repl" unrolls whole work-groups: the small ones are enough to see a difference.
    only = "GPU/(Base|Naive|Block4x4)/n" if method == "repl" else "GPU/.*/n"
    found, done = rows(
        tmp_path, "--n=17", f"--benchmark_filter={only}", env={"POCL_WORK_GROUP_METHOD": method}
    )
    assert done.returncode == 0, done.stdout
    assert found


# Peers: libraries loaded at run time


def test_a_gpu_peer_is_verified_and_timed_like_a_variant(tmp_path):
    flags = ["--n=17,100", "--peers=libclblast.so.1", "--benchmark_filter=CLBlast", "--batch=3"]
    found, done = rows(tmp_path, *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(found) == {
        f"SGEMM/GPU/PeerCLBlast{part}"
        for n in (17, 100)
        for part in (f"/n:{n}/manual_time", f"/EndToEnd/n:{n}/real_time")
    }
    assert not any(reason(row) for row in found.values())


def library(path, source, *flags):
    """Compiles C text to a library that --peers can load."""
    command = [os.environ.get("CC", "cc"), "-shared", "-fPIC", *flags, "-xc", "-", "-o", path]
    subprocess.run(command, input=source, text=True, check=True)
    return path


WRONG_BLAS = """
void openblas_set_num_threads(int threads) { (void)threads; }
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float* a,
                 int lda, const float* b, int ldb, float beta, float* c, int ldc) {
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) c[i * ldc + j] = 42;
}"""


def test_a_wrong_peer_fails_its_row(tmp_path):
    wrong = library(tmp_path / "wrong.so", WRONG_BLAS)
    found, done = rows(tmp_path, "--n=17", f"--peers={wrong}", "--benchmark_filter=Peer")
    assert done.returncode == 1
    assert "failed: wrong" in reason(found["SGEMM/CPU/PeerOpenBLAS/n:17/real_time"])


def test_two_peers_of_one_row_are_bad_usage_that_names_both(tmp_path):
    one, other = (library(tmp_path / f"{name}.so", WRONG_BLAS) for name in ("one", "other"))
    done = bench(f"--peers={one},{other}", "--benchmark_list_tests")
    assert done.returncode == 2 and done.stdout == ""
    assert f"{one} and {other} are both SGEMM/CPU/PeerOpenBLAS" in done.stderr


def test_a_cublas_without_a_function_is_bad_usage_that_names_it(tmp_path):
    half = library(tmp_path / "half.so", "int cublasGemmEx(void) { return 0; }")
    done = bench(f"--peers={half}", "--benchmark_list_tests")
    assert done.returncode == 2
    assert f"cannot use the peer {half}: it has no cublasCreate_v2" in done.stderr


@pytest.fixture
def cuda(tmp_path):
    """The environment in which PoCL's device seems to be NVIDIA's, and the library to name."""
    source = (ROOT / "bench/testdata/cuda_on_the_host.c").read_text()
    fake = str(library(tmp_path / "libcuda.so.1", source, "-O1", "-Wall", "-Wextra", "-Werror"))
    return {"LD_PRELOAD": fake, "LD_LIBRARY_PATH": str(tmp_path)}, f"--peers={fake}"


@pytest.mark.parametrize(
    ("devices", "bus", "chosen"), [("1", "9", 0), ("2", "7", 0), ("2", "8", 1), ("3", "9", 2)]
)
def test_cublas_runs_on_the_opencl_device(tmp_path, cuda, devices, bus, chosen):
    env = cuda[0] | {"CUDA_DEVICES": devices, "PCI_BUS": bus}
    found, done = rows(tmp_path, "--n=17,33", cuda[1], "--benchmark_filter=CuBLAS", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(found) == 8 and not any(reason(row) for row in found.values())
    assert done.stderr.count("CUDA device") == 1 and f"CUDA device {chosen}\n" in done.stderr
    assert "\n0 events left" in done.stderr


def test_an_opencl_device_that_is_none_of_cudas_is_a_skip(tmp_path, cuda):
    env = cuda[0] | {"CUDA_DEVICES": "2", "PCI_BUS": "9"}
    found, done = rows(tmp_path, "--n=17", cuda[1], "--benchmark_filter=CuBLAS", env=env)
    assert done.returncode == 0 and len(found) == 4
    words = "0 CUDA devices sit where this OpenCL device does, at 0000:09:03"
    assert all(words in reason(row) for row in found.values())


@pytest.mark.parametrize("capability", ["89", "100", "120"])
def test_instructions_of_hopper_are_a_skip_on_every_other_gpu(tmp_path, cuda, capability):
    env = cuda[0] | {"CAPABILITY": capability}
    found, done = rows(tmp_path, "--n=17", "--benchmark_filter=Wgmma.*/n", env=env)
    assert done.returncode == 0, done.stdout
    assert found and all("compute capability 9.0" in reason(row) for row in found.values())


# Planted faults: the row fails, the others run


@pytest.fixture
def kernels(tmp_path):
    return Path(shutil.copytree(ROOT / "kernels", tmp_path / "kernels"))


def plant(kernels, stem, old, new):
    path = kernels / f"{stem}.cl"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


STORE = "c[(size_t)row * ldc + col] = sum;"
TILE_LOOP = "  for (int l0 = 0; l0 < k; l0 += T) {"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TILE_LOOP, "  if (row >= m || col >= n) return;\n" + TILE_LOOP),
        (STORE, "c[(size_t)row * ldc + col] = sum + (row == 16 && col == 3);"),
        (STORE, ";"),
        (STORE, "c[(size_t)row * ldc + col] = row + col ? sum : NAN;"),
        (STORE, "c[(size_t)col * ldc + row] = sum;"),
        (STORE, STORE + " if (row == 0 && col == 0) c[-1] = 0;"),
    ],
    ids=["return before barrier", "one element", "dead", "nan", "transposed", "guard"],
)
def test_a_wrong_kernel_fails_its_row_and_no_other(tmp_path, kernels, old, new):
    plant(kernels, "sgemm_tile", old, new)
    found, done = rows(
        tmp_path, "--n=17", f"--kernels={kernels}", "--benchmark_filter=GPU/(Tile16|Naive)/n"
    )
    assert done.returncode == 1
    assert re.search("failed: w(rong|rote)", reason(found["SGEMM/GPU/Tile16/n:17/manual_time"]))
    assert not reason(found["SGEMM/GPU/Naive/n:17/manual_time"])


def test_a_kernel_that_drops_bits_fails_its_row_by_accuracy(kernels):
    # Ten bits of A: the integers of the proof are still exact.
    short = "as_float(as_uint(a[(size_t)row * lda + l]) & 0xfffffc00)"
    plant(kernels, "sgemm_naive", "a[(size_t)row * lda + l]", short)
    done = bench(FAST, "--n=33", ACCURACY, f"--kernels={kernels}")
    assert done.returncode == 1
    assert re.search("GPU/Naive/n:33/manual_time.* inexact: .* times its bound", done.stderr)
    assert "Tile16" in done.stdout and "Tile16" not in done.stderr


def test_a_syntax_error_shows_the_log_with_the_files_own_line(tmp_path, kernels):
    plant(kernels, "sgemm_tile", TILE_LOOP, "  this is no C;\n" + TILE_LOOP)
    line = (kernels / "sgemm_tile.cl").read_text().splitlines().index("  this is no C;") + 1
    found, done = rows(
        tmp_path, "--n=17", f"--kernels={kernels}", "--benchmark_filter=GPU/(Tile16|Naive)/n"
    )
    assert done.returncode == 1
    text = reason(found["SGEMM/GPU/Tile16/n:17/manual_time"])
    assert f"sgemm_tile.cl:{line}:" in text
    assert not reason(found["SGEMM/GPU/Naive/n:17/manual_time"])


def test_a_time_that_beats_the_measured_peak_is_marked(tmp_path, kernels):
    plant(kernels, "peak_fma", "r < rounds", "r < 12 * rounds")  # a peak a twelfth of the truth
    found, done = rows(
        tmp_path, "--n=256", f"--kernels={kernels}", "--benchmark_filter=GPU/(VectorPanel|Base)/n"
    )
    assert done.returncode == 0, done.stdout
    label = found["SGEMM/GPU/VectorPanel/n:256/manual_time"].get("label", "")
    assert re.match(r"suspicious: \d+ GFLOP/s is faster than the measured peak", label)
    assert "label" not in found["SGEMM/GPU/Base/n:256/manual_time"]


def test_a_missing_kernel_file_is_named(tmp_path, kernels):
    (kernels / "sgemm_tile.cl").unlink()
    found, done = rows(
        tmp_path, "--n=17", f"--kernels={kernels}", "--benchmark_filter=GPU/(Tile16|Naive)/n"
    )
    assert done.returncode == 1
    assert "sgemm_tile.cl" in reason(found["SGEMM/GPU/Tile16/n:17/manual_time"])


# The table of tuned kernels

TUNED = "--benchmark_filter=GPU/Tuned/n"


def tuned(tmp_path, **changes):
    """A table whose only entry is for every device, on disk."""
    entry = {"device": "", "n": [1, None], "kernel": "sgemm_block", "group": [8, 8]}
    entry |= {"tile": [32, 32]} | changes
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"version": 1, "entries": [entry]}))
    return f"--tuned={path}"


def test_the_tuned_row_runs_what_its_table_says(tmp_path):
    found, done = rows(tmp_path, "--n=17", tuned(tmp_path), TUNED)
    assert done.returncode == 0 and not reason(found["SGEMM/GPU/Tuned/n:17/manual_time"])
    found, done = rows(tmp_path, "--n=17", tuned(tmp_path, group=[8, 4]), TUNED)
    assert done.returncode == 1
    text = reason(found["SGEMM/GPU/Tuned/n:17/manual_time"])
    assert "TILE_N / WG_X and TILE_M / WG_Y must be the same whole number" in text
    found, done = rows(tmp_path, "--n=17", tuned(tmp_path, n=[18, None]), TUNED)
    assert done.returncode == 0
    assert "has none for" in reason(found["SGEMM/GPU/Tuned/n:17/manual_time"])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"kernel": "sgemm_tile_register", "group": [16, 16], "defines": {"TILE_K": 0}},
         "TILE_K must be at least 1"),
        ({"kernel": "sgemm_vector_panel", "group": [1, 1], "defines": {"TILE_K": 0}},
         "TILE_K and ROWS must be at least 1"),
        ({"kernel": "sgemm_tile_register_vector", "defines": {"BUFFERS": 0}}, "BUFFERS 1 or 2"),
        ({"kernel": "sgemm_tile_register_vector", "defines": {"BUFFERS": 3}}, "BUFFERS 1 or 2"),
        ({"kernel": "sgemm_tile", "group": [16, 8], "tile": [16, 16]}, "tiles are square"),
        ({"kernel": "sgemm_naive", "tile": [64, 64]}, "TILE_M must be WG_Y, TILE_N WG_X"),
        ({"group": [1, 1], "tile": [4096, 4096]}, "more than 256 sums of a work-item"),
    ],
    ids=lambda value: value.get("kernel", "sgemm_block") if isinstance(value, dict) else None,
)  # fmt: skip
def test_what_no_kernel_can_run_fails_with_its_sentence(tmp_path, changes, sentence):
    found, done = rows(tmp_path, "--n=17", tuned(tmp_path, **changes), TUNED)
    assert done.returncode == 1
    text = reason(found["SGEMM/GPU/Tuned/n:17/manual_time"])
    assert f"{changes.get('kernel', 'sgemm_block')}.cl does not build with -cl-std" in text
    assert sentence in text


def test_tuned_is_explained_by_the_kernel_it_runs(tmp_path):
    done = bench(FAST, "--n=128", tuned(tmp_path), "--explain=SGEMM/GPU/Tuned/")
    assert done.returncode == 0 and "SGEMM/GPU/Tuned (Block4x4) " in done.stdout


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"group": [8]}, "entries[0].group: expected a pair"),
        ({"defines": {"NONSENSE": 1}}, "entries[0].defines.NONSENSE: no macro of sgemm_block"),
        ({"note": 10**400}, "line 1: "),
    ],
)
def test_nonsense_in_the_table_is_bad_usage_with_its_place(tmp_path, changes, place):
    done = bench(tuned(tmp_path, **changes), "--benchmark_list_tests")
    assert done.returncode == 2
    assert f"table.json: {place}" in done.stderr
