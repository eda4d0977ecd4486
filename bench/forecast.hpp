// How long a row will take, from the times of smaller products: what --budget is held against.
#pragma once

#include "bench/problem.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

namespace bench {

/// A row that would take longer than allowed; the message is its prediction.
struct OverBudget : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Forecast {
 public:
  /// Wall time in seconds of one product of the variant at this n; none where it cannot run there.
  using Probe = std::function<std::optional<double>(std::size_t n)>;

  /// `budget` seconds a row, 0: no limit.
  explicit Forecast(double budget) : budget_(budget) {}

  /// What one product took.
  void note(const std::string& variant, std::size_t n, double seconds) {
    seconds_[variant][n] = seconds;
  }

  /// Throws OverBudget if `products` of the variant at n are predicted to take too long. The time
  /// at the largest smaller n is scaled by the number of operations. Where that is too long, twice
  /// that n is tried, as long as the budget allows it: what small products leave idle of a device
  /// is no measure of it.
  void allow(const std::string& variant, std::size_t n, double products, const Probe& probe);

 private:
  double budget_;
  std::map<std::string, std::map<std::size_t, double>> seconds_;
};

}  // namespace bench
