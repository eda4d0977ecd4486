// Why a kernel takes the time it takes: its resources, the roofs over it, and the likeliest of the
// things that can hold it back. Pure logic over measured facts; the program's --explain.
#pragma once

#include "bench/roofline.hpp"
#include "gpu/resources.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace bench {

/// What a device was seen to do at most.
struct DeviceRoofs {
  Roofs roofs;
  double local_bytes = 0;     // bytes a second loaded from local memory
  double launch_seconds = 0;  // wall time of an empty launch
};

/// One measured kernel.
struct KernelFacts {
  std::string variant;  // whose kernel it is: "SGEMM/GPU/Tile16"
  std::string row;      // what ran it, where that is another one: "SGEMM/GPU/Tuned"
  std::size_t n = 0;
  double seconds = 0;
  Work work;
  gpu::Resources resources;
  double loads = 0;             // words for each multiply-add; 0: not known (matrix units)
  bool strided = false;         // neighbouring work-items read addresses a row apart
  std::size_t work_group = 0;   // work-items
  double groups_per_unit = 0;   // work-groups over compute units
  std::optional<double> waves;  // work-groups over those that run at a time
  bool cpu = false;             // the device is a CPU
};

enum class Bound {
  kMultiplyAdds,
  kMemory,
  kLoads,
  kIdleUnits,
  kPrivateMemory,
  kStrides,
  kLatency,
  kGeneratedCode
};

struct Explanation {
  Bound bound;
  double share;          // of the time, that the bound accounts for; 0 where it cannot be computed
  std::string evidence;  // a sentence with the figures
};

/// "loads", "idle units"…: what a table says.
std::string name(Bound bound);

/// The likeliest bound. Roofs that account for half of the time or more decide; else what is known
/// of the kernel's structure does; else it is latency or, on a CPU, what its compiler has made of
/// the work-items.
Explanation explain(const KernelFacts& facts, const DeviceRoofs& device);

/// The roofs in a line and a line for each kernel, as --explain prints it.
std::string explanation_table(std::span<const KernelFacts> kernels, const DeviceRoofs& device);

}  // namespace bench
