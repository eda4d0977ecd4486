// What one build of a kernel takes from a compute unit: memory, registers, and how many work-groups
// that leaves room for. Pure logic but for the driver's answers, which gpu/session collects.
#pragma once

#include "gpu/limits.hpp"

#include <cstddef>
#include <optional>
#include <string_view>

namespace gpu {

/// Bytes and registers of one work-item; local memory of one work-group. Empty: not told.
struct Resources {
  std::size_t private_bytes = 0;  // CL_KERNEL_PRIVATE_MEM_SIZE; drivers differ in its meaning
  std::size_t local_bytes = 0;    // CL_KERNEL_LOCAL_MEM_SIZE
  std::size_t array_bytes = 0;    // of a private array as long as a row, by the source
  std::optional<std::size_t> registers;    // 32 bits each
  std::optional<std::size_t> stack_bytes;  // private arrays that found no registers
  std::optional<std::size_t> spill_bytes;  // stored to make room for others
};

/// Bytes of local memory, from what the driver says: NVIDIA's reports one for a kernel without any.
std::size_t local_memory(std::size_t reported);

/// Registers, stack and spills of `kernel` from the log of NVIDIA's compiler (-cl-nv-verbose).
Resources parse_log(std::string_view log, std::string_view kernel);

/// Words loaded for each multiply-add in the innermost loop: a work-item that holds x×y sums loads
/// x + y words for x·y multiply-adds, wherever they come from. Only the geometry counts.
double loads_per_multiply_add(const Geometry& geometry);

/// Work-groups that share a compute unit at a time; empty where the device's kind is not known.
/// `capability` as DeviceInfo; a CPU's unit is a core, which takes one after the other.
std::optional<std::size_t> resident_groups(const Resources& resources, std::size_t work_group,
                                           int capability, bool cpu);

}  // namespace gpu
