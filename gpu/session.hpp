// One device with its context and queue, and products prepared on it: build, bind, launch, time.
// Errors: Unsupported (a skip with its reason), BuildError, DeviceError, cl::Error. After a device
// error every later call of the same context may fail: drop what was prepared and call reset().
#pragma once

#include "gpu/device.hpp"
#include "gpu/event_time.hpp"
#include "gpu/resources.hpp"
#include "gpu/sources.hpp"
#include "gpu/variants.hpp"

#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace gpu {

/// This device cannot run this variant at this shape: not a fault, the message says why.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// The kernel did not compile; the message carries the device's build log.
struct BuildError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// A launch failed, or its time cannot be trusted.
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Untouchable floats before and after C, so that a write out of bounds can be seen. One page:
/// a multiple of every device's alignment for sub-buffers.
inline constexpr std::size_t kGuard = 1024;

/// One product bound to its kernel and buffers on a session's device.
class Multiplication {
 public:
  Multiplication(const cl::Context& context, const cl::CommandQueue& queue, const Shape& shape);

  void bind(cl::Kernel kernel, const NdRange& range, double timer_ns);

  /// A and B to the device; blocks. Sizes: Shape::a_size() and b_size() floats.
  void write_inputs(std::span<const float> a, std::span<const float> b);
  /// kGuard + c_size() + kGuard floats to the device and back; blocks.
  void write_output(std::span<const float> guarded_c);
  void read_output(std::span<float> guarded_c);

  /// C = A·B once; blocks. Seconds by the event; throws DeviceError if its stamps cannot be used.
  double run();

 private:
  void clear_output();  // the product with k = 0, which no kernel is asked for

  cl::CommandQueue queue_;
  Shape shape_;
  cl::Buffer a_, b_, guarded_c_, c_;
  cl::Kernel kernel_;
  NdRange range_{};
  double timer_ns_ = 0;
};

/// Seconds from START to END of a finished event. Throws DeviceError if its stamps cannot be used.
double seconds(const cl::Event& event, double timer_ns);

class Session {
 public:
  Session(cl::Device device, Sources sources);

  [[nodiscard]] const DeviceInfo& info() const { return info_; }
  [[nodiscard]] std::string build_options() const;

  /// Everything that can refuse happens here, before a launch. Shapes may be empty (m, n or k = 0).
  std::unique_ptr<Multiplication> prepare(const Variant& variant, const Shape& shape);

  /// What the variant's kernel takes, by the driver's answers and NVIDIA's build log; builds it.
  Resources inspect(const Variant& variant, const Shape& shape);

  /// For measurements that are no product (gpu/peaks): a kernel of kernels/<name>.cl, built with
  /// `defines` (" -DWIDTH=4"), and what to run it on.
  cl::Kernel kernel(const std::string& name, const std::string& defines);
  [[nodiscard]] const cl::Device& device() const { return device_; }
  [[nodiscard]] const cl::Context& context() const { return context_; }
  [[nodiscard]] const cl::CommandQueue& queue() const { return queue_; }
  [[nodiscard]] const Limits& limits() const { return limits_; }

  /// A fresh context and queue; programs are built again at their next use.
  void reset();

 private:
  cl::Program& build(const std::string& kernel, const std::string& options);

  cl::Device device_;
  Sources sources_;
  DeviceInfo info_;
  Limits limits_;
  cl::Context context_;
  cl::CommandQueue queue_;
  std::map<std::string, cl::Program> programs_;  // by kernel and options
};

}  // namespace gpu
