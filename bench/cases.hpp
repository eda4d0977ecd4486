// The one table of cases: every variant of both sides as something that can be loaded, run and
// fetched. Benchmarks, check and listing all iterate over it.
#pragma once

#include "bench/problem.hpp"
#include "cpu/cpu.hpp"
#include "gpu/peers.hpp"
#include "gpu/session.hpp"
#include "gpu/tuned.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace bench {

/// One product of one variant at one shape, ready to run.
class Runner {
 public:
  virtual ~Runner() = default;
  /// A and B become the operands: a pointer for the CPU, an upload for a device. The operands must
  /// outlive the runs.
  virtual void write_inputs(const Operands& operands) = 0;
  /// The same for C with its guards, so that what was poisoned on the host is poisoned there.
  virtual void write_output(Operands& operands) = 0;
  /// C = A·B, `batch` times back to back, blocking. Seconds of one product by the device's clock,
  /// or none where the host's is the clock.
  virtual std::optional<double> run(int batch) = 0;
  /// C with its guards comes back into the operands.
  virtual void read_output(Operands& operands) = 0;
};

/// What cases run on; it outlives what was prepared on it. The session is absent where there is no
/// OpenCL device.
struct Machine {
  cpu::Workspace workspace;
  std::unique_ptr<gpu::Session> session;

  /// Bytes of the last-level cache of the CPU, or of the device as far as drivers tell it.
  [[nodiscard]] std::size_t last_level_cache(bool on_device) const;
};

struct Case {
  std::string variant;  // "SGEMM/GPU/Tile16": what is verified
  bool on_device;       // timed by events, and run end to end as well
  double epsilon;       // relative accuracy of one product and sum
  /// Throws gpu::Unsupported for a skip with its reason.
  std::function<std::unique_ptr<Runner>(Machine&, const Shape&)> prepare;
  /// The row of gpu::variants() that runs, for explanations and roofs; empty for all but kernels of
  /// this suite. Throws like prepare.
  using Choice = std::function<gpu::Variant(const gpu::DeviceInfo&, const Shape&)>;
  Choice kernel;
};

Case case_of(const cpu::Variant& variant);
Case case_of(const gpu::Variant& variant);
Case case_of(const gpu::Peer& peer);
/// The best kernel that the table knows for the device and the shape.
Case case_of(gpu::TunedTable table);

/// Every row of cpu::variants() and gpu::variants(), the tuned one, then those of the peers
/// (libraries to load, by name or path); the matrix product first. Throws std::invalid_argument for
/// a peer that cannot be loaded, that is no library we know, or whose row another peer has already.
std::vector<Case> cases(std::span<const std::string> peers = {},
                        gpu::TunedTable tuned = gpu::TunedTable::built_in());

}  // namespace bench
