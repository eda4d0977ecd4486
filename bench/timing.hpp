// How a row is timed: repeated runs by the device's clock or the host's, and the warm-up before.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <string>

namespace bench {

/// One run, blocking; the seconds of one product by the device's clock, 0 where it has none.
using Run = std::function<double()>;

/// Seconds of one product, and what speaks against them: a label, empty if nothing does.
struct Timed {
  double seconds = 0;
  std::string doubt;
};

/// Runs until caches, clocks and compilers have settled. Mean wall time of a run in seconds.
double warm_up(const Run& run);

/// By the device's clock, `batch` products a run, in a wall time bounded by a few `min_time`.
Timed time_kernel(benchmark::State& state, const Run& run, int batch, double min_time);

/// By the host's clock.
Timed time_host(benchmark::State& state, const Run& run);

}  // namespace bench
