// What the machine can do at most, measured: arithmetic that touches no memory, and memory traffic
// without arithmetic. The other rows are read as a fraction of these.
#pragma once

#include <cstddef>

#include "cpu/cpu.hpp"

namespace cpu {

/// Multiply-adds on registers only, on all of the Workspace's threads, for a fraction of a
/// millisecond. Returns the number of floating-point operations done: 2 for each multiply-add.
double run_fma(Workspace& workspace);

/// Memory traffic over `bytes` in all, evenly cut between the Workspace's threads: the size chooses
/// the cache level. The scratch memory is the Workspace's; the first call of a size allocates.
/// `run_read` sums it up, `run_copy` copies its first half to its second half. Both return the
/// number of bytes that were read or written.
double run_read(std::size_t bytes, Workspace& workspace);
double run_copy(std::size_t bytes, Workspace& workspace);

}  // namespace cpu
