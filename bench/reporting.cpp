// Reporters; see the header.
#include "bench/reporting.hpp"

#include "bench/conditions.hpp"
#include "bench/library.hpp"

#include <fmt/format.h>

#include <cmath>

namespace bench {

namespace {

class Console final : public benchmark::ConsoleReporter {
 public:
  // Colours and columns as the library read them from its flags.
  explicit Console(const ConsoleReporter& settings) : ConsoleReporter(settings) {}

 protected:
  void PrintRunData(const Run& run) override {
    if (outcome(run) != Outcome::kSkipped) return ConsoleReporter::PrintRunData(run);
    GetOutputStream() << fmt::format("{:<{}} {}\n", run.benchmark_name(), name_field_width_,
                                     reason(run));
  }
};

}  // namespace

bool Bookkeeper::ReportContext(const Context& context) {
  inner_.SetOutputStream(&GetOutputStream());
  inner_.SetErrorStream(&GetErrorStream());
  return inner_.ReportContext(context);
}

void Bookkeeper::ReportRuns(const std::vector<Run>& runs) {
  std::vector<Run> corrected = runs;
  for (Run& run : corrected) {
    if (ledger_ != nullptr && run.run_type == Run::RT_Iteration) switch (outcome(run)) {
        case Outcome::kMeasured:
          ++ledger_->measured;
          break;
        case Outcome::kSkipped:
          ++ledger_->skipped;
          break;
        case Outcome::kFailed:
          ++ledger_->failed;
          break;
      }
    // The rates are computed; without the flag the console prints "3.6", not "3.6/s".
    for (auto& [name, counter] : run.counters) {
      counter.flags = benchmark::Counter::kDefaults;
      // The coefficient of variation of a counter that is zero, which JSON has no number for.
      if (std::isnan(counter.value)) counter.value = 0;
    }
    const auto launches = run.counters.find(kLaunches);
    if (launches == run.counters.end()) continue;
    if (run.run_type == Run::RT_Iteration && launches->second.value > 0) {
      const double believed = static_cast<double>(run.iterations);
      run.iterations = static_cast<benchmark::IterationCount>(launches->second.value);
      run.real_accumulated_time *= launches->second.value / believed;
    }
    run.counters.erase(launches);
  }
  if (ledger_ != nullptr) report_drift(runs);
  inner_.ReportRuns(corrected);
}

void Bookkeeper::Finalize() {
  inner_.Finalize();
  complete_ = GetOutputStream().flush().good();
}

// The repetitions of one row arrive together, in the order of measuring, aggregates after them.
void Bookkeeper::report_drift(const std::vector<Run>& runs) {
  std::vector<double> seconds;
  for (const Run& run : runs)
    if (run.run_type == Run::RT_Iteration && outcome(run) == Outcome::kMeasured)
      seconds.push_back(run.real_accumulated_time / static_cast<double>(run.iterations));
  const std::string line = runs.empty() ? "" : drift(runs.front().run_name.str(), seconds);
  if (!line.empty()) fmt::print(stderr, "bench: {}\n", line);
}

void Complaints::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs)
    if (outcome(run) != Outcome::kMeasured)
      fmt::print(stderr, "{}: {}\n", run.benchmark_name(), reason(run));
}

benchmark::BenchmarkReporter& display_reporter() {
  benchmark::BenchmarkReporter* const library = benchmark::CreateDefaultDisplayReporter();
  const auto* const console = dynamic_cast<const benchmark::ConsoleReporter*>(library);
  if (console == nullptr) return *library;
  static Console ours(*console);
  return ours;
}

std::unique_ptr<benchmark::BenchmarkReporter> file_reporter(const std::string& format) {
  if (format == "console")
    return std::make_unique<benchmark::ConsoleReporter>(benchmark::ConsoleReporter::OO_None);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // deprecated, and still the only CSV
  if (format == "csv") return std::make_unique<benchmark::CSVReporter>();
#pragma GCC diagnostic pop
  return std::make_unique<benchmark::JSONReporter>();
}

}  // namespace bench
