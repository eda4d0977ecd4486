// Conditions of a measurement; see the header.
#include "bench/conditions.hpp"

#include "cpu/caches.hpp"

#include <fmt/format.h>

#include <fstream>

namespace bench {

namespace {

// A load of half a process is what an editor and a terminal make.
constexpr double kBusy = 0.5;
constexpr double kDrift = 0.1;

// A supply of type Mains that is offline; machines without any are on mains.
bool on_battery(const std::filesystem::path& supplies) {
  std::error_code none;
  for (const auto& supply : std::filesystem::directory_iterator(supplies, none))
    if (cpu::first_word(supply.path() / "type") == "Mains" &&
        cpu::first_word(supply.path() / "online") == "0")
      return true;
  return false;
}

}  // namespace

Conditions read_conditions(const std::filesystem::path& root) {
  Conditions c;
  std::ifstream(root / "proc/loadavg") >> c.load;
  c.governor = cpu::first_word(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  c.on_battery = on_battery(root / "sys/class/power_supply");
  return c;
}

std::vector<std::string> warnings(const Conditions& c) {
  std::vector<std::string> lines;
  if (c.build_type != "Release")
    lines.push_back(fmt::format("a {} build measures the compiler's checks; use the preset release",
                                c.build_type));
  if (c.threads > c.allowed_threads)
    lines.push_back(fmt::format("{} threads on {} that this process may use: they take turns",
                                c.threads, c.allowed_threads));
  if (c.load > kBusy)
    lines.push_back(
        fmt::format("the machine is busy: {:.1f} processes over the last minute; "
                    "times will be long and spread",
                    c.load));
  if (c.governor == "powersave")
    lines.push_back("the CPU's frequency governor is powersave; choose performance to measure");
  if (c.on_battery) lines.push_back("the machine runs on battery, which lowers its clocks");
  return lines;
}

std::string drift(const std::string& row, const std::vector<double>& seconds) {
  if (seconds.size() < 2 || seconds.front() <= 0) return {};
  const double change = seconds.back() / seconds.front() - 1;
  if (change < kDrift && change > -kDrift) return {};
  return fmt::format("drift: {}: the last repetition took {:+.0f} % against the first", row,
                     100 * change);
}

}  // namespace bench
