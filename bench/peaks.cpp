// Ceilings of both sides; see the header.
#include "bench/peaks.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>

namespace bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBeyond = 8;  // times the last-level cache: nearly all of it from memory
constexpr double kMomentSeconds = 0.1;
constexpr int kLeastRuns = 4;  // the first of which compiles and faults pages in

double seconds_of(const Peak& peak, bool by_events) {
  const auto begin = Clock::now();
  const double by_event = peak.run();
  return by_events ? by_event : std::chrono::duration<double>(Clock::now() - begin).count();
}

// The best of some runs within a moment; 0 where the ceiling cannot be measured here.
double best_rate(Machine& machine, const Ceiling& ceiling) {
  try {
    const Peak peak = ceiling.prepare(machine);
    const double work = std::max(peak.flops, peak.bytes);
    const auto begin = Clock::now();
    double best = 0;
    for (int i = 0;
         i < kLeastRuns || Clock::now() - begin < std::chrono::duration<double>(kMomentSeconds);
         ++i)
      best = std::max(best, work / seconds_of(peak, ceiling.by_events));
    return best;
  } catch (const std::exception&) {
    return 0;
  }
}

// Of the rows of this name the first (they grow) whose two arrays are several times the cache.
double best_rate(Machine& machine, std::string_view name) {
  const auto all = ceilings(machine.workspace.threads());
  const Ceiling* chosen = nullptr;
  for (const Ceiling& row : all) {
    if (row.name != name) continue;
    chosen = &row;
    if (2 * row.n * sizeof(float) >= kBeyond * machine.last_level_cache(row.on_device)) break;
  }
  return chosen == nullptr ? 0 : best_rate(machine, *chosen);
}

}  // namespace

std::vector<Ceiling> ceilings(int) {
  std::vector<Ceiling> all;
  for (const gpu::PeakRow& row : gpu::peaks())
    all.push_back({std::string(row.name), row.n, true, row.by_events, [row](Machine& machine) {
                     if (!machine.session) throw gpu::Unsupported("there is no OpenCL device");
                     return row.prepare(*machine.session, row.n);
                   }});
  return all;
}

Roofs Ceilings::roofs(Machine& machine, bool on_device) {
  return known_.contains(on_device) ? known_[on_device] : again(machine, on_device);
}

Roofs Ceilings::again(Machine& machine, bool on_device) {
  if (on_device && !machine.session) return {};
  Roofs& roofs = known_[on_device];
  roofs.flops =
      std::max(roofs.flops, best_rate(machine, on_device ? "Peak/GPU/Fma" : "Peak/CPU/Fma"));
  roofs.bytes =
      std::max(roofs.bytes, best_rate(machine, on_device ? "Peak/GPU/Copy" : "Peak/CPU/Copy"));
  return roofs;
}

}  // namespace bench
