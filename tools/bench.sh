#!/usr/bin/env bash
# Sets everything up on a Debian or Ubuntu machine, the Python environment of the other tools included,
# builds build/release/bench and runs it with the given flags: tools/bench.sh --benchmark_filter=Tile
# It runs where you are: paths among the flags are those of your folder.
caller=$PWD
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
need_packages "${BUILD_PACKAGES[@]}" "${PYTHON_PACKAGES[@]}"
need_python
need_build release bench
bench=$PWD/build/release/bench
cd "$caller"
exec "$bench" "$@"
