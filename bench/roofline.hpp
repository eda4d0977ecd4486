// The roofline model: how fast a piece of work could be at most, given what the machine was seen to
// do. Pure arithmetic; the ceilings come from bench/peaks. Source: Williams, Waterman and
// Patterson, "Roofline: an insightful visual performance model", 2009.
#pragma once

#include <string>
#include <string_view>

namespace bench {

/// The work of one run: operations, and compulsory traffic in bytes.
struct Work {
  double flops = 0, bytes = 0;

  /// Arithmetic intensity in operations per byte; 0 where nothing is moved.
  [[nodiscard]] double intensity() const { return bytes > 0 ? flops / bytes : 0; }
};

/// What a side was seen to do at most, per second; 0 where it was not measured.
struct Roofs {
  double flops = 0;  // multiply-adds in registers, each two operations
  double bytes = 0;  // copy of more than any cache holds, read and written bytes both counted
  double cache = 0;  // not a rate: bytes of the last-level cache; 0: not known
};

/// The least time in seconds under both roofs; 0 where no roof is known.
double least_seconds(const Work& work, const Roofs& roofs);

/// Where `seconds` lie on the way to the roof, in per cent; 0 where no roof is known.
double percent_of_roof(const Work& work, const Roofs& roofs, double seconds);

/// Whether a variant of this name computes on matrix units, which the roof of multiply-adds in
/// vector registers does not bound. By the words of its name: they say all its ideas.
bool on_matrix_units(std::string_view name);

/// Whether the row is faster than the peak, by more than two measurements differ.
bool beats_peak(const Work& work, const Roofs& roofs, double seconds);

/// What the figures of a row say against it, for its label: "suspicious: …" where it beats the
/// peak, "cache: …" where its bytes come faster than a copy in memory gives them, "reads: …" where
/// no cache could hold them, so that memory is faster read than copied; else empty.
std::string remark(const Work& work, const Roofs& roofs, double seconds);

}  // namespace bench
