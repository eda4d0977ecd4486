// Ceilings of a device; see the header.
#include "gpu/peaks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

namespace gpu {

namespace {

constexpr std::size_t kGroup = 256;      // work-items: fits every GPU, and hides latency on all
constexpr std::size_t kFmaUnroll = 16;   // UNROLL of peak_fma
constexpr std::size_t kCopyFloats = 16;  // floats that a work-item of peak_copy moves: 4 float4
constexpr std::size_t kLocalLoads = 16;  // LOADS of peak_local_memory

std::size_t group_size(const Session& session) {
  return std::bit_floor(
      std::min({kGroup, session.device_limits().work_group, session.device_limits().items[0]}));
}

// A GPU needs many groups for a unit to hide latency; a CPU's units take one after the other.
std::size_t work_items(const Session& session) {
  const std::size_t groups = session.info().type == "CPU" ? 4 : 16;
  return groups * std::max(session.info().compute_units, 1U) * group_size(session);
}

// The registers of a CPU are vectors; those of a GPU's work-items are not.
std::size_t register_floats(const Session& session) {
  const auto native = session.device().getInfo<CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT>();
  return std::bit_floor(std::clamp<std::size_t>(native, 1, 16));
}

cl::Buffer floats(const Session& session, std::size_t count, cl_mem_flags flags = 0) {
  const std::size_t bytes = count * sizeof(float);
  if (bytes > session.device_limits().allocation || 2 * bytes > session.device_limits().memory)
    throw Unsupported(fmt::format("needs two buffers of {} MiB, the device allows {} MiB in one",
                                  bytes >> 20U, session.device_limits().allocation >> 20U));
  return {session.context(), CL_MEM_READ_WRITE | flags, bytes};
}

// A kernel and the buffers among its arguments, which it does not keep alive by itself.
struct Bound {
  cl::Kernel kernel;
  std::vector<cl::Buffer> buffers;
};

Bound bound(cl::Kernel kernel, cl_uint first, std::vector<cl::Buffer> buffers) {
  for (const cl::Buffer& buffer : buffers) kernel.setArg(first++, buffer);
  return {std::move(kernel), std::move(buffers)};
}

// A launch of `items` work-items, timed by its event.
std::function<double()> launching(const Session& session, Bound bound, std::size_t items) {
  return [queue = session.queue(), bound = std::move(bound), items, group = group_size(session),
          timer_ns = session.info().timer_ns] {
    cl::Event event;
    queue.enqueueNDRangeKernel(bound.kernel, cl::NullRange, cl::NDRange(items),
                               cl::NDRange(std::min(group, items)), nullptr, &event);
    event.wait();
    return seconds(event, event, timer_ns);
  };
}

std::vector<float> fetch(const Session& session, const cl::Buffer& buffer, std::size_t count) {
  std::vector<float> data(count);
  session.queue().enqueueReadBuffer(buffer, CL_TRUE, 0, count * sizeof(float), data.data());
  return data;
}

// Empty if `expected(i)` is element i of the buffer for all i.
template <class Expected>
std::string difference(const Session& session, const cl::Buffer& buffer, std::size_t count,
                       Expected expected) {
  const auto data = fetch(session, buffer, count);
  for (std::size_t i = 0; i < count; ++i)
    if (data[i] != expected(i))
      return fmt::format("wrong result: element {} is {} for {}", i, data[i], expected(i));
  return {};
}

// A pattern in which neighbours differ and that no power of two repeats.
float pattern(std::size_t i) { return static_cast<float>(i % 8191); }

std::vector<float> patterned(std::size_t count) {
  std::vector<float> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = pattern(i);
  return data;
}

Peak prepare_fma_row(Session& session, std::size_t n) {
  return prepare_fma(session, n / kFmaUnroll);
}

Peak prepare_copy(Session& session, std::size_t n) {
  const auto from = floats(session, n);
  const auto to = floats(session, n);
  const auto data = patterned(n);
  session.queue().enqueueWriteBuffer(from, CL_TRUE, 0, n * sizeof(float), data.data());
  auto copy = bound(session.kernel("peak_copy", ""), 0, {from, to});
  const double bytes = 2.0 * static_cast<double>(n * sizeof(float));
  return {0, bytes, launching(session, std::move(copy), n / kCopyFloats),
          [&session, to, n] { return difference(session, to, n, pattern); }};
}

Peak prepare_local_memory(Session& session, std::size_t n) {
  const std::size_t width = std::max<std::size_t>(register_floats(session), 4);
  const std::size_t items = work_items(session);
  const auto out = floats(session, items * width);
  auto kernel = session.kernel("peak_local_memory", fmt::format(" -DWIDTH={}", width));
  kernel.setArg(0, static_cast<cl_int>(n));
  const std::size_t loads = n * kLocalLoads;
  const double bytes = static_cast<double>(loads * items * width * sizeof(float));
  return {0, bytes, launching(session, bound(kernel, 1, {out}), items),
          [&session, out, items, width, loads] {
            return difference(session, out, items * width,
                              [loads](std::size_t) { return static_cast<float>(loads); });
          }};
}

enum class Direction { kUp, kDown };

// Host memory of a transfer: what malloc gives, or what the driver has pinned for it.
struct HostMemory {
  std::vector<float> own;
  cl::Buffer pinned;
  cl::CommandQueue queue;
  float* data = nullptr;

  HostMemory() = default;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  // A mapped buffer is never freed. The C call: a destructor has nobody to tell of an error.
  ~HostMemory() {
    if (pinned() == nullptr || data == nullptr) return;
    clEnqueueUnmapMemObject(queue(), pinned(), data, 0, nullptr, nullptr);
    clFinish(queue());
  }
};

std::shared_ptr<HostMemory> host_memory(const Session& session, std::size_t n, bool pinned) {
  auto memory = std::make_shared<HostMemory>();
  if (pinned) {
    memory->pinned = floats(session, n, CL_MEM_ALLOC_HOST_PTR);
    memory->queue = session.queue();
    memory->data = static_cast<float*>(session.queue().enqueueMapBuffer(
        memory->pinned, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, n * sizeof(float)));
  } else {
    memory->own.resize(n);
    memory->data = memory->own.data();
  }
  for (std::size_t i = 0; i < n; ++i) memory->data[i] = pattern(i);
  return memory;
}

template <Direction direction, bool pinned>
Peak prepare_transfer(Session& session, std::size_t n) {
  const auto buffer = floats(session, n);
  const auto host = host_memory(session, n, pinned);
  const std::size_t bytes = n * sizeof(float);
  if (direction == Direction::kDown) {
    session.queue().enqueueWriteBuffer(buffer, CL_TRUE, 0, bytes, host->data);
    std::fill_n(host->data, n, -1.0F);
  }
  Peak peak{0, static_cast<double>(bytes), {}, {}};
  peak.run = [queue = session.queue(), buffer, host, bytes] {
    if (direction == Direction::kUp)
      queue.enqueueWriteBuffer(buffer, CL_TRUE, 0, bytes, host->data);
    else
      queue.enqueueReadBuffer(buffer, CL_TRUE, 0, bytes, host->data);
    return 0.0;
  };
  peak.fault = [&session, buffer, host, n]() -> std::string {
    if (direction == Direction::kUp) return difference(session, buffer, n, pattern);
    for (std::size_t i = 0; i < n; ++i)
      if (host->data[i] != pattern(i)) return fmt::format("wrong result: element {} differs", i);
    return {};
  };
  return peak;
}

// The sizes of the copies are a cache's, a larger cache's, and several times any cache's; those of
// the transfers are A, B or C of n = 256 and n = 4096.
constexpr std::size_t kSmall = std::size_t{1} << 16U;
constexpr std::size_t kLarge = std::size_t{1} << 24U;
constexpr PeakRow kTable[] = {
    {"Peak/GPU/Fma", 16384, true, prepare_fma_row},
    {"Peak/GPU/Copy", kSmall * 4, true, prepare_copy},
    {"Peak/GPU/Copy", kLarge / 4, true, prepare_copy},
    {"Peak/GPU/Copy", kLarge * 2, true, prepare_copy},
    {"Peak/GPU/Copy", kLarge * 8, true, prepare_copy},
    {"Peak/GPU/LocalMemory", 1024, true, prepare_local_memory},
    {"Peak/GPU/Launch", 1, false, prepare_launch},
    {"Peak/GPU/Upload", kSmall, false, prepare_transfer<Direction::kUp, false>},
    {"Peak/GPU/Upload", kLarge, false, prepare_transfer<Direction::kUp, false>},
    {"Peak/GPU/UploadPinned", kLarge, false, prepare_transfer<Direction::kUp, true>},
    {"Peak/GPU/Download", kSmall, false, prepare_transfer<Direction::kDown, false>},
    {"Peak/GPU/Download", kLarge, false, prepare_transfer<Direction::kDown, false>},
    {"Peak/GPU/DownloadPinned", kLarge, false, prepare_transfer<Direction::kDown, true>},
};

}  // namespace

Peak prepare_fma(Session& session, std::size_t rounds) {
  const std::size_t width = register_floats(session);
  const std::size_t chains = width > 1 ? 10 : 8;  // a CPU core has 16 vector registers or more
  const std::size_t items = work_items(session);
  const auto out = floats(session, items * width);
  auto kernel = session.kernel("peak_fma", fmt::format(" -DWIDTH={} -DCHAINS={}", width, chains));
  kernel.setArg(0, static_cast<cl_int>(rounds));
  kernel.setArg(1, 0.5F);
  kernel.setArg(2, 1.0F);
  const double fmas = static_cast<double>(rounds * kFmaUnroll * chains * items * width);
  return {2 * fmas, 0, launching(session, bound(kernel, 3, {out}), items),
          [&session, out, items, width, chains] {
            return difference(session, out, items * width,
                              [chains](std::size_t) { return 2.0F * static_cast<float>(chains); });
          }};
}

Peak prepare_launch(Session& session, std::size_t items) {
  auto empty = bound(session.kernel("peak_launch", ""), 0, {floats(session, 1)});
  return {0, 0, [queue = session.queue(), empty = std::move(empty), items] {
            cl::Event event;
            queue.enqueueNDRangeKernel(empty.kernel, cl::NullRange, cl::NDRange(items),
                                       cl::NDRange(1), nullptr, &event);
            event.wait();
            return 0.0;
          }};
}

std::span<const PeakRow> peaks() { return kTable; }

}  // namespace gpu
