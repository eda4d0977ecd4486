// What the machine can do at most, measured: arithmetic that touches no memory, and memory traffic
// without arithmetic. The other rows are read as a fraction of these.
#pragma once

#include "cpu/cpu.hpp"

#include <cstddef>

namespace cpu {

/// Multiply-adds on registers only, on all of the Workspace's threads, for a fraction of a
/// millisecond. Returns the number of floating-point operations done: 2 for each multiply-add.
double run_fma(Workspace& workspace);

/// Streaming traffic over `bytes` in all, evenly cut between the threads: the size chooses the
/// cache level. The memory is written once by the threads that will use it, so that every page
/// exists.
class Traffic {
 public:
  Traffic(std::size_t bytes, int threads);

  /// Both return the bytes read and written; small sizes are gone through several times in a call.
  double read();  ///< sums everything up
  double copy();  ///< copies the first half of each thread's part to its second half

 private:
  Workspace workspace_;
  std::size_t each_;  // floats a thread
  std::size_t passes_;
  float* data_;
};

}  // namespace cpu
