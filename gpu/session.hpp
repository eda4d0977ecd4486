// One device with its context and queue, and products prepared on it: build, bind, launch, time.
// Errors: Unsupported (a skip with its reason), BuildError, DeviceError, cl::Error. After a device
// error every later call of the same context may fail: drop what was prepared and call reset().
#pragma once

#include "gpu/device.hpp"
#include "gpu/event_time.hpp"
#include "gpu/resources.hpp"
#include "gpu/sources.hpp"
#include "gpu/variants.hpp"

#include <array>
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

/// A size as the int that kernels and libraries take. Throws Unsupported where it is none.
int to_int(std::size_t size);

/// One product bound to its buffers on a device, whoever computes it. All calls block.
class Multiplication {
 public:
  virtual ~Multiplication() = default;

  /// A and B to the device. Sizes: Shape::a_size() and b_size() floats.
  virtual void write_inputs(std::span<const float> a, std::span<const float> b) = 0;
  /// kGuard + c_size() + kGuard floats to the device and back.
  virtual void write_output(std::span<const float> guarded_c) = 0;
  virtual void read_output(std::span<float> guarded_c) = 0;

  /// C = A·B, `batch` ≥ 1 times back to back. Seconds of one product by the device's clock: from
  /// the start of the first to the end of the last, divided by `batch`. Throws DeviceError if the
  /// device's stamps cannot be used.
  virtual double run(int batch) = 0;
};

class Session;

/// Buffers and timing of a product on an OpenCL queue; what is launched is up to derived classes.
class ClMultiplication : public Multiplication {
 public:
  /// Throws Unsupported for a shape that the session's device cannot hold.
  ClMultiplication(const Session& session, const Shape& shape);

  void write_inputs(std::span<const float> a, std::span<const float> b) override;
  void write_output(std::span<const float> guarded_c) override;
  void read_output(std::span<float> guarded_c) override;
  double run(int batch) override;

 protected:
  struct Operand {
    cl::Buffer buffer;
    std::size_t leading;
  };
  /// Enqueues one product. `first` and `last` receive the events between whose START and END it
  /// ran; null in the middle of a batch, where an event for each launch would only cost time.
  virtual void enqueue(cl::Event* first, cl::Event* last) = 0;

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] cl::CommandQueue& queue() { return queue_; }
  [[nodiscard]] std::array<Operand, 3> operands() const;

 private:
  void clear_output();  // the product with k = 0, which no kernel is asked for

  cl::CommandQueue queue_;
  Shape shape_;
  cl::Buffer a_, b_, guarded_c_, c_;
  double timer_ns_;
};

/// Seconds from the START of one finished event to the END of another (or the same one). Throws
/// DeviceError if their stamps cannot be used.
double seconds(const cl::Event& first, const cl::Event& last, double timer_ns);

class Session {
 public:
  Session(cl::Device device, Sources sources);

  [[nodiscard]] const DeviceInfo& info() const { return info_; }
  [[nodiscard]] std::string build_options() const;
  [[nodiscard]] const cl::Context& context() const { return context_; }
  [[nodiscard]] const cl::CommandQueue& queue() const { return queue_; }
  [[nodiscard]] const Limits& device_limits() const { return limits_; }

  /// Everything that can refuse happens here, before a launch. Shapes may be empty (m, n or k = 0).
  std::unique_ptr<Multiplication> prepare(const Variant& variant, const Shape& shape);

  /// What the variant's kernel takes, by the driver's answers and NVIDIA's build log; builds it.
  Resources inspect(const Variant& variant, const Shape& shape);

  /// For measurements that are no product (gpu/peaks): a kernel of kernels/<name>.cl, built with
  /// `defines` (" -DWIDTH=4"), and what to run it on.
  cl::Kernel kernel(const std::string& name, const std::string& defines);
  [[nodiscard]] const cl::Device& device() const { return device_; }

  /// A fresh context and queue; programs are built again at their next use.
  void reset();

 private:
  cl::Program& build(const std::string& kernel, const std::string& options);
  [[nodiscard]] std::size_t work_group_limit(const cl::Kernel& kernel, const Needs& needs) const;
  cl::Program retargeted(const cl::Program& program) const;

  cl::Device device_;
  Sources sources_;
  DeviceInfo info_;
  Limits limits_;
  cl::Context context_;
  cl::CommandQueue queue_;
  std::map<std::string, cl::Program> programs_;  // by kernel and options
};

}  // namespace gpu
