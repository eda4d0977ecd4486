// Ceilings of both sides; see the header.
#include "bench/peaks.hpp"

#include "cpu/caches.hpp"
#include "cpu/peak.hpp"

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

struct Best {
  double work = 0, seconds = 0;
};

Best best(Machine& machine, const Ceiling& ceiling) {
  const Peak peak = ceiling.prepare(machine);
  Best best{std::max(peak.flops, peak.bytes), seconds_of(peak, ceiling.by_events)};
  const auto begin = Clock::now();
  for (int i = 1;
       i < kLeastRuns || Clock::now() - begin < std::chrono::duration<double>(kMomentSeconds); ++i)
    best.seconds = std::min(best.seconds, seconds_of(peak, ceiling.by_events));
  return best;
}

// Rows of one name grow.
Best best(Machine& machine, std::string_view name) {
  const auto all = ceilings(machine.workspace.threads());
  const Ceiling* chosen = nullptr;
  for (const Ceiling& row : all) {
    if (row.name != name) continue;
    chosen = &row;
    if (2 * row.n * sizeof(float) >= kBeyond * machine.last_level_cache(row.on_device)) break;
  }
  try {
    return chosen == nullptr ? Best{} : best(machine, *chosen);
  } catch (const std::exception&) {
    return {};
  }
}

// A ceiling of the CPU: `run` returns the operations or bytes it did, as many every time.
Ceiling cpu_ceiling(const char* name, std::size_t n, double gpu::Peak::*work,
                    std::function<double(cpu::Workspace&)> run) {
  return {name, n, false, false, [work, run = std::move(run)](Machine& machine) {
            Peak peak;
            peak.*work = run(machine.workspace);
            peak.run = [&machine, run] { return run(machine.workspace), 0.0; };
            return peak;
          }};
}

Ceiling copy_ceiling(const char* name, std::size_t bytes) {
  return cpu_ceiling(name, bytes / (2 * sizeof(float)), &Peak::bytes,
                     [bytes](cpu::Workspace& w) { return cpu::run_copy(bytes, w); });
}

// Half of a cache is left to whatever else lives there. Only the last level is shared.
std::vector<Ceiling> cpu_ceilings(std::size_t threads) {
  constexpr std::size_t kFmaCalls = 20;  // some milliseconds
  constexpr std::size_t kLeast = 256UL << 20U;
  const cpu::Caches& caches = cpu::caches();
  return {cpu_ceiling("Peak/CPU/Fma", kFmaCalls, &Peak::flops,
                      [](cpu::Workspace& w) {
                        double flops = 0;
                        for (std::size_t i = 0; i < kFmaCalls; ++i) flops += cpu::run_fma(w);
                        return flops;
                      }),
          copy_ceiling("Peak/CPU/CopyL1", threads * caches.l1 / 2),
          copy_ceiling("Peak/CPU/CopyL2", threads * caches.l2 / 2),
          copy_ceiling("Peak/CPU/CopyL3", caches.l3 / 2),
          copy_ceiling("Peak/CPU/Copy", std::max(kBeyond * caches.l3, kLeast))};
}

}  // namespace

std::vector<Ceiling> ceilings(int threads) {
  std::vector<Ceiling> all = cpu_ceilings(static_cast<std::size_t>(threads));
  for (const gpu::PeakRow& row : gpu::peaks())
    all.push_back({std::string(row.name), row.n, true, row.by_events, [row](Machine& machine) {
                     if (!machine.session) throw gpu::Unsupported("there is no OpenCL device");
                     return row.prepare(*machine.session, row.n);
                   }});
  return all;
}

double best_rate(Machine& machine, std::string_view name) {
  const Best found = best(machine, name);
  return found.seconds > 0 ? found.work / found.seconds : 0;
}

double best_seconds(Machine& machine, std::string_view name) { return best(machine, name).seconds; }

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
