# shellcheck shell=bash disable=SC2034
# What bench.sh and test.sh share: install what is missing, configure, build. Sourced, not run.
# Quick when nothing is missing; needs root (or sudo) only to install Debian or Ubuntu packages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

BUILD_PACKAGES=(
  g++ cmake ninja-build git ca-certificates
  libbenchmark-dev libeigen3-dev libfmt-dev libcli11-dev libgtest-dev libhwy-dev nlohmann-json3-dev
  opencl-headers opencl-clhpp-headers ocl-icd-opencl-dev pocl-opencl-icd
)
PYTHON_PACKAGES=(python3 python3-venv)
# locales: the sources of a locale with a decimal comma, which the tests build.
TEST_PACKAGES=(clang clang-tidy libclang-rt-dev libomp-dev oclgrind shellcheck libclblast1 locales)
# For the tests of the dashboard. Ubuntu has them as snaps only: there these tests are skipped.
BROWSER_PACKAGES=(chromium chromium-driver)

say() { printf '%s\n' "$*" >&2; }

# need_packages NAME…: installs those that are not there, or says which and ends with code 2.
need_packages() {
  local missing=() name
  for name in "$@"; do
    dpkg-query -W -f='${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed ||
      missing+=("$name")
  done
  ((${#missing[@]})) || return 0
  local root=()
  if ((EUID)); then
    if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
      say "These packages are missing and installing them needs root: ${missing[*]}"
      say "Run: sudo apt-get install ${missing[*]}"
      exit 2
    fi
    root=(sudo)
  fi
  say "Installing ${missing[*]}"
  "${root[@]}" apt-get -qq update
  DEBIAN_FRONTEND=noninteractive "${root[@]}" apt-get -qq install -y --no-install-recommends \
    "${missing[@]}" >/dev/null
}

# known_packages NAME…: does this distribution have all of them?
known_packages() {
  local name
  for name in "$@"; do apt-cache show "$name" >/dev/null 2>&1 || return 1; done
}

# need_build PRESET TARGET…: configures once, builds what changed; silent unless it fails.
need_build() {
  local preset=$1 folder=build/$1 log
  shift
  log=$(mktemp)
  if ! {
    { [[ -f $folder/build.ninja ]] || cmake --preset "$preset" -G Ninja; } &&
      cmake --build "$folder" --target "$@"
  } >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    say "The build in $folder failed; the messages are above."
    exit 2
  fi
  rm -f "$log"
}

# need_python: the tools' environment in .venv, made anew when the list of packages changed.
need_python() {
  local stamp=.venv/requirements.txt
  cmp -s tools/requirements.txt "$stamp" && return 0
  say "Setting up the Python environment in .venv"
  python3 -m venv .venv
  .venv/bin/python -m pip install -q --disable-pip-version-check -r tools/requirements.txt
  cp tools/requirements.txt "$stamp"
}
