// What speaks against trusting a measurement on this machine today: one line each, before the run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace bench {

/// The facts, as far as the system tells them.
struct Conditions {
  std::string build_type;
  int threads = 0, allowed_threads = 0;
  double load = 0;       // runnable processes, mean of the last minute
  std::string governor;  // of CPU frequency; empty: unknown
  bool on_battery = false;
};

/// Reads load, governor and power supply below `root`, which tests put elsewhere.
Conditions read_conditions(const std::filesystem::path& root = "/");

/// One sentence for each thing that is wrong and what to do; empty on a machine fit to measure on.
std::vector<std::string> warnings(const Conditions& conditions);

/// How the last of some repetitions compares with the first: a sentence if they are more than a
/// tenth apart, else empty. `seconds` in the order of measuring.
std::string drift(const std::string& row, const std::vector<double>& seconds);

}  // namespace bench
