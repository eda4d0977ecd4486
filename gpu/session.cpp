// Building, binding and timing on one device; see the header.
#include "gpu/session.hpp"

#include "gpu/retarget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace gpu {

namespace {

cl::Buffer floats(const cl::Context& context, std::size_t count) {
  return {context, CL_MEM_READ_WRITE, std::max<std::size_t>(count, 1) * sizeof(float)};
}

// Outputs are preset: a driver that reports success and writes nothing is known.
std::optional<std::uint64_t> stamp(const cl::Event& event, cl_profiling_info what, cl_int& query) {
  constexpr cl_ulong kUntouched = ~cl_ulong{0} - 1;
  cl_ulong value = kUntouched;
  const cl_int code = clGetEventProfilingInfo(event(), what, sizeof value, &value, nullptr);
  if (code != CL_SUCCESS) query = code;
  if (value == kUntouched) return std::nullopt;
  return value;
}

Stamps stamps(const cl::Event& first, const cl::Event& last) {
  Stamps s;
  s.status = last.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>();
  s.queued = stamp(first, CL_PROFILING_COMMAND_QUEUED, s.query);
  s.start = stamp(first, CL_PROFILING_COMMAND_START, s.query);
  s.end = stamp(last, CL_PROFILING_COMMAND_END, s.query);
  return s;
}

// "TILE_K=16 STAGES=3" and the geometry as compiler options.
std::string definitions(const Variant& v, const Shape& shape) {
  const Geometry& g = v.geometry;
  std::string options = fmt::format(" -DWG_X={} -DWG_Y={}", g.wg_x, g.wg_y);
  if (g.tile_m != Geometry::kWhole) options += fmt::format(" -DTILE_M={}", g.tile_m);
  if (g.tile_n != Geometry::kWhole) options += fmt::format(" -DTILE_N={}", g.tile_n);
  if (v.private_row) options += fmt::format(" -DROW_LENGTH={}", std::max<std::size_t>(shape.k, 1));
  for (std::size_t at = 0; at < v.defines.size();) {
    const auto end = std::min(v.defines.find(' ', at), v.defines.size());
    options += fmt::format(" -D{}", v.defines.substr(at, end - at));
    at = end + 1;
  }
  return options;
}

void refuse(const std::string& reason) {
  if (!reason.empty()) throw Unsupported(reason);
}

const Shape& fitting(const Session& session, const Shape& shape) {
  refuse(obstacle(session.device_limits(), shape));
  return shape;
}

}  // namespace

int to_int(std::size_t size) {
  if (size > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw Unsupported(fmt::format("sizes are 32-bit integers here, {} is too large", size));
  return static_cast<int>(size);
}

ClMultiplication::ClMultiplication(const Session& session, const Shape& shape)
    : queue_(session.queue()),
      shape_(fitting(session, shape)),
      a_(floats(session.context(), shape.a_size())),
      b_(floats(session.context(), shape.b_size())),
      guarded_c_(floats(session.context(), shape.c_size() + 2 * kGuard)),
      timer_ns_(session.info().timer_ns) {
  cl_buffer_region region{kGuard * sizeof(float),
                          std::max<std::size_t>(shape.c_size(), 1) * sizeof(float)};
  c_ = guarded_c_.createSubBuffer(CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region);
}

std::array<ClMultiplication::Operand, 3> ClMultiplication::operands() const {
  return {{{a_, shape_.lda}, {b_, shape_.ldb}, {c_, shape_.ldc}}};
}

void ClMultiplication::write_inputs(std::span<const float> a, std::span<const float> b) {
  if (!a.empty()) queue_.enqueueWriteBuffer(a_, CL_FALSE, 0, a.size_bytes(), a.data());
  if (!b.empty()) queue_.enqueueWriteBuffer(b_, CL_FALSE, 0, b.size_bytes(), b.data());
  queue_.finish();
}

void ClMultiplication::write_output(std::span<const float> guarded_c) {
  queue_.enqueueWriteBuffer(guarded_c_, CL_TRUE, 0, guarded_c.size_bytes(), guarded_c.data());
}

void ClMultiplication::read_output(std::span<float> guarded_c) {
  queue_.enqueueReadBuffer(guarded_c_, CL_TRUE, 0, guarded_c.size_bytes(), guarded_c.data());
}

void ClMultiplication::clear_output() {
  const std::vector<float> zeros(shape_.n);
  for (std::size_t row = 0; row < shape_.m && shape_.n > 0; ++row)
    queue_.enqueueWriteBuffer(c_, CL_TRUE, row * shape_.ldc * sizeof(float),
                              zeros.size() * sizeof(float), zeros.data());
}

double ClMultiplication::run(int batch) {
  if (shape_.empty()) {
    clear_output();
    return 0;
  }
  cl::Event first;
  cl::Event last;
  for (int i = 0; i < batch; ++i)
    enqueue(i == 0 ? &first : nullptr, i == batch - 1 ? &last : nullptr);
  last.wait();
  return seconds(first, last, timer_ns_) / batch;
}

double seconds(const cl::Event& first, const cl::Event& last, double timer_ns) {
  const EventTime time = judge(stamps(first, last), {.timer_ns = timer_ns});
  if (time.trust == Trust::kInvalid || time.trust == Trust::kTooShort)
    throw DeviceError("no usable time: " + time.why);
  return time.seconds;
}

namespace {

// A variant of the table: one kernel, its arguments set once.
class KernelMultiplication final : public ClMultiplication {
 public:
  KernelMultiplication(const Session& session, const Shape& shape)
      : ClMultiplication(session, shape) {}

  void bind(cl::Kernel kernel, const NdRange& range) {
    kernel_ = std::move(kernel);
    range_ = range;
    cl_uint at = 0;
    for (const std::size_t extent : {shape().m, shape().n, shape().k})
      kernel_.setArg(at++, to_int(extent));
    for (const auto& [buffer, leading] : operands()) {
      kernel_.setArg(at++, buffer);
      kernel_.setArg(at++, to_int(leading));
    }
  }

 protected:
  void enqueue(cl::Event* first, cl::Event* last) override {
    cl::Event event;
    const bool stamped = first != nullptr || last != nullptr;
    queue().enqueueNDRangeKernel(
        kernel_, cl::NullRange, cl::NDRange(range_.global[0], range_.global[1]),
        cl::NDRange(range_.local[0], range_.local[1]), nullptr, stamped ? &event : nullptr);
    if (first != nullptr) *first = event;
    if (last != nullptr) *last = event;
  }

 private:
  cl::Kernel kernel_;
  NdRange range_{};
};

}  // namespace

Session::Session(cl::Device device, Sources sources)
    : device_(std::move(device)),
      sources_(std::move(sources)),
      info_(describe(device_)),
      limits_(gpu::limits(device_)) {
  reset();
}

void Session::reset() {
  programs_.clear();
  context_ = cl::Context(device_);
  queue_ = cl::CommandQueue(context_, device_, CL_QUEUE_PROFILING_ENABLE);
}

std::string Session::build_options() const {
  return info_.nvidia ? "-cl-std=CL1.2 -cl-nv-verbose" : "-cl-std=CL1.2";
}

// The same program with its marked lines as instructions: see gpu/retarget.hpp.
cl::Program Session::retargeted(const cl::Program& program) const {
  const std::vector<unsigned char> binary = program.getInfo<CL_PROGRAM_BINARIES>().at(0);
  const std::string ptx = retarget_ptx({binary.begin(), binary.end()});
  return {context_, {device_}, cl::Program::Binaries{{ptx.begin(), ptx.end()}}};
}

cl::Program& Session::build(const std::string& kernel, const std::string& options) {
  const auto known = programs_.find(kernel + options);
  if (known != programs_.end()) return known->second;
  // The #line makes the log speak of the file; the text itself is passed as it is.
  cl::Program program(context_,
                      fmt::format("#line 1 \"{}.cl\"\n{}", kernel, sources_.text(kernel)));
  try {
    program.build(device_, options.c_str());
    if (sources_.text(kernel).find(kMark) != std::string::npos) {
      program = retargeted(program);
      program.build(device_, "-cl-nv-verbose");  // of a binary, only the log's options count
    }
  } catch (const cl::Error& error) {
    if (error.err() != CL_BUILD_PROGRAM_FAILURE) throw;
    throw BuildError(fmt::format("{}.cl does not build with {}:\n{}", kernel, options,
                                 readable_log(program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(device_),
                                              kernel, sources_.text(kernel))));
  }
  return programs_.emplace(kernel + options, std::move(program)).first->second;
}

Resources Session::inspect(const Variant& variant, const Shape& shape) {
  const std::string name(variant.kernel);
  cl::Program& program = build(name, build_options() + definitions(variant, shape));
  const cl::Kernel kernel(program, name.c_str());
  Resources r = parse_log(program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(device_), name);
  r.private_bytes = kernel.getWorkGroupInfo<CL_KERNEL_PRIVATE_MEM_SIZE>(device_);
  r.local_bytes = kernel.getWorkGroupInfo<CL_KERNEL_LOCAL_MEM_SIZE>(device_);
  if (variant.private_row) r.array_bytes = shape.k * sizeof(float);
  return r;
}

cl::Kernel Session::kernel(const std::string& name, const std::string& defines) {
  return {build(name, build_options() + defines), name.c_str()};
}

// NVIDIA answers 256 even for a kernel that was compiled, registers fitted, for a larger required
// size; such a kernel runs at the size it was compiled for.
std::size_t Session::work_group_limit(const cl::Kernel& kernel, const Needs& needs) const {
  const std::size_t allowed = kernel.getWorkGroupInfo<CL_KERNEL_WORK_GROUP_SIZE>(device_);
  const auto required = kernel.getWorkGroupInfo<CL_KERNEL_COMPILE_WORK_GROUP_SIZE>(device_);
  const bool compiled_for_it = required[0] == needs.wg_x && required[1] == needs.wg_y;
  return info_.nvidia && compiled_for_it ? std::max(allowed, needs.wg_x * needs.wg_y) : allowed;
}

std::unique_ptr<Multiplication> Session::prepare(const Variant& variant, const Shape& shape) {
  if (variant.nvidia_capability > 0 && info_.capability < variant.nvidia_capability)
    refuse(fmt::format("needs an NVIDIA GPU of compute capability {}.{}, this is {}",
                       variant.nvidia_capability / 10, variant.nvidia_capability % 10, info_.name));
  const std::string name(variant.kernel);
  refuse(obstacle(sources_.text(name), info_.capability));
  Needs needs{variant.geometry.wg_x, variant.geometry.wg_y};
  if (variant.private_row) needs.private_bytes = shape.k * sizeof(float);
  refuse(obstacle(limits_, needs));

  auto product = std::make_unique<KernelMultiplication>(*this, shape);
  if (shape.empty()) return product;

  cl::Kernel kernel(build(name, build_options() + definitions(variant, shape)), name.c_str());
  Limits of_kernel = limits_;
  of_kernel.kernel_work_group = work_group_limit(kernel, needs);
  needs.local_bytes = kernel.getWorkGroupInfo<CL_KERNEL_LOCAL_MEM_SIZE>(device_);
  refuse(obstacle(of_kernel, needs));
  product->bind(std::move(kernel), cover(variant.geometry, shape.m, shape.n));
  return product;
}

}  // namespace gpu
