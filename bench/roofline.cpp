// The roofline model; see the header.
#include "bench/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace bench {

namespace {

// Two measurements of one machine differ by clock and neighbours; less than this proves nothing.
constexpr double kSlack = 1.05;
// Of data so many times a cache's size it holds too little to matter.
constexpr double kBeyond = 4;

// In thousand millions, with digits that tell two small rates apart.
std::string rate(double per_second) {
  const double giga = per_second * 1e-9;
  return giga < 100 ? fmt::format("{:.3g}", giga) : fmt::format("{:.0f}", giga);
}

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

bool beats_peak(const Work& work, const Roofs& roofs, double seconds) {
  return roofs.flops > 0 && work.flops > roofs.flops * seconds * kSlack;
}

std::string remark(const Work& work, const Roofs& roofs, double seconds) {
  if (beats_peak(work, roofs, seconds))
    return fmt::format("suspicious: {} GFLOP/s is faster than the measured peak of {}",
                       rate(work.flops / seconds), rate(roofs.flops));
  if (roofs.bytes > 0 && work.bytes > roofs.bytes * seconds * kSlack)
    return fmt::format("{}: {:.0f} GB/s is more than the {:.0f} GB/s of a copy in memory",
                       roofs.cache > 0 && work.bytes > kBeyond * roofs.cache ? "reads" : "cache",
                       work.bytes / seconds * 1e-9, roofs.bytes * 1e-9);
  return {};
}

}  // namespace bench
