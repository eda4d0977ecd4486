// Aligned memory, and the advice to the kernel (Linux: transparent huge pages).
#include "cpu/pages.hpp"

#include <sys/mman.h>

#include <fstream>
#include <limits>
#include <new>
#include <string>

namespace cpu {

namespace {
constexpr std::size_t kLine = 64;  // bytes; also the widest vector register
}  // namespace

void* allocate(std::size_t bytes) {
  const std::size_t unit = bytes >= kHugePage / 4 ? kHugePage : kLine;
  const std::size_t whole = (bytes + unit - 1) / unit * unit;
  void* const memory = std::aligned_alloc(unit, whole);
  if (memory == nullptr) throw std::bad_alloc();
  if (unit == kHugePage) madvise(memory, whole, MADV_HUGEPAGE);  // in vain: ordinary pages
  return memory;
}

std::size_t free_memory() {
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("MemAvailable:"))  // in kB
      return std::stoull(line.substr(line.find(':') + 1)) << 10U;
  return std::numeric_limits<std::size_t>::max();
}

}  // namespace cpu
