// Loops around the runs; see the header.
#include "bench/timing.hpp"

#include "bench/reporting.hpp"
#include "gpu/event_time.hpp"

#include <algorithm>
#include <chrono>

namespace bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWarmUpSeconds = 0.02;
// Below this the overhead of a launch fills the wall time, which then says nothing of the event.
constexpr double kWallCheckNs = 1e6;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

double warm_up(const Run& run) {
  const auto begin = Clock::now();
  double runs = 0;
  do {
    run();
    ++runs;
  } while (seconds_since(begin) < kWarmUpSeconds);
  return seconds_since(begin) / runs;
}

// The library counts a row's time by the event clock alone, so a launch that is far shorter than
// its overhead would be repeated for minutes. Once the wall time of this call is used up, the
// remaining iterations are credited with the mean of those that ran, and the counter tells the
// reporter how many did: mean and iterations in the results are those of real launches.
Timed time_kernel(benchmark::State& state, const Run& run, int batch, double min_time) {
  const double most_wall = std::max(1.0, 5 * min_time);
  const auto begin = Clock::now();
  benchmark::IterationCount launches = 0;
  benchmark::IterationCount credited = 1;  // iterations that the next turn of the loop stands for
  double sum = 0;
  double wall = 0;
  while (state.KeepRunningBatch(credited)) {
    if (credited > 1) {
      state.SetIterationTime(sum / static_cast<double>(launches) * static_cast<double>(credited));
      continue;
    }
    const double time = run();
    sum += time;
    ++launches;
    state.SetIterationTime(time);
    wall = seconds_since(begin);
    if (wall > most_wall)
      credited = std::max<benchmark::IterationCount>(state.max_iterations - launches, 1);
  }
  const auto count = static_cast<double>(launches);
  state.counters[kLaunches] = count;
  const double wall_ns = wall / count / batch * 1e9;
  const std::string why =
      gpu::doubt(sum / count * 1e9, {.wall_ns = wall_ns > kWallCheckNs ? wall_ns : 0});
  return {sum / count, why.empty() ? "" : "suspicious: " + why};
}

Timed time_host(benchmark::State& state, const Run& run) {
  const auto begin = Clock::now();
  benchmark::IterationCount runs = 0;
  while (state.KeepRunning()) {
    run();
    benchmark::ClobberMemory();
    ++runs;
  }
  return {seconds_since(begin) / static_cast<double>(std::max<benchmark::IterationCount>(runs, 1)),
          ""};
}

}  // namespace bench
