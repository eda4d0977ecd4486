// The OpenCL devices of this machine: list them, choose one, ask what it allows.
// Contract: the only header that includes CLHPP; failures are cl::Error, explained by describe().
#pragma once

#ifndef CL_HPP_ENABLE_EXCEPTIONS
#define CL_HPP_ENABLE_EXCEPTIONS
#endif
#include "gpu/limits.hpp"

#include <CL/opencl.hpp>

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace gpu {

/// A request that names no device; the message lists what there is.
struct NoSuchDevice : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What reports say of a device. Strings are as the driver gives them.
struct DeviceInfo {
  std::string platform, name, type, driver, version;
  unsigned compute_units = 0, clock_mhz = 0;
  double timer_ns = 0;  // profiling timer resolution
  bool nvidia = false;
  int capability = 0;  // NVIDIA compute capability, 90 for 9.0; 0 elsewhere
};

/// Where a device sits: what OpenCL and CUDA both know it by.
struct PciAddress {
  int domain, bus, device;
  bool operator==(const PciAddress&) const = default;
};

/// All devices of all platforms, in the loader's order; empty where there is no OpenCL at all.
std::vector<cl::Device> devices();

/// Why devices() is empty, and what to do: "there is no platform; install …".
std::string why_no_devices();

DeviceInfo describe(const cl::Device& device);
Limits limits(const cl::Device& device);

/// By cl_nv_device_attribute_query; empty where the driver does not tell.
std::optional<PciAddress> pci_address(const cl::Device& device);

/// "platform / device", what --device matches against.
std::string label(const cl::Device& device);

/// `wanted` is an index into `all` or a substring of a label, in letters of either case; empty
/// takes the first GPU, else the first device. Of several matches the first is taken. Spaces around
/// it do not count. Throws NoSuchDevice.
cl::Device choose(std::span<const cl::Device> all, std::string_view wanted);

/// "clEnqueueNDRangeKernel failed with CL_OUT_OF_RESOURCES (-5)".
std::string describe(const cl::Error& error);

}  // namespace gpu
