"""The floors of the architecture: which folder may include what, and the fixed top level."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'#include\s+[<"]([^">]+)')
FORBIDDEN = {"cpu": r"^(gpu/|bench/|CL/|benchmark/)", "gpu": r"^(cpu/|bench/|Eigen/|benchmark/)"}
TOP = {
    "CMakeLists.txt",
    "CMakePresets.json",
    "README.md",
    "bench",
    "cpu",
    "gpu",
    "kernels",
    "results",
    "tools",
}


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_arrows_go_down_only(folder):
    for path in (ROOT / folder).glob("*.[ch]pp"):
        for name in INCLUDE.findall(path.read_text()):
            assert not re.search(FORBIDDEN[folder], name), f"{path.name} includes {name}"


def test_kernels_include_nothing_and_are_named_after_their_function():
    for path in (ROOT / "kernels").glob("*.cl"):
        text = path.read_text()
        assert not INCLUDE.search(text), path.name
        assert re.search(rf"\b{path.stem}\(", text), path.name


def test_top_level_is_the_customers():
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    top = {name.split("/")[0] for name in tracked if name and not name.startswith(".")}
    assert top <= TOP
