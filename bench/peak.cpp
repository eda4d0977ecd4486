// Registration of the measured ceilings; see the header.
#include "bench/peak.hpp"

#include "bench/reporting.hpp"
#include "cpu/caches.hpp"
#include "cpu/peak.hpp"

#include <benchmark/benchmark.h>

#include <functional>
#include <memory>
#include <vector>

namespace bench {

namespace {

enum class Kind { kFma, kRead, kCopy };

struct Peak {
  const char* name;
  Kind kind;
  std::size_t bytes;  // the traffic's working set
};

/// Half of a core's own caches for each thread, half of the shared one in all, and eight times
/// that.
std::vector<Peak> peaks(std::size_t threads) {
  const cpu::Caches& cache = cpu::caches();
  const std::size_t l1 = threads * cache.l1 / 2, l2 = threads * cache.l2 / 2, l3 = cache.l3 / 2;
  return {{"Peak/CPU/Fma", Kind::kFma, 0},
          {"Peak/CPU/ReadL1", Kind::kRead, l1},
          {"Peak/CPU/ReadL2", Kind::kRead, l2},
          {"Peak/CPU/ReadL3", Kind::kRead, l3},
          {"Peak/CPU/Read", Kind::kRead, 8 * cache.l3},
          {"Peak/CPU/CopyL1", Kind::kCopy, l1},
          {"Peak/CPU/CopyL2", Kind::kCopy, l2},
          {"Peak/CPU/CopyL3", Kind::kCopy, l3},
          {"Peak/CPU/Copy", Kind::kCopy, 8 * cache.l3}};
}

/// One call of this returns the work done: floating-point operations, or bytes.
std::function<double()> runner(const Peak& peak, cpu::Workspace& workspace) {
  if (peak.kind == Kind::kFma) return [&workspace] { return cpu::run_fma(workspace); };
  const auto traffic = std::make_shared<cpu::Traffic>(peak.bytes, workspace.threads());
  if (peak.kind == Kind::kRead) return [traffic] { return traffic->read(); };
  return [traffic] { return traffic->copy(); };
}

/// The counters of every other row, so that the library's CSV stays a table.
void measure(benchmark::State& state, const Peak& peak, cpu::Workspace& workspace) {
  const auto run = runner(peak, workspace);
  double work = run();  // warm-up
  for ([[maybe_unused]] auto iteration : state) work = run();
  constexpr auto kRate = benchmark::Counter::kIsIterationInvariantRate;
  const bool flops = peak.kind == Kind::kFma;
  state.counters["GFLOP/s"] = benchmark::Counter(flops ? work * 1e-9 : 0, kRate);
  state.counters["GB/s"] = benchmark::Counter(flops ? 0 : work * 1e-9, kRate);
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
