// The measured ceilings of both sides as rows of the suite, and what the other rows are held
// against: Peak/CPU/… and Peak/GPU/…, listed and run before everything else.
#pragma once

#include "bench/cases.hpp"
#include "bench/roofline.hpp"
#include "gpu/peaks.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

using gpu::Peak;

struct Ceiling {
  std::string name;  // "Peak/GPU/Copy"
  /// As gpu::PeakRow; on the CPU floats of half the traffic's memory, or calls of cpu::run_fma.
  std::size_t n;
  bool on_device;
  bool by_events;  // else by the host's clock
  /// Throws as Case::prepare. The machine must outlive the result.
  std::function<Peak(Machine&)> prepare;
};

/// Every row of cpu/peak and gpu/peaks for this many threads.
std::vector<Ceiling> ceilings(int threads);

/// The best of some runs within a moment of the row of this name, among several the first whose
/// data are far beyond the last-level cache: operations or bytes a second, or seconds. 0 where it
/// cannot be measured here.
double best_rate(Machine& machine, std::string_view name);
double best_seconds(Machine& machine, std::string_view name);

/// The roofs of both sides: measured for a moment when they are first asked for, raised by every
/// better measurement, since a ceiling is the most that was ever seen.
class Ceilings {
 public:
  /// Never throws: a ceiling that cannot be measured is unknown.
  Roofs roofs(Machine& machine, bool on_device);

  /// The same, measured once more: before a row is called impossible.
  Roofs again(Machine& machine, bool on_device);

 private:
  std::map<bool, Roofs> known_;
};

}  // namespace bench
