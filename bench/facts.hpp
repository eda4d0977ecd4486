// The facts that explanations rest on, collected from a device: see bench/explain.
#pragma once

#include "bench/cases.hpp"
#include "bench/explain.hpp"
#include "bench/peaks.hpp"

namespace bench {

/// Of a variant that took `seconds` at n. Builds the kernel where it is not yet built; throws as
/// Session::prepare.
KernelFacts kernel_facts(gpu::Session& session, const gpu::Variant& variant, std::size_t n,
                         double seconds);

/// How the items of one slice share a tile. Where the kernel has SLICES, its work-group is so many
/// sets of work-items that own the same tile of C, each set for a part of k.
gpu::Geometry geometry_of_a_slice(const gpu::Variant& variant);

/// The device's roofs, with those that only explanations need measured now.
DeviceRoofs device_roofs(Machine& machine, const Roofs& roofs);

}  // namespace bench
