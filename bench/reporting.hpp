// Between the library and its reporters: books kept right, outcomes counted.
#pragma once

#include <benchmark/benchmark.h>

#include <memory>
#include <string>

namespace bench {

struct Ledger {
  int measured = 0, skipped = 0, failed = 0;
};

/// The counter by which a row says how many products were really timed, where the library believes
/// in more (see timing.cpp); taken out again by the reporter.
inline constexpr const char* kLaunches = "launches";

/// Passes everything on to `inner`, with the iterations of each run set to its launches, and counts
/// the outcomes in `ledger` (which may be null).
class Bookkeeper final : public benchmark::BenchmarkReporter {
 public:
  Bookkeeper(benchmark::BenchmarkReporter& inner, Ledger* ledger)
      : inner_(inner), ledger_(ledger) {}

  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;

  /// Whether all of it was reported, and the stream took it.
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  static void report_drift(const std::vector<Run>& runs);

  benchmark::BenchmarkReporter& inner_;
  Ledger* ledger_;
  bool complete_ = false;
};

/// Says nothing but why a row was not measured, and that on stderr.
class Complaints final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override;
};

/// The library's reporter for --benchmark_format, there until the program ends; on the console a
/// row that was skipped says "skipped: reason", where the library of 1.7 speaks of an error.
benchmark::BenchmarkReporter& display_reporter();

/// The library's reporter for --benchmark_out_format.
std::unique_ptr<benchmark::BenchmarkReporter> file_reporter(const std::string& format);

}  // namespace bench
