// The benchmarks: registers every case at every size, proves it, then times it.
#pragma once

#include "bench/accuracy.hpp"
#include "bench/cases.hpp"
#include "bench/forecast.hpp"
#include "bench/options.hpp"
#include "bench/peaks.hpp"
#include "bench/timing.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace bench {

/// The data of one (op, n), made once and shared by all variants.
struct Problem {
  explicit Problem(const Shape& shape);
  /// What it takes of the host's memory.
  static double bytes(const Shape& shape);

  Operands exact;  // integers, with the result they must have
  std::vector<float> expected;
  Operands timed;  // real values
};

/// One line of the result table: a case at a size, by its kernel alone or end to end.
struct Row {
  const Case* subject;
  std::size_t n;
  bool end_to_end;

  [[nodiscard]] bool by_events() const { return subject->on_device && !end_to_end; }
  /// "SGEMM/GPU/Tile16/EndToEnd", and with size and clock as the library will print it.
  [[nodiscard]] std::string family() const;
  [[nodiscard]] std::string name() const;
};

class Suite {
 public:
  Suite(const Options& options, std::vector<Case> cases, Machine machine);

  /// With `gpu` false only the rows of the CPU side exist.
  void register_rows(bool gpu);

  /// How many of them the flags name; the yardstick of --accuracy alone is none.
  [[nodiscard]] int asked_for() const { return asked_for_; }

  /// Why the kernels that were measured took what they took; see bench/explain.
  std::string explanation();

  /// How exact the rows that were measured are; see bench/accuracy.
  [[nodiscard]] std::string accuracy() const;

 private:
  [[nodiscard]] bool wanted(const Row& row) const;
  void register_row(const std::string& family, std::size_t n, bool by_events,
                    std::function<void(benchmark::State&)> measure);
  void measure(benchmark::State& state, const Row& row);
  void measure(benchmark::State& state, const Ceiling& row);
  void at_the_edge(benchmark::State& state, const std::function<void()>& measurement);
  void set_stage(const Row& row);
  void set_stage(const Ceiling& row);
  void rotate(const Row& row, const Problem& data);
  [[nodiscard]] std::optional<gpu::Variant> kernel_of(const Row& row) const;
  void note(const Row& row, double seconds);
  void weigh(const Row& row, Problem& data);
  void hold_against_the_roof(benchmark::State& state, const Row& row, const Timed& timed);
  void prove(const Row& row, Runner& runner, Problem& problem);
  void refuse_if_too_long(const Row& row);
  std::optional<double> probe(const Case& subject, std::size_t n);
  Problem& problem(Op op, std::size_t n);
  void report_progress(const std::string& row);

  Options options_;
  std::vector<Case> cases_;
  std::vector<Ceiling> ceilings_;
  Machine machine_;

  // The row that is being measured: the library calls it several times to find its iterations.
  std::string current_;
  std::unique_ptr<Runner> runner_;
  Peak peak_;

  Ceilings roofs_;
  std::vector<std::pair<Row, double>> kernel_seconds_;  // in the order of measuring
  std::vector<Exactness> exactness_;
  std::map<std::pair<Op, std::size_t>, Problem> problems_;
  std::map<std::pair<Op, std::size_t>, std::vector<Sample>> samples_;
  std::map<std::pair<std::string, std::size_t>, std::string> verdicts_;  // "" is proven right
  Forecast forecast_;
  std::set<std::string> held_again_;  // rows that beat their peak once
  int selected_rows_ = 0;
  int asked_for_ = 0;
  int started_rows_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace bench
