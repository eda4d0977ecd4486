// The measured ceilings of a device: multiply-adds in registers, copies, local memory, launches and
// transfers. What a product cannot beat is measured here, not taken from a data sheet.
// Errors: as gpu/session.
#pragma once

#include "gpu/session.hpp"

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace gpu {

/// One ceiling bound to a session's device, which must outlive it.
struct Peak {
  double flops = 0, bytes = 0;  // what one run does
  std::function<double()> run;  // blocks; seconds by the event, 0 where the host's clock counts
  /// What is wrong with the result of the last run, as a sentence; empty if nothing is.
  std::function<std::string()> fault = [] { return std::string(); };
};

/// One row of the table. `n` is the row's size: multiply-adds of one chain, or floats that are
/// moved (rounds of loads for local memory, work-items of the empty launch).
struct PeakRow {
  std::string_view name;
  std::size_t n;
  bool by_events;
  Peak (*prepare)(Session&, std::size_t n);
};

std::span<const PeakRow> peaks();

/// A kernel of a length that can be chosen, for checks of the clock: `rounds` of peak_fma.
Peak prepare_fma(Session& session, std::size_t rounds);
/// The empty launch.
Peak prepare_launch(Session& session, std::size_t items);

}  // namespace gpu
