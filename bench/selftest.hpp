// Whether the clocks can be believed: launches of known length by the device's events and by the
// host's clock, the smallest step of both clocks, and what an event costs.
#pragma once

#include "bench/cases.hpp"

#include <functional>
#include <string>
#include <vector>

namespace bench {

/// One launch length: the medians of several launches, in seconds.
struct ClockPoint {
  std::size_t rounds;   // of multiply-adds: the known length
  double event = 0;     // END − START
  double wall = 0;      // enqueue to return of the wait
  double overhead = 0;  // wall time of the empty launch

  /// Wall time without the launch's own cost over the event's: 1 where the clocks agree.
  [[nodiscard]] double ratio() const { return (wall - overhead) / event; }
};

struct ClockReport {
  double host_step = 0;   // smallest difference of two readings of the host's clock, seconds
  double timer_step = 0;  // what the device claims of its event timer
  std::vector<ClockPoint> points;
  std::string failure;  // why the device's clock could not be looked at; empty if it was
};

/// A launch that takes at least half of `seconds`: the number of rounds is derived from `known`,
/// which a busy machine may have made slow, and raised until that is so. Of some tries the last.
ClockPoint launch_of(double seconds, ClockPoint known,
                     const std::function<ClockPoint(std::size_t)>& measure_rounds);

/// A few launches where `thorough` is false (some tens of milliseconds), else lengths from a tenth
/// of a millisecond to 50. Never throws. Without a device only the host's clock is looked at.
ClockReport test_clocks(Machine& machine, bool thorough);

/// Whether events and wall time agree within 3 % for every launch of more than a millisecond. Not
/// if a device had no such launch.
bool agree(const ClockReport& report);

/// One line for the context: "ok: …", "failed: …" or "not tested: …".
std::string summary(const ClockReport& report);
/// The table that --selftest prints.
std::string table(const ClockReport& report);

}  // namespace bench
