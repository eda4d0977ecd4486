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
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace {

using bench::Options;

constexpr const char* kInterrupted = "\nbench: interrupted\n";

// What the handler says: by the file that is open at the moment.
std::atomic<const char*> farewell = kInterrupted;

// Only async-signal-safe calls.
extern "C" void interrupted(int signal) {
  const char* const text = farewell;
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text, std::strlen(text));
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

// The choice and the limits that rows obey, so that tools need no rules of their own.
int describe_device(const std::string& wanted) {
  const auto devices = gpu::devices();
  const cl::Device device = gpu::choose(devices, wanted);
  const auto index = std::ranges::find(devices, device(), [](const auto& d) { return d(); });
  const gpu::Limits limits = gpu::limits(device);
  const nlohmann::json text = {{"index", index - devices.begin()},
                               {"label", gpu::label(device)},
                               {"nvidia_capability", gpu::describe(device).capability},
                               {"work_group", limits.work_group},
                               {"items", limits.items},
                               {"local_bytes", limits.local_bytes}};
  fmt::print("{}\n", text.dump());
  return EXIT_SUCCESS;
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

// The flags name no row: which of them, and why.
int complain(const Options& options, bool gpu) {
  std::string text = fmt::format("--benchmark_filter={} matches no row", options.filter);
  if (options.accuracy) text = fmt::format("--accuracy={} matches no row", *options.accuracy);
  if (options.explain)
    text = fmt::format("--explain={} matches no kernel{}; only a device's kernels can be explained",
                       *options.explain, gpu ? "" : ", because there is no device");
  if ((options.accuracy || options.explain) && !options.filter.empty())
    text += fmt::format(" that --benchmark_filter={} lets through", options.filter);
  fmt::print(stderr, "bench: {}; see --benchmark_list_tests\n", text);
  return EXIT_FAILURE;
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

void begin_file(const Options& options) {
  if (options.out.empty()) return;
  if (!std::ofstream(options.partial_out()))
    throw bench::Usage(fmt::format(
        "--benchmark_out={} cannot be written; check folder and permissions", options.out));
  static const std::string text = fmt::format(
      "\nbench: interrupted; what there is so far stays in {}\n", options.partial_out());
  farewell = text.c_str();
}

// Only a whole file gets the name that was asked for.
void end_file(const Options& options, bool complete) {
  if (options.out.empty()) return;
  if (!complete)
    throw std::runtime_error(
        fmt::format("{} could not be written to its end (is the disk full?); what there is stays "
                    "in {}",
                    options.out, options.partial_out()));
  farewell = kInterrupted;
  std::filesystem::rename(options.partial_out(), options.out);
}

int measure(const Options& options, bench::Suite& suite) {
  bench::Ledger ledger;
  bench::Complaints complaints;
  bench::Bookkeeper display(
      options.explain || options.accuracy ? complaints : bench::display_reporter(), &ledger);
  const auto to_file = bench::file_reporter(options.out_format);
  bench::Bookkeeper file(*to_file, nullptr);
  begin_file(options);
  benchmark::RunSpecifiedBenchmarks(&display, options.out.empty() ? nullptr : &file);
  if (options.explain && ledger.measured > 0) fmt::print("{}", suite.explanation());
  if (options.accuracy && ledger.measured > 0) fmt::print("{}", suite.accuracy());
  if (ledger.failed + ledger.skipped > 0)
    fmt::print(stderr, "bench: {} measured, {} skipped, {} failed\n", ledger.measured,
               ledger.skipped, ledger.failed);
  end_file(options, file.complete());
  return ledger.failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

// What there is, without asking any device.
int list_rows(const Options& options, const std::vector<bench::Case>& cases) {
  bench::Suite suite(options, cases, {cpu::Workspace(options.threads), nullptr});
  suite.register_rows(true);
  if (suite.asked_for() == 0) return complain(options, true);
  benchmark::RunSpecifiedBenchmarks();
  return EXIT_SUCCESS;
}

int run(const Options& options) {
  for (const auto& text :
       {options.explain.value_or(""), options.accuracy.value_or(""), options.filter})
    bench::selected(text, "");  // a broken expression is bad usage, said before any work
  const std::vector<bench::Case> cases = load_cases(options);
  if (options.list_tests) return list_rows(options, cases);
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
  return suite.asked_for() > 0 ? measure(options, suite) : complain(options, gpu);
}

int program(int argc, char** argv) {
  const Options options = bench::parse(argc, argv);
  if (!options.help.empty()) {
    fmt::print("{}", options.help);
    return EXIT_SUCCESS;
  }
  initialize_library(options, argv[0]);
  if (options.list_devices) return list_devices();
  if (options.describe_device) return describe_device(options.device);
  return run(options);
}

// A full disk is met when the buffer is written, which nobody has looked at until here.
void flush_results() {
  std::fflush(stdout);
  if (std::ferror(stdout) != 0)
    throw std::runtime_error("the output could not be written to its end (is the disk full?)");
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGTERM, interrupted);
  std::signal(SIGINT, interrupted);
  try {
    const int code = program(argc, argv);
    flush_results();
    return code;
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
