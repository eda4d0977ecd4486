// Three replacements over the text of a program; see the header for what they are for.
#include "gpu/retarget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace gpu {

namespace {

constexpr std::string_view kTarget = ".target sm_90", kGroupSize = ".reqntid";
constexpr int kHopper = 90;

void drop_marks(std::string& ptx) {
  for (std::size_t at = 0; (at = ptx.find(kMark, at)) != std::string::npos;)
    ptx.erase(at, kMark.size());
}

void choose_target(std::string& ptx) {
  const std::size_t at = ptx.find(kTarget);
  if (at == std::string::npos)
    throw std::invalid_argument(
        "no line '.target sm_90' in the program binary: it is not PTX for Hopper");
  const std::size_t end = at + kTarget.size();
  if (ptx.compare(end, 1, "a") != 0) ptx.insert(end, "a");
}

void fix_register_count(std::string& ptx) {
  for (std::size_t at = 0; (at = ptx.find(kGroupSize, at)) != std::string::npos;) {
    at = ptx.find('\n', at);
    if (at == std::string::npos) return;
    ptx.insert(at, "\n.minnctapersm 1");
  }
}

}  // namespace

std::string obstacle(std::string_view source, int capability) {
  if (source.find(kMark) == std::string_view::npos || capability == kHopper) return {};
  return fmt::format("needs an NVIDIA GPU of compute capability 9.0 exactly, this has {}.{}",
                     capability / 10, capability % 10);
}

std::string retarget_ptx(std::string ptx) {
  ptx.resize(std::min(ptx.find('\0'), ptx.size()));
  choose_target(ptx);
  drop_marks(ptx);
  fix_register_count(ptx);
  return ptx;
}

}  // namespace gpu
