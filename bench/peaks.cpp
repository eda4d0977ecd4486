// Ceilings of both sides; see the header.
#include "bench/peaks.hpp"

#include "cpu/caches.hpp"
#include "cpu/peak.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
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

Ceiling fma_ceiling() {
  constexpr std::size_t kCalls = 20;  // some milliseconds
  return {"Peak/CPU/Fma", kCalls, false, false, [](Machine& machine) {
            Peak peak;
            peak.run = [&w = machine.workspace] {
              for (std::size_t i = 0; i < kCalls; ++i) cpu::run_fma(w);
              return 0.0;
            };
            peak.flops = kCalls * cpu::run_fma(machine.workspace);  // the same at every call
            return peak;
          }};
}

Ceiling traffic_ceiling(const char* name, std::size_t bytes, double (cpu::Traffic::*pass)()) {
  return {name, bytes / (2 * sizeof(float)), false, false, [bytes, pass](Machine& machine) {
            const auto traffic = std::make_shared<cpu::Traffic>(bytes, machine.workspace.threads());
            Peak peak;
            peak.run = [traffic, pass] { return (traffic.get()->*pass)(), 0.0; };
            peak.bytes = (traffic.get()->*pass)();  // the same at every call
            return peak;
          }};
}

// Half of a core's own caches for each thread and half of the shared one in all are left to
// whatever else lives there.
std::vector<Ceiling> cpu_ceilings(std::size_t threads) {
  const cpu::Caches& caches = cpu::caches();
  const std::size_t l1 = threads * caches.l1 / 2;
  const std::size_t l2 = threads * caches.l2 / 2;
  const std::size_t memory = kBeyond * caches.l3;
  return {fma_ceiling(),
          traffic_ceiling("Peak/CPU/ReadL1", l1, &cpu::Traffic::read),
          traffic_ceiling("Peak/CPU/ReadL2", l2, &cpu::Traffic::read),
          traffic_ceiling("Peak/CPU/ReadL3", caches.l3 / 2, &cpu::Traffic::read),
          traffic_ceiling("Peak/CPU/Read", memory, &cpu::Traffic::read),
          traffic_ceiling("Peak/CPU/CopyL1", l1, &cpu::Traffic::copy),
          traffic_ceiling("Peak/CPU/CopyL2", l2, &cpu::Traffic::copy),
          traffic_ceiling("Peak/CPU/CopyL3", caches.l3 / 2, &cpu::Traffic::copy),
          traffic_ceiling("Peak/CPU/Copy", memory, &cpu::Traffic::copy)};
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
