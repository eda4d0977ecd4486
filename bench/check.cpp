// Every case of the table at every awkward shape, against Eigen: exact for integers, within the
// rounding bound for reals. Shapes: bench/testdata/sizes.csv. The suites are Small (seconds), Slow
// (shapes of a thousand and more) and Huge (past 2^31 elements; only with CHECK_HUGE set).
#include "bench/cases.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace {

using bench::Case;
using bench::Op;
using bench::Operands;
using bench::Shape;
using bench::Values;

enum class Size { kSmall, kSlow, kHuge };

struct Line {
  Op op;
  Shape shape;
  bool plain;  // alpha = 1, beta = 0: the product of this suite
  std::string text;
};

Size size_of(const Shape& s) {
  if (s.a_size() + s.b_size() + s.c_size() > 1UL << 28U) return Size::kHuge;
  return bench::flops(s) > 1e8 ? Size::kSlow : Size::kSmall;
}

Line parse(const std::string& text) {
  std::istringstream row(text);
  std::vector<std::string> cells;
  for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
  const auto number = [&cells](std::size_t at) { return std::stoul("0" + cells[at]); };
  Line line{bench::op_of(cells[0] == "sgemv" ? "SGEMV/" : "SGEMM/"), {}, true, text};
  // A matrix-vector line gives rows × columns; they are this suite's m and k.
  line.shape = line.op == Op::kSgemv
                   ? Shape{number(1), 1, number(2), number(4), 1, 1}
                   : Shape{number(1), number(2), number(3), number(4), number(5), number(6)};
  line.plain = cells[7] == "1" && cells[8] == "0";
  return line;
}

// The lines of the table for one op and size; those with alpha or beta are not this suite's
// product.
std::vector<Line> lines(Op op, Size size) {
  std::ifstream file(CHECK_DATA "/sizes.csv");
  std::vector<Line> some;
  std::string text;
  std::getline(file, text);
  while (std::getline(file, text)) {
    Line line = parse(text);
    if (line.op == op && line.plain && size_of(line.shape) == size) some.push_back(line);
  }
  return some;
}

// The machine lives from the first to the last test and no longer: a driver that is unloaded before
// the statics of this program are destroyed would be called once more.
class Shared : public testing::Environment {
 public:
  static bench::Machine& machine() { return *machine_; }

  void SetUp() override {
    const auto devices = gpu::devices();
    const char* const wanted = std::getenv("BENCH_DEVICE");
    machine_ = std::make_unique<bench::Machine>(
        bench::Machine{cpu::Workspace(cpu::allowed_threads()), nullptr});
    if (!devices.empty())
      machine_->session = std::make_unique<gpu::Session>(
          gpu::choose(devices, wanted != nullptr ? wanted : ""), gpu::Sources());
  }
  void TearDown() override { machine_.reset(); }

 private:
  static inline std::unique_ptr<bench::Machine> machine_;
};

[[maybe_unused]] const auto* const kShared = testing::AddGlobalTestEnvironment(new Shared);

// Shapes that ran, and why the others could not.
struct Tally {
  std::size_t ran = 0;
  std::string left_out;
};

// Runs the case once at each shape that its device can hold, and has the result judged.
template <class Judge>
Tally run_each(const Case& subject, const std::vector<Line>& shapes, Values values, Judge judge) {
  Tally tally;
  for (const Line& line : shapes) {
    SCOPED_TRACE(line.text);
    try {
      const auto runner = subject.prepare(Shared::machine(), line.shape);
      Operands operands = bench::make_operands(line.shape, values);
      bench::poison(operands);
      runner->write_inputs(operands);
      runner->write_output(operands);
      runner->run(1);
      runner->read_output(operands);
      judge(operands);
      ++tally.ran;
    } catch (const gpu::Unsupported& reason) {
      tally.left_out += fmt::format("{}: {}\n", line.text, reason.what());
    }
  }
  return tally;
}

class Check : public testing::TestWithParam<Case> {
 protected:
  static Op op() { return bench::op_of(GetParam().variant); }

  void exact(const std::vector<Line>& shapes) {
    conclude(run_each(GetParam(), shapes, Values::kIntegers, [](const Operands& operands) {
      EXPECT_EQ(bench::fault(operands, bench::reference(operands)).value_or(""), "");
    }));
  }

  // A skip if nothing ran; what was left out beside shapes that did is told in the report.
  static void conclude(const Tally& tally) {
    if (tally.left_out.empty()) return;
    if (tally.ran == 0) GTEST_SKIP() << tally.left_out;
    RecordProperty("left_out", tally.left_out);
  }
};

TEST_P(Check, Small) { exact(lines(op(), Size::kSmall)); }

TEST_P(Check, Reals) {
  auto shapes = lines(op(), Size::kSmall);
  std::erase_if(shapes, [](const Line& line) { return line.shape.empty(); });
  Tally tally;
  for (const auto& [values, name] : bench::kRealValues) {
    SCOPED_TRACE(name);
    double worst = 0;
    tally = run_each(GetParam(), shapes, values, [&](const Operands& operands) {
      const double epsilon = GetParam().epsilon;
      worst = std::max(worst, bench::worst_error(operands, bench::exact(operands), epsilon));
      EXPECT_LE(worst, 1.0);
    });
    if (tally.ran > 0) RecordProperty(std::string(name), fmt::format("{:.3g} of the bound", worst));
  }
  conclude(tally);
}

// One odd shape with padding everywhere: what a simulator can run in seconds.
TEST_P(Check, Odd) {
  const Shape shape =
      op() == Op::kSgemv ? Shape{19, 1, 37, 40, 1, 1} : Shape{19, 35, 21, 23, 37, 41};
  exact({{op(), shape, true, "one odd shape"}});
}

TEST_P(Check, Slow) { exact(lines(op(), Size::kSlow)); }

TEST_P(Check, Huge) {
  if (std::getenv("CHECK_HUGE") == nullptr) GTEST_SKIP() << "needs CHECK_HUGE=1 and 40 GB";
  exact(lines(op(), Size::kHuge));
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.variant;
  std::ranges::replace(name, '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Check, testing::ValuesIn(bench::cases()), test_name);

// On a device that holds small matrices only.
TEST(RunEach, AShapeThatCannotRunHidesNoLaterOne) {
  Case subject = bench::case_of(cpu::variants().front());
  subject.prepare = [whole = subject.prepare](bench::Machine& machine, const Shape& shape) {
    if (shape.m > 100) throw gpu::Unsupported("too large");
    return whole(machine, shape);
  };
  const auto square = [](std::size_t n) {
    return Line{Op::kSgemm, bench::square(Op::kSgemm, n), true, fmt::format("n = {}", n)};
  };
  std::vector<std::size_t> judged;
  const Tally tally =
      run_each(subject, {square(101), square(5), square(102), square(7)}, Values::kIntegers,
               [&](const Operands& operands) { judged.push_back(operands.shape.m); });
  EXPECT_EQ(judged, (std::vector<std::size_t>{5, 7}));
  EXPECT_EQ(tally.ran, 2U);
  EXPECT_EQ(tally.left_out, "n = 101: too large\nn = 102: too large\n");
}

TEST(Table, NamesAreUniqueAndFreeOfRegexCharacters) {
  std::set<std::string> seen;
  for (const Case& row : bench::cases()) {
    EXPECT_TRUE(seen.insert(row.variant).second) << row.variant;
    EXPECT_EQ(row.variant.find_first_of(".[]{}()\\*+?|^$"), std::string::npos) << row.variant;
    EXPECT_TRUE(row.variant.starts_with("SGEMM/") || row.variant.starts_with("SGEMV/"));
    EXPECT_EQ(row.on_device, row.variant.find("/GPU/") != std::string::npos);
  }
}

}  // namespace
