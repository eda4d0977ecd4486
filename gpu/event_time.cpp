// Judging event stamps; see the header.
#include "gpu/event_time.hpp"

#include <fmt/format.h>

#include <utility>

namespace gpu {

namespace {

// A wall time this many times longer than the event's means other units than nanoseconds, unless
// the launch is so short that its overhead explains the gap.
constexpr double kWallRatio = 20;
constexpr double kOverheadNs = 50e3;
// A launch that ended may exceed the host's interval only by the error of two clocks.
constexpr double kClockSlack = 1.05;

EventTime invalid(std::string why) { return {Trust::kInvalid, 0, std::move(why)}; }

}  // namespace

std::string doubt(double ns, const Plausible& p) {
  if (ns < p.minimum_ns)
    return fmt::format("{:.0f} ns is faster than the device's peak allows", ns);
  if (p.wall_ns > 0 && ns > p.wall_ns * kClockSlack)
    return fmt::format("{:.0f} ns is longer than the {:.0f} ns of wall time around it", ns,
                       p.wall_ns);
  if (p.wall_ns > kOverheadNs && p.wall_ns > ns * kWallRatio)
    return fmt::format("{:.0f} ns within {:.0f} ns of wall time: are these ns?", ns, p.wall_ns);
  return {};
}

EventTime judge(const Stamps& s, const Plausible& p) {
  if (s.status < 0) return invalid(fmt::format("the launch failed with status {}", s.status));
  if (s.status > 0) return invalid("the launch has not completed");
  if (s.query != 0)
    return invalid(fmt::format("the driver gives no profiling times (error {})", s.query));
  if (!s.start || !s.end) return invalid("the driver reported success and wrote no time stamps");
  if (*s.start == 0 && *s.end == 0) return invalid("the driver's time stamps are all zero");
  if (*s.start == 0 && s.queued) return invalid("the driver's START stamp is zero");
  if (*s.end < *s.start) return invalid("the event ends before it starts");
  const auto ns = static_cast<double>(*s.end - *s.start);
  if (ns == 0 || ns < p.timer_ns)
    return {Trust::kTooShort, 0, "the launch is shorter than the device's timer resolves"};
  std::string why = doubt(ns, p);
  return {why.empty() ? Trust::kOk : Trust::kSuspicious, ns * 1e-9, std::move(why)};
}

}  // namespace gpu
