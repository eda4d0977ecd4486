// The program: flags in, rows out. The one place where errors become exit codes:
// 0 all selected rows measured or skipped with a reason, 1 a row failed or nothing was selected,
// 2 bad usage.
#include "bench/conditions.hpp"
#include "bench/context.hpp"
#include "bench/options.hpp"
#include "bench/reporting.hpp"
#include "bench/selftest.hpp"
#include "bench/suite.hpp"
#include "build_info.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace {

using bench::Options;

// Only async-signal-safe calls: the partial file keeps its name, so nothing takes it for a whole.
extern "C" void interrupted(int signal) {
  static constexpr char kText[] =
      "\nbench: interrupted; what --benchmark_out has so far stays in FILE.partial\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(128 + signal);
}

int list_devices() {
  const auto devices = gpu::devices();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto info = gpu::describe(devices[i]);
    fmt::print("{}  {} / {} ({}, {} compute units, {})\n", i, info.platform, info.name, info.type,
               info.compute_units, info.version);
  }
  if (devices.empty()) fmt::print(stderr, "bench: no OpenCL device: {}\n", gpu::why_no_devices());
  return devices.empty() ? EXIT_FAILURE : EXIT_SUCCESS;
}

std::unique_ptr<gpu::Session> open_session(const Options& options) {
  const auto devices = gpu::devices();
  if (devices.empty() && options.device.empty()) {
    fmt::print(stderr, "bench: no OpenCL device, so there are no GPU rows: {}\n",
               gpu::why_no_devices());
    return nullptr;
  }
  const gpu::Sources sources =
      options.kernels.empty() ? gpu::Sources() : gpu::Sources(options.kernels);
  return std::make_unique<gpu::Session>(gpu::choose(devices, options.device), sources);
}

void print_header(const Options& options, const gpu::Session* session) {
  fmt::print(stderr, "CPU side: {} thread{}\n", options.threads, options.threads == 1 ? "" : "s");
  if (session == nullptr) return;
  const auto& info = session->info();
  fmt::print(stderr, "GPU side: {} / {}{}\n", info.platform, info.name,
             info.type == "CPU" ? " (a CPU, through OpenCL)" : "");
}

// What speaks against trusting this run: to stderr, and into the results.
void examine(const Options& options, bench::Machine& machine) {
  bench::Conditions conditions = bench::read_conditions();
  conditions.build_type = build_info::kBuildType;
  conditions.threads = options.threads;
  conditions.allowed_threads = cpu::allowed_threads();
  const auto lines = bench::warnings(conditions);
  for (const auto& line : lines) fmt::print(stderr, "bench: warning: {}\n", line);
  benchmark::AddCustomContext("warnings", fmt::format("{}", fmt::join(lines, "; ")));
  const auto clocks = bench::test_clocks(machine, false);
  if (!bench::agree(clocks))
    fmt::print(stderr, "bench: warning: test of the clocks {}\n", bench::summary(clocks));
  benchmark::AddCustomContext("selftest", bench::summary(clocks));
}

int selftest(bench::Machine& machine) {
  const auto clocks = bench::test_clocks(machine, true);
  fmt::print("{}", bench::table(clocks));
  return bench::agree(clocks) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// Hands the arguments to the library; whatever it does not know is bad usage.
void initialize_library(const Options& options, char* program) {
  std::vector<std::string> texts = options.benchmark_args;
  std::vector<char*> argv{program};
  for (auto& text : texts) argv.push_back(text.data());
  int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  benchmark::Initialize(&argc, argv.data());
  if (argc > 1) throw bench::Usage(fmt::format("unknown argument {}; see --help", argv[1]));
}

int report(const Options& options, const bench::Ledger& ledger, std::size_t matched) {
  if (matched == 0) {
    fmt::print(stderr, "bench: --benchmark_filter={} matches no row; see --benchmark_list_tests\n",
               options.filter);
    if (!options.out.empty()) std::filesystem::remove(options.partial_out());
    return EXIT_FAILURE;
  }
  if (!options.out.empty()) std::filesystem::rename(options.partial_out(), options.out);
  if (ledger.failed + ledger.skipped > 0)
    fmt::print(stderr, "bench: {} measured, {} skipped, {} failed\n", ledger.measured,
               ledger.skipped, ledger.failed);
  return ledger.failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

// All rows; a peer that is not there or a broken table is bad usage.
std::vector<bench::Case> load_cases(const Options& options) {
  try {
    return bench::cases(options.peers, options.tuned.empty()
                                           ? gpu::TunedTable::built_in()
                                           : gpu::TunedTable::read(options.tuned));
  } catch (const gpu::BadTable& error) {
    throw bench::Usage(fmt::format("--tuned: {}", error.what()));
  } catch (const std::invalid_argument& error) {
    throw bench::Usage(fmt::format("--peers: {}", error.what()));
  }
}

int run(const Options& options, char* program) {
  for (const auto& text :
       {options.explain.value_or(""), options.accuracy.value_or(""), options.filter})
    bench::selected(text, "");  // a broken expression is bad usage, said before any work
  initialize_library(options, program);
  const std::vector<bench::Case> cases = load_cases(options);
  if (options.list_tests) {  // what there is, without asking any device
    bench::Suite suite(options, cases, {cpu::Workspace(options.threads), nullptr});
    suite.register_rows(true);
    return benchmark::RunSpecifiedBenchmarks() > 0 ? EXIT_SUCCESS : report(options, {}, 0);
  }
  // NVIDIA's compiler says nothing about kernels that come from its cache.
  if (options.explain) setenv("CUDA_CACHE_DISABLE", "1", 0);
  auto session = open_session(options);
  bench::add_context(options, session.get());
  print_header(options, session.get());
  const bool gpu = session != nullptr;
  bench::Machine machine{cpu::Workspace(options.threads), std::move(session)};
  if (options.selftest) return selftest(machine);
  examine(options, machine);
  bench::Suite suite(options, cases, std::move(machine));
  suite.register_rows(gpu);

  bench::Ledger ledger;
  bench::Complaints complaints;
  bench::Bookkeeper display(
      options.explain || options.accuracy ? complaints : bench::display_reporter(), &ledger);
  const auto to_file = bench::file_reporter(options.out_format);
  bench::Bookkeeper file(*to_file, nullptr);
  std::signal(SIGTERM, interrupted);
  std::signal(SIGINT, interrupted);
  const auto matched =
      benchmark::RunSpecifiedBenchmarks(&display, options.out.empty() ? nullptr : &file);
  if (options.explain && ledger.measured > 0) fmt::print("{}", suite.explanation());
  if (options.accuracy) fmt::print("{}", suite.accuracy());
  return report(options, ledger, matched);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = bench::parse(argc, argv);
    if (!options.help.empty()) {
      fmt::print("{}", options.help);
      return EXIT_SUCCESS;
    }
    return options.list_devices ? list_devices() : run(options, argv[0]);
  } catch (const cl::Error& error) {
    fmt::print(stderr, "bench: {}\n", gpu::describe(error));
    return EXIT_FAILURE;
  } catch (const bench::Usage& error) {
    fmt::print(stderr, "bench: {}\n", error.what());
  } catch (const gpu::NoSuchDevice& error) {
    fmt::print(stderr, "bench: {}\n", error.what());
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench: {}\n", error.what());
    return EXIT_FAILURE;
  }
  return 2;
}
