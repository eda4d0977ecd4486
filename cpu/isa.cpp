// A thin layer over hwy/targets.h, so that nobody else has to know Highway's bit masks.
#include "cpu/isa.hpp"

// The same selection as in the files that are compiled once per instruction set.
#include "cpu/simd.hpp"

#include <hwy/highway.h>
#include <hwy/targets.h>

#include <stdexcept>

namespace cpu {

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    names.emplace_back(hwy::TargetName(target));
  }
  return names;
}

std::string isa() { return available_isas().front(); }

void force_isa(const std::string& name) {
  hwy::SetSupportedTargetsForTest(0);
  std::string choices;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (name == hwy::TargetName(target)) hwy::SetSupportedTargetsForTest(target);
    choices += std::string(" ") + hwy::TargetName(target);
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  if (!name.empty() && isa() != name) {
    throw std::invalid_argument("no instruction set '" + name + "' here; choose one of:" + choices);
  }
}

}  // namespace cpu
