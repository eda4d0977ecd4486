// The roofline model; see the header.
#include "bench/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace bench {

namespace {

// Two measurements of one machine differ by clock and neighbours; less than this proves nothing.
constexpr double kSlack = 1.05;

}  // namespace

double least_seconds(const Work& work, const Roofs& roofs) {
  return std::max(roofs.flops > 0 ? work.flops / roofs.flops : 0,
                  roofs.bytes > 0 ? work.bytes / roofs.bytes : 0);
}

double percent_of_roof(const Work& work, const Roofs& roofs, double seconds) {
  return seconds > 0 ? 100 * least_seconds(work, roofs) / seconds : 0;
}

bool on_matrix_units(std::string_view name) {
  constexpr std::array kWords = {"TensorCore", "Tf32", "TF32"};
  return std::ranges::any_of(
      kWords, [name](const char* word) { return name.find(word) != std::string_view::npos; });
}

std::string remark(const Work& work, const Roofs& roofs, double seconds) {
  if (roofs.flops > 0 && work.flops > roofs.flops * seconds * kSlack)
    return fmt::format("suspicious: {:.0f} GFLOP/s is faster than the measured peak of {:.0f}",
                       work.flops / seconds * 1e-9, roofs.flops * 1e-9);
  if (roofs.bytes > 0 && work.bytes > roofs.bytes * seconds * kSlack)
    return fmt::format("cache: {:.0f} GB/s is more than the {:.0f} GB/s of a copy in memory",
                       work.bytes / seconds * 1e-9, roofs.bytes * 1e-9);
  return {};
}

}  // namespace bench
