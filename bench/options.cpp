// Parsing of the command line; see the header.
#include "bench/options.hpp"

#include "bench/library.hpp"
#include "cpu/cpu.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <regex>
#include <span>

namespace bench {

namespace {

constexpr std::size_t kLargest = 65536;  // A of this n is 16 GiB
constexpr const char* kAbout =
    "Matrix product C = A*B and matrix-vector product, every way of writing it, verified and "
    "timed.\n"
    "Besides the flags below it takes every --benchmark_* flag of Google Benchmark, such as\n"
    "--benchmark_filter=REGEX, --benchmark_repetitions=N, --benchmark_out=FILE.\n"
    "Results go to stdout, everything else to stderr. Exit code: 0 all selected rows measured or\n"
    "skipped with a reason; 1 a row failed or the filter matched nothing; 2 bad usage.";

// The whole of `text` as a number in decimal notation.
template <class Number>
std::optional<Number> decimal(std::string_view text) {
  Number value{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last) return std::nullopt;
  return value;
}

// Hands CLI11 the plain digits: it would take 010 for octal.
CLI::Validator whole(std::size_t least, std::size_t most) {
  const auto check = [=](std::string& text) {
    const auto value = decimal<std::size_t>(text);
    if (!value || *value < least || *value > most)
      return fmt::format("\"{}\" is no whole number from {} to {}", text, least, most);
    text = std::to_string(*value);
    return std::string();
  };
  return {check, fmt::format("{}..{}", least, most)};
}

CLI::Validator duration() {
  const auto check = [](const std::string& text) {
    const auto value = decimal<double>(text);
    const bool right = value && std::isfinite(*value) && *value >= 0;
    return right ? "" : fmt::format("\"{}\" is no number of seconds, such as 30 or 0.5", text);
  };
  return {check, "seconds"};
}

// CLI11 would take the argument that follows for the value.
void refuse_empty_values(std::span<const char* const> args) {
  for (const std::string_view arg : args)
    if (arg.starts_with("--") && !arg.starts_with("--benchmark_") &&
        arg.find('=') == arg.size() - 1)
      throw Usage(fmt::format("{} needs a value", arg));
}

// The value of --benchmark_<name>=value, if `arg` is that flag.
std::optional<std::string> value_of(const std::string& arg, std::string_view name) {
  const std::string flag = fmt::format("--benchmark_{}", name);
  if (!arg.starts_with(flag)) return std::nullopt;
  if (arg.size() == flag.size()) return std::string();
  if (arg[flag.size()] != '=') return std::nullopt;
  return arg.substr(flag.size() + 1);
}

void expect_one_of(std::string_view flag, const std::string& value,
                   std::initializer_list<std::string_view> known) {
  if (std::ranges::find(known, value) != known.end()) return;
  throw Usage(
      fmt::format("--benchmark_{}={}: expected one of {}", flag, value, fmt::join(known, ", ")));
}

// "0.5", "0.5s" or "10x" in the form of this library; seconds into `seconds`.
std::string min_time(const std::string& text, double& seconds) {
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, seconds);
  const std::string_view suffix(end, static_cast<std::size_t>(last - end));
  if (error != std::errc() || !(seconds > 0) || (!suffix.empty() && suffix != "s" && suffix != "x"))
    throw Usage(
        fmt::format("--benchmark_min_time={}: expected seconds, such as 0.5 or 0.5s", text));
  const std::string number(text.data(), end);
  if (suffix == "x") {
    if (!kSince18) throw Usage("--benchmark_min_time=Nx needs Google Benchmark 1.8; give seconds");
    seconds = 0;
    return text;
  }
  return kSince18 ? number + "s" : number;
}

// Where `path` leads to, because that is what the result replaces: a file that is there or is not,
// but no device, pipe or link to nowhere.
std::string result_file(const std::string& path) {
  std::error_code unknown;
  std::filesystem::path file = std::filesystem::weakly_canonical(path, unknown);
  if (unknown) file = path;
  const auto status = std::filesystem::symlink_status(file, unknown);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw Usage(
        fmt::format("--benchmark_out={} is {}; name a file", path,
                    std::filesystem::is_directory(status) ? "a folder" : "no regular file"));
  return file;
}

// Reads what we need to know of the library's flags, and rewrites those that need it.
void take_benchmark_args(const std::vector<std::string>& args, Options& options) {
  std::string time_text = fmt::format("{}", options.min_time);
  const char* const no_color = std::getenv("NO_COLOR");  // https://no-color.org
  if (no_color != nullptr && *no_color != '\0')
    options.benchmark_args.emplace_back("--benchmark_color=false");
  for (const std::string& arg : args) {
    if (const auto text = value_of(arg, "min_time")) {
      time_text = *text;
      continue;
    }
    if (const auto path = value_of(arg, "out")) {
      options.out = *path;
      continue;
    }
    if (const auto format = value_of(arg, "out_format")) {
      expect_one_of("out_format", *format, {"json", "csv", "console"});
      options.out_format = *format;
    }
    if (const auto format = value_of(arg, "format"))
      expect_one_of("format", *format, {"console", "json", "csv"});
    if (const auto filter = value_of(arg, "filter")) options.filter = *filter;
    if (const auto count = value_of(arg, "repetitions"); count && decimal<int>(*count) < 1)
      throw Usage(fmt::format("{}: expected a whole number from 1", arg));
    if (const auto list = value_of(arg, "list_tests"))
      options.list_tests = *list != "false" && *list != "0";
    options.benchmark_args.push_back(arg);
  }
  options.benchmark_args.push_back("--benchmark_min_time=" + min_time(time_text, options.min_time));
  if (options.list_tests || options.out.empty()) return;
  options.out = result_file(options.out);
  options.benchmark_args.push_back("--benchmark_out=" + options.partial_out());
}

// The flags that say what is to be looked at.
void declare_what(CLI::App& app, Options& options) {
  app.add_option("--device", options.device,
                 "OpenCL device: an index of --list_devices or a part of its name")
      ->envname("BENCH_DEVICE");
  app.add_flag("--list_devices", options.list_devices, "list the OpenCL devices and end");
  app.add_flag("--describe_device", options.describe_device,
               "print the chosen OpenCL device and its limits as JSON and end");
  app.add_option("--n", options.sizes, "matrix sizes, for example 256,1000,2048")
      ->delimiter(',')
      ->transform(whole(1, kLargest))
      ->default_str(fmt::format("{}", fmt::join(options.sizes, ",")));
  app.add_option("--peers", options.peers,
                 "libraries to compare with, by name or path: libopenblas.so.0,libclblast.so.1,...")
      ->delimiter(',');
  app.add_option("--kernels", options.kernels, "read the kernels from this folder of .cl files")
      ->check(CLI::ExistingDirectory);
  app.add_option("--tuned", options.tuned, "read the table of tuned kernels from this file")
      ->check(CLI::ExistingFile);
  app.add_flag("--selftest", options.selftest,
               "test the clocks with launches of known length and end; 0 if they agree within 3 %");
  app.add_flag(
      "--explain{all}", options.explain,
      "measure the kernels whose row matches (--explain=REGEX) and print what each takes from the\n"
      "device, its likeliest bound and the evidence");
  app.add_flag("--accuracy{all}", options.accuracy,
               "print the rounding errors of the variants whose row matches (--accuracy=REGEX) "
               "on four kinds\n"
               "of inputs, beside those of a peer or Eigen; a row beyond its bound fails");
}

// The flags that say how it is measured.
void declare_how(CLI::App& app, Options& options) {
  app.add_option("--threads", options.threads, "threads of the CPU variants; default: all allowed")
      ->transform(whole(1, 4096));
  app.add_option("--budget", options.budget,
                 "seconds a row may take: a case predicted to take longer is skipped; 0: no limit")
      ->check(duration())
      ->capture_default_str();
  app.add_option("--batch", options.batch,
                 "launches back to back that a kernel's time is the mean of")
      ->transform(whole(1, 10000))
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--cache", [&options](const std::string& text) { options.cold = text == "cold"; },
         "hot: every run finds its operands where the last one left them; cold: outside\n"
         "the last-level cache, displaced by copies of the same operands")
      ->check(CLI::IsMember({"hot", "cold"}))
      ->default_str("hot");
}

}  // namespace

Options parse(int argc, const char* const* argv) {
  Options options;
  options.threads = cpu::allowed_threads();
  CLI::App app(kAbout, "bench");
  app.allow_extras();
  declare_what(app, options);
  declare_how(app, options);
  refuse_empty_values({argv, static_cast<std::size_t>(argc)});
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    options.help = app.help();
    return options;
  } catch (const CLI::Error& error) {
    throw Usage(error.what());
  }
  if (options.cold && options.batch > 1)
    throw Usage("--cache=cold measures single launches: a batch finds its operands in the cache");
  if (options.accuracy && (options.cold || options.explain))
    throw Usage("--accuracy goes with neither --explain nor --cache=cold: run them one by one");
  std::ranges::sort(options.sizes);
  options.sizes.erase(std::unique(options.sizes.begin(), options.sizes.end()), options.sizes.end());
  take_benchmark_args(app.remaining(), options);
  return options;
}

bool selected(const std::string& filter, const std::string& name) {
  if (filter.empty() || filter == "all") return true;
  const bool negated = filter[0] == '-';
  try {
    const std::regex expression(negated ? filter.substr(1) : filter, std::regex::extended);
    return std::regex_search(name, expression) != negated;
  } catch (const std::regex_error& error) {
    throw Usage(fmt::format("the filter {} is no regular expression: {}", filter, error.what()));
  }
}

}  // namespace bench
