// The command line: our flags, and the library's brought into the form its version understands.
#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

/// Bad usage: the message tells what to write instead. The program ends with code 2.
struct Usage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Options {
  std::string device;  // index or substring; empty: the default choice
  bool list_devices = false;
  bool list_tests = false;
  bool selftest = false;
  bool cold = false;  // every timed run finds its operands outside the last-level cache
  std::optional<std::string> explain;   // names of rows to explain, a regular expression
  std::optional<std::string> accuracy;  // names of rows whose errors are wanted, likewise
  std::vector<std::size_t> sizes{256, 512, 1024, 2048};
  int threads = 0;
  double budget = 8;               // seconds that one row may take; 0: no limit
  int batch = 1;                   // launches between the two stamps of a kernel's time
  std::vector<std::string> peers;  // libraries, by name or path
  std::string tuned;               // table of tuned kernels; empty: the built-in one
  std::string kernels;             // folder of .cl files; empty: the embedded ones
  std::string filter;              // as given to --benchmark_filter
  std::string out;                 // where --benchmark_out is to end up; empty: nowhere
  std::string out_format = "json";
  double min_time = 0.2;                    // seconds, the least that a row is measured
  std::string help;                         // not empty: print this and end
  std::vector<std::string> benchmark_args;  // for benchmark::Initialize, without argv[0]

  /// Where the library writes until the run is complete.
  [[nodiscard]] std::string partial_out() const { return out + ".partial"; }
};

/// Throws Usage.
Options parse(int argc, const char* const* argv);

/// Whether a benchmark of this name is selected, by the library's own rules. Throws Usage for a
/// filter that is no regular expression.
bool selected(const std::string& filter, const std::string& name);

}  // namespace bench
