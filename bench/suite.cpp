// Registration, proof and timing; see the header.
#include "bench/suite.hpp"

#include "bench/library.hpp"
#include "bench/reporting.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace bench {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// A row costs at least three products: the proof, the warm-up, one that is timed.
constexpr double kLeastProducts = 3;
constexpr std::size_t kProbe = 128;
constexpr double kWarmUpSeconds = 0.02;
// Below this the overhead of a launch fills the wall time, which then says nothing of the event.
constexpr double kWallCheckNs = 1e6;

struct WrongResult : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct OverBudget : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string clock_text(double seconds) {
  const int whole = static_cast<int>(seconds);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

// Counters are the same set on every row, also on those that fail: the library's CSV needs it.
// Rates over the row's own clock, whichever that is.
void set_counters(benchmark::State& state, const Shape& shape) {
  constexpr auto kRate = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["GFLOP/s"] = benchmark::Counter(flops(shape) * 1e-9, kRate);
  state.counters["GB/s"] = benchmark::Counter(bytes(shape) * 1e-9, kRate);
  state.counters[kLaunches] = 0;
}

}  // namespace

Problem::Problem(const Shape& shape)
    : exact(make_operands(shape, Values::kIntegers)),
      expected(reference(exact)),
      timed(make_operands(shape, Values::kSigned)) {}

std::string Row::family() const { return subject->variant + (end_to_end ? "/EndToEnd" : ""); }

std::string Row::name() const {
  return fmt::format("{}/n:{}/{}", family(), n, by_events() ? "manual_time" : "real_time");
}

Suite::Suite(const Options& options, std::vector<Case> cases, Machine machine)
    : options_(options), cases_(std::move(cases)), machine_(std::move(machine)) {}

void Suite::register_rows(bool gpu) {
  for (const Case& subject : cases_) {
    if (subject.on_device && !gpu) continue;
    for (const bool end_to_end : {false, true}) {
      if (end_to_end && !subject.on_device) continue;
      for (const std::size_t n : options_.sizes) {
        const Row row{&subject, n, end_to_end};
        auto* const benchmark = benchmark::RegisterBenchmark(
            row.family().c_str(),
            [this, row](benchmark::State& state) { this->measure(state, row); });
        benchmark->ArgName("n")->Arg(static_cast<std::int64_t>(n))->Unit(benchmark::kMicrosecond);
        row.by_events() ? benchmark->UseManualTime() : benchmark->UseRealTime();
        if (selected(options_.filter, row.name())) ++selected_rows_;
      }
    }
  }
}

// The edge where every error of a row is caught: it becomes that row's reason, the others run.
void Suite::measure(benchmark::State& state, const Row& row) {
  const Shape shape = square(op_of(row.subject->variant), row.n);
  set_counters(state, shape);
  try {
    set_stage(row);
    if (row.by_events())
      time_kernel(state, *runner_);
    else if (row.end_to_end)
      time_end_to_end(state, *runner_, problem(op_of(row.subject->variant), row.n));
    else
      time_host(state, *runner_);
    return;
  } catch (const gpu::Unsupported& reason) {
    skip_with_reason(state, reason.what());
  } catch (const OverBudget& reason) {
    skip_with_reason(state, reason.what());
  } catch (const WrongResult& error) {
    fail_with_reason(state, error.what());
  } catch (const cl::Error& error) {
    fail_with_reason(state, gpu::describe(error));
    runner_.reset();
    machine_.session->reset();  // NVIDIA: every later call of this context fails
  } catch (const std::exception& error) {
    fail_with_reason(state, error.what());
  }
  runner_.reset();
  current_.clear();
}

// Brings the row up to its first timed product: prepared, proven, loaded, warm.
void Suite::set_stage(const Row& row) {
  if (current_ == row.name()) return;
  current_ = row.name();
  runner_.reset();
  report_progress(row);
  refuse_if_too_long(row);
  const Op op = op_of(row.subject->variant);
  runner_ = row.subject->prepare(machine_, square(op, row.n));
  Problem& data = problem(op, row.n);
  prove(row, *runner_, data);
  runner_->write_inputs(data.timed);
  runner_->write_output(data.timed);
  const auto begin = Clock::now();
  double products = 0;
  do {
    runner_->run(1);
    ++products;
  } while (seconds_since(begin) < kWarmUpSeconds);
  seconds_[row.subject->variant][row.n] = seconds_since(begin) / products;
}

void Suite::prove(const Row& row, Runner& runner, Problem& data) {
  const auto [entry, unknown] = verdicts_.try_emplace({row.subject->variant, row.n});
  std::string& verdict = entry->second;
  if (unknown) {
    verdict = "not verified: its first run failed";
    poison(data.exact);
    runner.write_inputs(data.exact);
    runner.write_output(data.exact);
    runner.run(1);
    runner.read_output(data.exact);
    verdict = fault(data.exact, data.expected).value_or("");
  }
  if (!verdict.empty()) throw WrongResult(verdict);
}

// The prediction scales the time at the largest smaller n by the number of operations.
void Suite::refuse_if_too_long(const Row& row) {
  if (options_.budget == 0 || row.n <= kProbe) return;
  const Case& subject = *row.subject;
  auto& known = seconds_[subject.variant];
  if (known.contains(row.n)) return;
  const auto above = known.lower_bound(row.n);
  const auto from = above == known.begin() ? known.emplace(kProbe, probe(subject, kProbe)).first
                                           : std::prev(above);
  const Op op = op_of(subject.variant);
  const double one = from->second * flops(square(op, row.n)) / flops(square(op, from->first));
  if (one * kLeastProducts <= options_.budget) return;
  throw OverBudget(fmt::format(
      "predicted {:.1f} s a product, {:.0f} s for the row, from {:.4g} s at n = {}; --budget={} "
      "allows less (--budget=0 runs everything)",
      one, one * kLeastProducts, from->second, from->first, options_.budget));
}

double Suite::probe(const Case& subject, std::size_t n) {
  const Op op = op_of(subject.variant);
  const auto runner = subject.prepare(machine_, square(op, n));
  Problem& data = problem(op, n);
  runner->write_inputs(data.timed);
  runner->write_output(data.timed);
  runner->run(1);  // compiles, on some devices
  const auto begin = Clock::now();
  runner->run(1);
  return seconds_since(begin);
}

// The library counts a row's time by the event clock alone, so a launch that is far shorter than
// its overhead would be repeated for minutes. Once the wall time of this call is used up, the
// remaining iterations are credited with the mean of those that ran, and the counter tells the
// reporter how many did: mean and iterations in the results are those of real launches.
void Suite::time_kernel(benchmark::State& state, Runner& runner) const {
  const double most_wall = std::max(1.0, 5 * options_.min_time);
  const auto begin = Clock::now();
  benchmark::IterationCount launches = 0;
  benchmark::IterationCount credited = 1;  // iterations that the next turn of the loop stands for
  double sum = 0;
  double wall = 0;
  while (state.KeepRunningBatch(credited)) {
    if (credited > 1) {
      state.SetIterationTime(sum / static_cast<double>(launches) * static_cast<double>(credited));
      continue;
    }
    const double time = *runner.run(options_.batch);
    sum += time;
    ++launches;
    state.SetIterationTime(time);
    wall = seconds_since(begin);
    if (wall > most_wall)
      credited = std::max<benchmark::IterationCount>(state.max_iterations - launches, 1);
  }
  const auto count = static_cast<double>(launches);
  state.counters[kLaunches] = count;
  const double wall_ns = wall / count / options_.batch * 1e9;
  const std::string why =
      gpu::doubt(sum / count * 1e9, {.wall_ns = wall_ns > kWallCheckNs ? wall_ns : 0});
  if (!why.empty()) state.SetLabel("suspicious: " + why);
}

void Suite::time_end_to_end(benchmark::State& state, Runner& runner, Problem& data) const {
  while (state.KeepRunning()) {
    runner.write_inputs(data.timed);
    runner.run(1);
    runner.read_output(data.timed);
  }
}

void Suite::time_host(benchmark::State& state, Runner& runner) const {
  while (state.KeepRunning()) {
    runner.run(1);
    benchmark::ClobberMemory();
  }
}

Problem& Suite::problem(Op op, std::size_t n) {
  return problems_.try_emplace({op, n}, square(op, n)).first->second;
}

void Suite::report_progress(const Row& row) {
  ++started_rows_;
  if (isatty(STDERR_FILENO) == 0) return;
  const double gone = seconds_since(begin_);
  const double left = gone / started_rows_ * (selected_rows_ - started_rows_ + 1);
  fmt::print(stderr, "\r\033[K[{}/{}] {}  {} gone, about {} left\r", started_rows_, selected_rows_,
             row.name(), clock_text(gone), clock_text(left));
}

}  // namespace bench
