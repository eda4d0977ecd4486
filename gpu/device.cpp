// Device listing and choice; see the header.
#include "gpu/device.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace gpu {

namespace {

// cl_nv_device_attribute_query
constexpr cl_device_info kCapabilityMajor = 0x4000;
constexpr cl_device_info kCapabilityMinor = 0x4001;
constexpr cl_device_info kPciBus = 0x4008;
constexpr cl_device_info kPciSlot = 0x4009;  // device << 3 | function
constexpr cl_device_info kPciDomain = 0x400A;
// Hopper lets a work-group have 227 KiB; the device query keeps to the 48 KiB of old, and the
// driver honours static __local arrays beyond it.
constexpr std::size_t kHopperLocalBytes = 227UL * 1024;
// A work-item's private memory on NVIDIA ("local memory" in CUDA's words).
constexpr std::size_t kNvidiaPrivatePerItem = 512UL * 1024;

constexpr std::string_view kPocl = "Portable Computing Language";

std::size_t stack_bytes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 8UL << 20U;
  return limit.rlim_cur;
}

std::string trimmed(std::string text) {
  const auto last = text.find_last_not_of(std::string("\0 \n", 3));
  text.erase(last == std::string::npos ? 0 : last + 1);
  return text;
}

// Without spaces around it and in small letters: what is compared.
std::string folded(std::string_view text) {
  const auto first = std::min(text.find_first_not_of(' '), text.size());
  std::string word = trimmed(std::string(text.substr(first)));
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word;
}

std::string type_name(cl_device_type type) {
  if (type & CL_DEVICE_TYPE_GPU) return "GPU";
  if (type & CL_DEVICE_TYPE_CPU) return "CPU";
  return "ACCELERATOR";
}

int capability(const cl::Device& device) {
  cl_uint major = 0;
  cl_uint minor = 0;
  clGetDeviceInfo(device(), kCapabilityMajor, sizeof major, &major, nullptr);
  clGetDeviceInfo(device(), kCapabilityMinor, sizeof minor, &minor, nullptr);
  return static_cast<int>(major * 10 + minor);
}

std::vector<cl::Platform> platforms() {
  std::vector<cl::Platform> all;
  try {
    cl::Platform::get(&all);
  } catch (const cl::Error&) {
    return {};  // CL_PLATFORM_NOT_FOUND_KHR: a loader without drivers
  }
  return all;
}

}  // namespace

std::vector<cl::Device> devices() {
  std::vector<cl::Device> all;
  for (const auto& platform : platforms()) {
    std::vector<cl::Device> some;
    try {
      platform.getDevices(CL_DEVICE_TYPE_ALL, &some);
    } catch (const cl::Error&) {
      continue;  // CL_DEVICE_NOT_FOUND: a platform without devices
    }
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::string why_no_devices() {
  std::string names;
  for (const auto& platform : platforms())
    names += (names.empty() ? "" : ", ") + trimmed(platform.getInfo<CL_PLATFORM_NAME>());
  if (names.empty()) return "there is no platform; install pocl-opencl-icd for one";
  std::string text = fmt::format("the platform {} has none", names);
  if (names.find(kPocl) != std::string::npos)
    text +=
        "; PoCL hides its own where its cache folder (POCL_CACHE_DIR, or pocl/kcache below "
        "~/.cache) cannot be written, or where POCL_DEVICES names none of them";
  return text;
}

DeviceInfo describe(const cl::Device& device) {
  const cl::Platform platform(device.getInfo<CL_DEVICE_PLATFORM>());
  DeviceInfo info;
  info.platform = trimmed(platform.getInfo<CL_PLATFORM_NAME>());
  info.name = trimmed(device.getInfo<CL_DEVICE_NAME>());
  info.type = type_name(device.getInfo<CL_DEVICE_TYPE>());
  info.driver = trimmed(device.getInfo<CL_DRIVER_VERSION>());
  info.version = trimmed(device.getInfo<CL_DEVICE_VERSION>());
  info.compute_units = device.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>();
  info.clock_mhz = device.getInfo<CL_DEVICE_MAX_CLOCK_FREQUENCY>();
  info.timer_ns = static_cast<double>(device.getInfo<CL_DEVICE_PROFILING_TIMER_RESOLUTION>());
  info.nvidia = device.getInfo<CL_DEVICE_VENDOR>().find("NVIDIA") != std::string::npos;
  if (info.nvidia) info.capability = capability(device);
  return info;
}

Limits limits(const cl::Device& device) {
  const DeviceInfo info = describe(device);
  Limits l;
  l.work_group = device.getInfo<CL_DEVICE_MAX_WORK_GROUP_SIZE>();
  const auto items = device.getInfo<CL_DEVICE_MAX_WORK_ITEM_SIZES>();
  std::copy_n(items.begin(), std::min(items.size(), l.items.size()), l.items.begin());
  l.kernel_work_group = l.work_group;
  l.local_bytes = device.getInfo<CL_DEVICE_LOCAL_MEM_SIZE>();
  if (info.capability == 90) l.local_bytes = std::max(l.local_bytes, kHopperLocalBytes);
  // A CPU device keeps the private memory of a whole work-group on one thread's stack and
  // overflows it without a word; half of it is left to the driver.
  l.private_bytes = info.type == "CPU" ? stack_bytes() / 2 : kNvidiaPrivatePerItem * l.work_group;
  l.allocation = device.getInfo<CL_DEVICE_MAX_MEM_ALLOC_SIZE>();
  l.memory = device.getInfo<CL_DEVICE_GLOBAL_MEM_SIZE>();
  return l;
}

std::optional<PciAddress> pci_address(const cl::Device& device) {
  cl_int error = CL_SUCCESS;
  const auto ask = [&](cl_device_info what) {
    cl_uint value = 0;
    error |= clGetDeviceInfo(device(), what, sizeof value, &value, nullptr);
    return static_cast<int>(value);
  };
  const PciAddress address{ask(kPciDomain), ask(kPciBus), ask(kPciSlot) >> 3};
  if (error != CL_SUCCESS) return std::nullopt;
  return address;
}

std::string label(const cl::Device& device) {
  const DeviceInfo info = describe(device);
  return info.platform + " / " + info.name;
}

cl::Device choose(std::span<const cl::Device> all, std::string_view wanted) {
  if (all.empty()) throw NoSuchDevice("no OpenCL device: " + why_no_devices());
  const std::string word = folded(wanted);
  if (word.empty()) {
    const auto gpu = std::find_if(all.begin(), all.end(), [](const cl::Device& d) {
      return (d.getInfo<CL_DEVICE_TYPE>() & CL_DEVICE_TYPE_GPU) != 0;
    });
    return gpu == all.end() ? all.front() : *gpu;
  }
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  const bool is_index = error == std::errc() && end == word.data() + word.size();
  if (is_index && index < all.size()) return all[index];
  std::string known;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string text = label(all[i]);
    if (!is_index && folded(text).find(word) != std::string::npos) return all[i];
    known += fmt::format("\n  {}  {}", i, text);
  }
  throw NoSuchDevice(fmt::format("no OpenCL device matches \"{}\"; there are:{}", wanted, known));
}

std::string describe(const cl::Error& error) {
  static constexpr struct {
    cl_int code;
    const char* name;
  } kNames[] = {{CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"},
                {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
                {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
                {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
                {CL_PROFILING_INFO_NOT_AVAILABLE, "CL_PROFILING_INFO_NOT_AVAILABLE"},
                {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE"},
                {CL_INVALID_KERNEL_NAME, "CL_INVALID_KERNEL_NAME"},
                {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS"},
                {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE"},
                {CL_INVALID_WORK_ITEM_SIZE, "CL_INVALID_WORK_ITEM_SIZE"},
                {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"},
                {-9999, "an illegal access inside a kernel (NVIDIA)"}};
  const auto* const known =
      std::find_if(std::begin(kNames), std::end(kNames),
                   [&](const auto& entry) { return entry.code == error.err(); });
  return fmt::format("{} failed with {} ({})", error.what(),
                     known == std::end(kNames) ? "an OpenCL error" : known->name, error.err());
}

}  // namespace gpu
