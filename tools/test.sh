#!/usr/bin/env bash
# Sets everything up and runs all tests: the C++ and OpenCL checks, the same under sanitizers, lint,
# and the Python tests. tools/test.sh --fast leaves out sanitizers, Oclgrind and slow shapes.
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
need_packages "${BUILD_PACKAGES[@]}" "${PYTHON_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
if known_packages "${BROWSER_PACKAGES[@]}"; then need_packages "${BROWSER_PACKAGES[@]}"; fi
need_python
export PATH="$PWD/.venv/bin:$PATH"

failed=0
need_build ci all
if [[ ${1:-} == --fast ]]; then
  ctest --preset ci -LE 'slow|lint' || failed=1
else
  need_build debug check
  ctest --preset debug -LE 'slow|lint' || failed=1
  need_build tsan races
  ctest --preset tsan -R '^races$' || failed=1
  ctest --preset ci || failed=1
fi
.venv/bin/python -m pytest -q bench tools || failed=1
exit "$failed"
