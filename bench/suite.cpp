// Registration, proof and timing; see the header.
#include "bench/suite.hpp"

#include "bench/facts.hpp"
#include "bench/library.hpp"
#include "bench/reporting.hpp"
#include "bench/rotation.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>

namespace bench {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Making one takes some 100 us on a device: half a second before a row of cold caches begins.
constexpr std::size_t kMostCopies = 4096;

struct WrongResult : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string clock_text(double seconds) {
  const int whole = static_cast<int>(seconds);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

// Counters are the same set on every row, also on those that fail: the library's CSV needs it.
// Rates over the row's own clock, whichever that is.
void set_counters(benchmark::State& state, const Work& work) {
  constexpr auto kRate = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["GFLOP/s"] = benchmark::Counter(work.flops * 1e-9, kRate);
  state.counters["GB/s"] = benchmark::Counter(work.bytes * 1e-9, kRate);
  state.counters["FLOP/byte"] = work.intensity();
  state.counters["% of roof"] = 0;
  state.counters[kLaunches] = 0;
}

std::string joined(const std::string& one, const std::string& other) {
  return one.empty() || other.empty() ? one + other : one + "; " + other;
}

std::string row_name(const std::string& family, std::size_t n, bool by_events) {
  return fmt::format("{}/n:{}/{}", family, n, by_events ? "manual_time" : "real_time");
}

Work work_of(const Row& row) {
  const Shape shape = square(op_of(row.subject->variant), row.n);
  return {flops(shape), bytes(shape)};
}

}  // namespace

double Problem::bytes(const Shape& s) {
  const double operands = static_cast<double>(s.a_size() + s.b_size() + s.c_size());
  return sizeof(float) * (2 * operands + static_cast<double>(s.c_size()));
}

Problem::Problem(const Shape& shape)
    : exact(make_operands(shape, Values::kIntegers)),
      expected(reference(exact)),
      timed(make_operands(shape, Values::kSigned)) {}

std::string Row::family() const { return subject->variant + (end_to_end ? "/EndToEnd" : ""); }

std::string Row::name() const { return row_name(family(), n, by_events()); }

Suite::Suite(const Options& options, std::vector<Case> cases, Machine machine)
    : options_(options),
      cases_(std::move(cases)),
      ceilings_(ceilings(options.threads)),
      machine_(std::move(machine)),
      forecast_(options.budget) {}

void Suite::register_rows(bool gpu) {
  for (const Ceiling& row : ceilings_)
    if ((gpu || !row.on_device) && !options_.explain && !options_.accuracy)
      register_row(row.name, row.n, row.by_events,
                   [this, &row](benchmark::State& state) { this->measure(state, row); });
  for (const Case& subject : cases_) {
    if (subject.on_device && !gpu) continue;
    for (const bool end_to_end : {false, true}) {
      if (end_to_end && !subject.on_device) continue;
      for (const std::size_t n : options_.sizes) {
        const Row row{&subject, n, end_to_end};
        if (!wanted(row)) continue;
        register_row(row.family(), n, row.by_events(),
                     [this, row](benchmark::State& state) { this->measure(state, row); });
      }
    }
  }
}

// Everything; or what is to be explained or weighed, with what it is held against.
bool Suite::wanted(const Row& row) const {
  if (options_.explain) return row.by_events() && selected(*options_.explain, row.name());
  if (!options_.accuracy) return true;
  const Case& against = yardstick(cases_, op_of(row.subject->variant));
  return !row.end_to_end &&
         (selected(*options_.accuracy, row.name()) || row.subject->variant == against.variant);
}

void Suite::register_row(const std::string& family, std::size_t n, bool by_events,
                         std::function<void(benchmark::State&)> measure) {
  auto* const benchmark = benchmark::RegisterBenchmark(family.c_str(), std::move(measure));
  benchmark->ArgName("n")->Arg(static_cast<std::int64_t>(n))->Unit(benchmark::kMicrosecond);
  by_events ? benchmark->UseManualTime() : benchmark->UseRealTime();
  const std::string name = row_name(family, n, by_events);
  if (!selected(options_.filter, name)) return;
  ++selected_rows_;
  if (selected(options_.accuracy.value_or(""), name)) ++asked_for_;
}

void Suite::measure(benchmark::State& state, const Row& row) {
  set_counters(state, work_of(row));
  at_the_edge(state, [&] {
    set_stage(row);
    const int batch = row.by_events() ? options_.batch : 1;
    const Run run = [this, batch] { return runner_->run(batch).value_or(0); };
    Problem& data = problem(op_of(row.subject->variant), row.n);
    const Run transfer_and_run = [this, &data] {
      runner_->write_inputs(data.timed);
      runner_->run(1);
      runner_->read_output(data.timed);
      return 0.0;
    };
    const Timed timed = row.by_events() ? time_kernel(state, run, batch, options_.min_time)
                                        : time_host(state, row.end_to_end ? transfer_and_run : run);
    hold_against_the_roof(state, row, timed);
    if (options_.accuracy) weigh(row, data);
  });
}

void Suite::measure(benchmark::State& state, const Ceiling& row) {
  set_counters(state, {});
  at_the_edge(state, [&] {
    set_stage(row);
    set_counters(state, {peak_.flops, peak_.bytes});
    const Timed timed = row.by_events ? time_kernel(state, peak_.run, 1, options_.min_time)
                                      : time_host(state, peak_.run);
    if (!timed.doubt.empty()) state.SetLabel(timed.doubt);
  });
}

// The edge where every error of a row is caught: it becomes that row's reason, the others run.
void Suite::at_the_edge(benchmark::State& state, const std::function<void()>& measurement) {
  try {
    try {
      measurement();
      return;
    } catch (...) {
      // The library aborts where one repetition of a row never began and another did.
      if (state.iterations() == 0) state.KeepRunning();
      throw;
    }
  } catch (const gpu::Unsupported& reason) {
    skip_with_reason(state, reason.what());
  } catch (const OverBudget& reason) {
    skip_with_reason(state, reason.what());
  } catch (const WrongResult& error) {
    fail_with_reason(state, error.what());
  } catch (const cl::Error& error) {
    fail_with_reason(state, gpu::describe(error));
    runner_.reset();
    peak_ = {};
    machine_.session->reset();  // NVIDIA: every later call of this context fails
  } catch (const std::bad_alloc&) {
    fail_with_reason(state, "the host has no memory left for it; choose a smaller n");
  } catch (const std::exception& error) {
    fail_with_reason(state, error.what());
  }
  runner_.reset();
  peak_ = {};
  current_.clear();
}

// Brings the row up to its first timed product: prepared, proven, loaded, warm.
void Suite::set_stage(const Row& row) {
  if (current_ == row.name()) return;
  current_ = row.name();
  runner_.reset();
  peak_ = {};
  report_progress(row.name());
  refuse_if_too_long(row);
  const Op op = op_of(row.subject->variant);
  runner_ = row.subject->prepare(machine_, square(op, row.n));
  Problem& data = problem(op, row.n);
  prove(row, *runner_, data);
  if (options_.cold) {
    rotate(row, data);
  } else {
    runner_->write_inputs(data.timed);
    runner_->write_output(data.timed);
  }
  forecast_.note(row.subject->variant, row.n,
                 warm_up([this] { return runner_->run(1).value_or(0); }));
}

void Suite::rotate(const Row& row, const Problem& data) {
  const bool on_device = row.subject->on_device;
  const Shape& shape = data.timed.shape;
  const std::size_t memory = on_device ? machine_.session->device_limits().memory / 4
                                       : std::numeric_limits<std::size_t>::max();
  const std::size_t cache = machine_.last_level_cache(on_device);
  const auto count = copies(bytes(shape), cache, memory);
  if (count > kMostCopies)
    throw gpu::Unsupported(
        fmt::format("{} copies of such small operands displace a cache of {} MiB, at most {} are "
                    "made; choose a larger n",
                    count, cache >> 20U, kMostCopies));
  runner_ =
      rotating([&] { return row.subject->prepare(machine_, shape); }, data.timed, count, on_device);
}

// A ceiling is proven by the result of its warm-up.
void Suite::set_stage(const Ceiling& row) {
  const std::string name = row_name(row.name, row.n, row.by_events);
  if (current_ == name) return;
  current_ = name;
  runner_.reset();
  report_progress(name);
  peak_ = row.prepare(machine_);
  warm_up(peak_.run);
  const std::string fault = peak_.fault();
  if (!fault.empty()) throw WrongResult(fault);
}

// A row that beats its roof is measured against a fresh one, once, before it is called impossible:
// the machine may have been busy when the roof was taken.
void Suite::hold_against_the_roof(benchmark::State& state, const Row& row, const Timed& timed) {
  const bool on_device = row.subject->on_device;
  if (row.by_events()) note(row, timed.seconds);
  const auto kernel = kernel_of(row);
  const bool matrix = on_matrix_units(kernel ? kernel->name : row.subject->variant);
  const auto roofs_now = [&](bool again) {
    Roofs roofs = again ? roofs_.again(machine_, on_device) : roofs_.roofs(machine_, on_device);
    if (matrix) roofs.flops = 0;
    roofs.cache = static_cast<double>(machine_.last_level_cache(on_device));
    return roofs;
  };
  const Work work = work_of(row);
  Roofs roofs = roofs_now(false);
  if (beats_peak(work, roofs, timed.seconds) && held_again_.insert(row.name()).second)
    roofs = roofs_now(true);
  state.counters["% of roof"] = percent_of_roof(work, roofs, timed.seconds);
  const std::string remark = bench::remark(work, roofs, timed.seconds);
  if (const std::string label = joined(timed.doubt, remark); !label.empty()) state.SetLabel(label);
}

// What runs on the device; none for peers and for the CPU.
std::optional<gpu::Variant> Suite::kernel_of(const Row& row) const {
  if (!row.subject->kernel) return std::nullopt;
  return row.subject->kernel(machine_.session->info(), square(op_of(row.subject->variant), row.n));
}

// The library measures a row several times; the last is the longest.
void Suite::note(const Row& row, double seconds) {
  const bool again = !kernel_seconds_.empty() && kernel_seconds_.back().first.name() == row.name();
  if (again) kernel_seconds_.pop_back();
  kernel_seconds_.emplace_back(row, seconds);
}

std::string Suite::explanation() {
  std::vector<KernelFacts> facts;
  for (const auto& [row, seconds] : kernel_seconds_) {
    const auto variant = kernel_of(row);
    if (!variant) continue;
    facts.push_back(kernel_facts(*machine_.session, *variant, row.n, seconds));
    facts.back().row = row.subject->variant;
  }
  return explanation_table(facts, device_roofs(machine_, roofs_.roofs(machine_, true)));
}

// Once a row; the library calls it for every repetition.
void Suite::weigh(const Row& row, Problem& data) {
  const std::string& variant = row.subject->variant;
  const Shape& shape = data.timed.shape;
  auto known = std::ranges::find_if(
      exactness_, [&](const Exactness& e) { return e.variant == variant && e.n == row.n; });
  if (known == exactness_.end()) {
    const auto inputs = samples_.try_emplace({op_of(variant), row.n}).first;
    if (inputs->second.empty()) inputs->second = samples(shape);
    const Errors errors = worst_errors(*runner_, inputs->second);
    known = exactness_.insert(known, {variant, row.n, errors});
    runner_->write_inputs(data.timed);
    runner_->write_output(data.timed);
  }
  const std::string inexact = beyond_bound(known->errors, shape.k, row.subject->epsilon);
  if (!inexact.empty()) throw WrongResult(inexact);
}

std::string Suite::accuracy() const { return accuracy_table(exactness_, cases_); }

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

// A row costs at least the proof, the warm-up and a run that is timed.
void Suite::refuse_if_too_long(const Row& row) {
  const double products = 2 + (row.by_events() ? options_.batch : 1);
  forecast_.allow(row.subject->variant, row.n, products,
                  [&](std::size_t n) { return probe(*row.subject, n); });
}

std::optional<double> Suite::probe(const Case& subject, std::size_t n) try {
  const Op op = op_of(subject.variant);
  const auto runner = subject.prepare(machine_, square(op, n));
  Problem& data = problem(op, n);
  runner->write_inputs(data.timed);
  runner->write_output(data.timed);
  runner->run(1);  // compiles, on some devices
  const auto begin = Clock::now();
  runner->run(1);
  return seconds_since(begin);
} catch (const gpu::Unsupported&) {
  return std::nullopt;
}

Problem& Suite::problem(Op op, std::size_t n) {
  const auto known = problems_.find({op, n});
  if (known != problems_.end()) return known->second;
  const double needed = Problem::bytes(square(op, n));
  const auto free = static_cast<double>(cpu::free_memory());
  if (needed > free)
    throw gpu::Unsupported(
        fmt::format("its operands take {:.1f} GB of the host's memory, {:.1f} GB are free",
                    needed * 1e-9, free * 1e-9));
  return problems_.try_emplace({op, n}, square(op, n)).first->second;
}

void Suite::report_progress(const std::string& row) {
  ++started_rows_;
  if (isatty(STDERR_FILENO) == 0) return;
  const double gone = seconds_since(begin_);
  const double left = gone / started_rows_ * (selected_rows_ - started_rows_ + 1);
  fmt::print(stderr, "\r\033[K[{}/{}] {}  {} gone, about {} left\r", started_rows_, selected_rows_,
             row, clock_text(gone), clock_text(left));
}

}  // namespace bench
