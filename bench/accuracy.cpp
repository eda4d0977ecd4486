// Errors of real-valued products; see the header.
#include "bench/accuracy.hpp"

#include "gpu/variants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace bench {

namespace {

constexpr std::size_t kMostRows = 256;  // in double they take as long as a fast product takes whole
constexpr double kUnit = gpu::kFloat32Epsilon;

// How good a yardstick the row is; 0: none.
int rank(const Case& row) {
  if (row.variant.ends_with("/CPU/Eigen")) return 1;
  const bool peer = row.variant.find("/Peer") != std::string::npos;
  return peer && row.epsilon == gpu::kFloat32Epsilon ? 2 + static_cast<int>(row.on_device) : 0;
}

std::string cell(double error, double of_yardstick) {
  const std::string ratio =
      of_yardstick > 0 ? fmt::format("({:.2f}x)", error / of_yardstick) : std::string();
  return fmt::format("  {:>8.4g} {:<9}", error, ratio);
}

}  // namespace

std::vector<Sample> samples(const Shape& shape) {
  std::vector<Sample> all;
  for (const auto& [values, name] : kRealValues) {
    Operands operands = make_operands(shape, values);
    Exact exact = bench::exact(operands, kMostRows);
    all.push_back({std::move(operands), std::move(exact)});
  }
  return all;
}

Errors worst_errors(Runner& runner, std::span<Sample> samples) {
  Errors errors{};
  for (std::size_t i = 0; i < errors.size(); ++i) {
    Operands& operands = samples[i].operands;
    poison(operands);
    runner.write_inputs(operands);
    runner.write_output(operands);
    runner.run(1);
    runner.read_output(operands);
    const auto k = static_cast<double>(operands.shape.k);
    errors[i] = worst_error(operands, samples[i].exact, kUnit) * k;
  }
  return errors;
}

std::string beyond_bound(const Errors& errors, std::size_t k, double epsilon) {
  const double bound = epsilon / kUnit * static_cast<double>(k);
  for (std::size_t i = 0; i < errors.size(); ++i)
    if (!(errors[i] <= bound))
      return fmt::format("inexact: {:.3g} times its bound for {} inputs", errors[i] / bound,
                         kRealValues[i].second);
  return {};
}

const Case& yardstick(std::span<const Case> cases, Op op) {
  return *std::ranges::max_element(
      cases, {}, [op](const Case& row) { return op_of(row.variant) == op ? rank(row) : -1; });
}

std::string accuracy_table(std::vector<Exactness> rows, std::span<const Case> cases) {
  std::size_t width = std::string_view("variant").size();
  for (const Exactness& row : rows) width = std::max(width, row.variant.size());
  std::ranges::stable_sort(
      rows, {}, [](const Exactness& row) { return std::pair(op_of(row.variant), row.n); });
  std::string text = fmt::format("{:<{}} {:>6}", "variant", width, "n");
  for (const auto& [values, name] : kRealValues) text += fmt::format("  {:<18}", name);
  text += '\n';
  std::set<std::string> held_against;
  for (const Exactness& row : rows) {
    const std::string& against = yardstick(cases, op_of(row.variant)).variant;
    held_against.insert(against);
    const auto found = std::ranges::find_if(
        rows, [&](const Exactness& other) { return other.variant == against && other.n == row.n; });
    std::string line = fmt::format("{:<{}} {:>6}", row.variant, width, row.n);
    for (std::size_t i = 0; i < row.errors.size(); ++i)
      line += cell(row.errors[i], found == rows.end() ? 0 : found->errors[i]);
    text += line.erase(line.find_last_not_of(' ') + 1) + '\n';
  }
  text += fmt::format(
      "\nthe largest |c - exact| of at most {} rows of C, in units of 2^-23 (|A||B|)ij;\n"
      "(x): over that of {} on the same data\n",
      kMostRows, fmt::join(held_against, ", "));
  return text;
}

}  // namespace bench
