// The data caches of this machine, from which block sizes are derived.
// Contract: bytes as one core sees them; never 0 (a sane value stands in for what the system
// hides).
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace cpu {

struct Caches {
  std::size_t l1;  ///< level 1 data cache of one core
  std::size_t l2;  ///< level 2 cache of one core
  std::size_t l3;  ///< last level, as the system reports it (often shared by several cores)
};

/// Read once from the system: sysfs first, sysconf next.
const Caches& caches();

/// The first word of a file, which is all that most files of sysfs hold; empty if there is none.
std::string first_word(const std::filesystem::path& file);

}  // namespace cpu
