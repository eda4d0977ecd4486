// The workspace and the list of all CPU tables.
#include "cpu/cpu.hpp"

#include "cpu/pages.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

namespace cpu {

void Workspace::Free::operator()(float* p) const { std::free(p); }

std::span<float> Workspace::floats(std::size_t count) {
  if (count > capacity_) {
    capacity_ = 0;
    const std::size_t bytes = std::max(count * sizeof(float), kHugePage);
    scratch_.reset(static_cast<float*>(allocate(bytes)));
    capacity_ = bytes / sizeof(float);
  }
  return {scratch_.get(), count};
}

int allowed_threads() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  const int allowed = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 1;
  // "max 100000" where there is no quota: the extraction of a number then fails.
  std::ifstream quota_file("/sys/fs/cgroup/cpu.max");
  double quota = 0;
  double period = 0;
  if (!(quota_file >> quota >> period) || period <= 0) return allowed;
  return std::clamp(static_cast<int>(std::ceil(quota / period)), 1, allowed);
}

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const auto table :
       {loop_variants(), step_variants(), packed_variants(), gemv_variants(), eigen_variants()})
    all.insert(all.end(), table.begin(), table.end());
  return all;
}

}  // namespace cpu
