// Cold caches: one product in so many copies of its operands that each run finds its own displaced
// from the last-level cache by the others'. Costs memory, and no time beside the kernel's: a flush
// between the launches would take longer than most of them.
#pragma once

#include "bench/cases.hpp"

#include <cstddef>
#include <functional>
#include <memory>

namespace bench {

/// How many copies of `bytes` it takes to displace a cache of `cache` bytes, within `memory` bytes;
/// at least one, which is cold by itself where a product is larger than the cache.
std::size_t copies(double bytes, std::size_t cache, std::size_t memory);

/// A runner that goes round `count` runners of the same product, each with its own operands, which
/// are written here. On the CPU side (`on_device` false) it keeps the copies of the operands.
std::unique_ptr<Runner> rotating(const std::function<std::unique_ptr<Runner>()>& prepare,
                                 const Operands& operands, std::size_t count, bool on_device);

}  // namespace bench
