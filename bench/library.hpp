// The differences between the versions of Google Benchmark (1.7.1 to 1.9), in one place.
#pragma once

#include <benchmark/benchmark.h>

#include <string>

namespace bench {

template <class State>
concept HasSkipMessage = requires(State& state) {
  state.SkipWithMessage(std::string());
};

/// 1.8 brought SkipWithMessage and the suffixes of --benchmark_min_time ("0.5s", "10x").
inline constexpr bool kSince18 = HasSkipMessage<benchmark::State>;

template <class State>
void skip_with_reason(State& state, const std::string& reason) {
  const std::string message = "skipped: " + reason;
  if constexpr (HasSkipMessage<State>)
    state.SkipWithMessage(message);
  else
    state.SkipWithError(message.c_str());
}

inline void fail_with_reason(benchmark::State& state, const std::string& reason) {
  state.SkipWithError(("failed: " + reason).c_str());
}

enum class Outcome { kMeasured, kSkipped, kFailed };

/// Why a run was not measured; empty if it was.
template <class Run>
std::string reason(const Run& run) {
  if constexpr (requires { run.skip_message; })
    return static_cast<int>(run.skipped) != 0 ? run.skip_message : std::string();
  else
    return run.error_occurred ? run.error_message : std::string();
}

template <class Run>
Outcome outcome(const Run& run) {
  const std::string message = reason(run);
  if (message.empty()) return Outcome::kMeasured;
  return message.starts_with("skipped: ") ? Outcome::kSkipped : Outcome::kFailed;
}

}  // namespace bench
