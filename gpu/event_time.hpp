// From the profiling stamps of an event to a time that can be trusted, or to the reason why not.
// Pure logic: drivers are known to report zeros, stale, swapped and wrapped stamps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gpu {

/// What the driver said of one event (or of several: start of the first, end of the last). A stamp
/// is empty where the call succeeded and wrote nothing: preset the outputs, then compare.
struct Stamps {
  std::optional<std::uint64_t> start, end;  // ns
  std::optional<std::uint64_t> queued;      // only to tell a START of zero from a clock's origin
  std::int32_t query = 0;                   // return code of the profiling query, CL_SUCCESS = 0
  std::int32_t status = 0;                  // execution status, CL_COMPLETE = 0
};

/// What is known besides the stamps; zero where it is not known.
struct Plausible {
  double timer_ns = 0;    // CL_DEVICE_PROFILING_TIMER_RESOLUTION: a lower bound, not a factor
  double wall_ns = 0;     // the host interval that contains the launch
  double minimum_ns = 0;  // flops over the measured peak
};

enum class Trust { kOk, kTooShort, kInvalid, kSuspicious };

/// `seconds` is set for kOk and kSuspicious only; `why` is a sentence for all but kOk.
struct EventTime {
  Trust trust;
  double seconds = 0;
  std::string why;
};

/// Why a time of `ns` cannot be believed, as a sentence; empty if nothing speaks against it. Pass
/// means of several launches with their mean wall time: a single launch may have been preempted.
std::string doubt(double ns, const Plausible& plausible);

/// The time is END − START alone, as a signed difference. QUEUED and SUBMIT play no part:
/// compilation and queueing sit between them, and some drivers stamp START before SUBMIT.
EventTime judge(const Stamps& stamps, const Plausible& plausible);

}  // namespace gpu
