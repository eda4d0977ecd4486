// The test of the clocks; see the header.
#include "bench/selftest.hpp"

#include "gpu/peaks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLong = 1e-3;       // seconds from which the clocks have to agree
constexpr double kAgreement = 0.03;  // of the event's time
constexpr int kReadings = 1000;
constexpr int kTries = 10;  // each of them at least doubles the length

double host_step() {
  double least = 1;
  for (int i = 0; i < kReadings; ++i) {
    const auto before = Clock::now();
    auto after = before;
    while (after == before) after = Clock::now();
    least = std::min(least, std::chrono::duration<double>(after - before).count());
  }
  return least;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Medians of both clocks over `launches` runs, after one that compiles and warms up.
ClockPoint measure(const gpu::Peak& peak, int launches) {
  peak.run();
  std::vector<double> events;
  std::vector<double> walls;
  for (int i = 0; i < launches; ++i) {
    const auto begin = Clock::now();
    events.push_back(peak.run());
    walls.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return {0, median(events), median(walls), 0};
}

// The number of rounds that take about `seconds`, from the speed of another launch.
std::size_t rounds_for(double seconds, const ClockPoint& known) {
  const double rounds = static_cast<double>(known.rounds) * seconds / known.event;
  return static_cast<std::size_t>(std::max(1.0, std::round(rounds)));
}

void look_at_device(Machine& machine, bool thorough, ClockReport& report) {
  gpu::Session& session = *machine.session;
  report.timer_step = session.info().timer_ns * 1e-9;
  const int launches = thorough ? 21 : 5;
  const double overhead = measure(gpu::prepare_launch(session, 1), 10 * launches).wall;
  const std::vector<double> lengths =
      thorough ? std::vector<double>{1e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2}
               : std::vector<double>{2e-3};
  const auto measure_rounds = [&](std::size_t rounds) {
    ClockPoint point = measure(gpu::prepare_fma(session, rounds), launches);
    point.rounds = rounds;
    point.overhead = overhead;
    return point;
  };
  const ClockPoint first = measure_rounds(64);
  for (const double length : lengths)
    report.points.push_back(launch_of(length, first, measure_rounds));
}

const ClockPoint* worst(const ClockReport& report) {
  const ClockPoint* found = nullptr;
  for (const ClockPoint& point : report.points)
    if (point.event > kLong &&
        (found == nullptr || std::abs(point.ratio() - 1) > std::abs(found->ratio() - 1)))
      found = &point;
  return found;
}

}  // namespace

ClockPoint launch_of(double seconds, ClockPoint known,
                     const std::function<ClockPoint(std::size_t)>& measure_rounds) {
  for (int i = 0; i < kTries; ++i) {
    known = measure_rounds(rounds_for(seconds, known));
    if (known.event > seconds / 2) break;
  }
  return known;
}

ClockReport test_clocks(Machine& machine, bool thorough) {
  ClockReport report;
  report.host_step = host_step();
  if (!machine.session) return report;
  try {
    look_at_device(machine, thorough, report);
  } catch (const cl::Error& error) {
    report.failure = gpu::describe(error);
  } catch (const std::exception& error) {
    report.failure = error.what();
  }
  return report;
}

bool agree(const ClockReport& report) {
  if (!report.failure.empty()) return false;
  const ClockPoint* const point = worst(report);
  return point == nullptr ? report.points.empty() : std::abs(point->ratio() - 1) <= kAgreement;
}

std::string summary(const ClockReport& report) {
  const std::string host = fmt::format("host clock step {:.0f} ns", report.host_step * 1e9);
  if (!report.failure.empty()) return fmt::format("failed: {}; {}", report.failure, host);
  const ClockPoint* const point = worst(report);
  if (report.points.empty()) return fmt::format("ok: {}", host);
  if (point == nullptr)
    return fmt::format("not tested: no launch took more than {:.0f} ms; {}", kLong * 1e3, host);
  return fmt::format("{}: wall/event {:.3f} at {:.2f} ms, launch {:.1f} us, {}",
                     agree(report) ? "ok" : "failed", point->ratio(), point->event * 1e3,
                     point->overhead * 1e6, host);
}

std::string table(const ClockReport& report) {
  std::string text = fmt::format("host clock: steps of {:.0f} ns\n", report.host_step * 1e9);
  if (!report.failure.empty()) return text + fmt::format("device clock: {}\n", report.failure);
  if (report.points.empty()) return text + "device clock: there is no device\n";
  text += fmt::format("event timer: steps of {:.0f} ns by the device's own word\n",
                      report.timer_step * 1e9);
  text += fmt::format(
      "launch of an empty kernel: {:.1f} us of wall time\n\n{:>10} {:>12} {:>12} "
      "{:>14}\n",
      report.points.front().overhead * 1e6, "rounds", "event ms", "wall ms", "wall/event¹");
  for (const ClockPoint& p : report.points)
    text += fmt::format("{:>10} {:>12.4f} {:>12.4f} {:>13.4f}{}\n", p.rounds, p.event * 1e3,
                        p.wall * 1e3, p.ratio(),
                        p.event > kLong && std::abs(p.ratio() - 1) > kAgreement ? " !" : "");
  const char* verdict = agree(report) ? "it is" : "IT IS NOT";
  if (worst(report) == nullptr) verdict = "NOT TESTED, no launch took so long";
  return text + fmt::format(
                    "\n¹ without the launch's own cost; beyond 1 ms it must be within {:.0f} "
                    "% of 1: {}\n",
                    100 * kAgreement, verdict);
}

}  // namespace bench
