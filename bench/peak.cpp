// Registration of the measured ceilings; see the header.
#include "bench/peak.hpp"

#include "bench/reporting.hpp"
#include "cpu/caches.hpp"
#include "cpu/peak.hpp"

#include <benchmark/benchmark.h>

#include <functional>

namespace bench {

namespace {

/// Work done by one call: floating-point operations, or bytes.
struct Peak {
  const char* name;
  bool arithmetic;
  std::function<double(cpu::Workspace&)> run;
};

/// Half of a cache per thread (of the shared one: half in all), or far more than all of them.
std::vector<Peak> peaks(std::size_t threads) {
  const cpu::Caches& cache = cpu::caches();
  const std::size_t l1 = threads * cache.l1 / 2, l2 = threads * cache.l2 / 2, l3 = cache.l3 / 2;
  const std::size_t memory = 8 * cache.l3;
  const auto read = [](std::size_t bytes) {
    return [bytes](cpu::Workspace& w) { return cpu::run_read(bytes, w); };
  };
  const auto copy = [](std::size_t bytes) {
    return [bytes](cpu::Workspace& w) { return cpu::run_copy(bytes, w); };
  };
  return {{"Peak/CPU/Fma", true, cpu::run_fma},   {"Peak/CPU/ReadL1", false, read(l1)},
          {"Peak/CPU/ReadL2", false, read(l2)},   {"Peak/CPU/ReadL3", false, read(l3)},
          {"Peak/CPU/Read", false, read(memory)}, {"Peak/CPU/CopyL1", false, copy(l1)},
          {"Peak/CPU/CopyL2", false, copy(l2)},   {"Peak/CPU/CopyL3", false, copy(l3)},
          {"Peak/CPU/Copy", false, copy(memory)}};
}

/// The counters of every other row, so that the library's CSV stays a table.
void measure(benchmark::State& state, const Peak& peak, cpu::Workspace& workspace) {
  double work = peak.run(workspace);  // warm-up
  for ([[maybe_unused]] auto iteration : state) work = peak.run(workspace);
  constexpr auto kRate = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["GFLOP/s"] = benchmark::Counter(peak.arithmetic ? work * 1e-9 : 0, kRate);
  state.counters["GB/s"] = benchmark::Counter(peak.arithmetic ? 0 : work * 1e-9, kRate);
  state.counters[kLaunches] = 0;
}

}  // namespace

void register_peaks(cpu::Workspace& workspace) {
  for (const Peak& peak : peaks(static_cast<std::size_t>(workspace.threads()))) {
    benchmark::RegisterBenchmark(
        peak.name, [peak, &workspace](benchmark::State& state) { measure(state, peak, workspace); })
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace bench
