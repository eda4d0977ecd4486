// Cache sizes from sysfs (which knows hybrid and ARM machines), else sysconf (glibc on x86), else
// sizes that every machine of the last ten years has.
#include "cpu/caches.hpp"

#include <unistd.h>

#include <fstream>
#include <optional>

namespace cpu {
namespace {

constexpr std::size_t kKiB = 1024;

/// The data or unified cache of this level as sysfs tells it ("1024K").
std::optional<std::size_t> from_sysfs(int level) {
  const std::string root = "/sys/devices/system/cpu/cpu0/cache/index";
  for (int index = 0;; ++index) {
    const std::string folder = root + std::to_string(index);
    const auto type = first_word(folder + "/type");
    if (type.empty()) return std::nullopt;
    if (type == "Instruction" || first_word(folder + "/level") != std::to_string(level)) continue;
    std::ifstream file(folder + "/size");
    std::size_t size = 0;
    if (!(file >> size) || size == 0) return std::nullopt;
    return size * (file.peek() == 'M' ? kKiB * kKiB : kKiB);
  }
}

std::size_t size_of(int level, int sysconf_name, std::size_t fallback) {
  if (const auto size = from_sysfs(level)) return *size;
  const long size = sysconf(sysconf_name);
  return size > 0 ? static_cast<std::size_t>(size) : fallback;
}

}  // namespace

std::string first_word(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string word;
  stream >> word;
  return word;
}

const Caches& caches() {
  static const Caches found{.l1 = size_of(1, _SC_LEVEL1_DCACHE_SIZE, 32 * kKiB),
                            .l2 = size_of(2, _SC_LEVEL2_CACHE_SIZE, 256 * kKiB),
                            .l3 = size_of(3, _SC_LEVEL3_CACHE_SIZE, 4096 * kKiB)};
  return found;
}

}  // namespace cpu
