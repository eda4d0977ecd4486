// Prediction; see the header.
#include "bench/forecast.hpp"

#include <fmt/format.h>

#include <iterator>

namespace bench {

namespace {

constexpr std::size_t kSmallest = 128;  // what is tried where nothing is known

}  // namespace

void Forecast::allow(const std::string& variant, std::size_t n, double products,
                     const Probe& probe) {
  if (budget_ == 0 || n <= kSmallest) return;
  auto& known = seconds_[variant];
  if (known.contains(n)) return;
  const auto try_at = [&](std::size_t at) {
    const auto seconds = probe(at);
    if (seconds) known[at] = *seconds;
    return seconds.has_value();
  };
  const auto above = known.lower_bound(n);
  std::size_t at = above == known.begin() ? kSmallest : std::prev(above)->first;
  if (!known.contains(at) && !try_at(at)) return;
  const Op op = op_of(variant);
  const auto predicted = [&](std::size_t size) {
    return known[at] * flops(square(op, size)) / flops(square(op, at));
  };
  const auto allowed = [&](std::size_t size) { return predicted(size) * products <= budget_; };
  while (!allowed(n) && 2 * at < n && allowed(2 * at) && try_at(2 * at)) at *= 2;
  if (allowed(n)) return;
  throw OverBudget(fmt::format(
      "predicted {:.1f} s a product, {:.0f} s for the row, from {:.4g} s at n = {}; --budget={} "
      "allows less (--budget=0 runs everything)",
      predicted(n), predicted(n) * products, known[at], at, budget_));
}

}  // namespace bench
