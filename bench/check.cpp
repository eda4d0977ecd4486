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

void run_once(const Case& subject, Operands& operands) {
  const auto runner = subject.prepare(Shared::machine(), operands.shape);
  bench::poison(operands);
  runner->write_inputs(operands);
  runner->write_output(operands);
  runner->run(1);
  runner->read_output(operands);
}

class Check : public testing::TestWithParam<Case> {
 protected:
  // Exact at all lines of a size. A shape that the device cannot hold is a skip with its reason.
  void exact(Size size) {
    for (const Line& line : lines(bench::op_of(GetParam().variant), size)) {
      SCOPED_TRACE(line.text);
      Operands operands = bench::make_operands(line.shape, Values::kIntegers);
      const auto expected = bench::reference(operands);
      try {
        run_once(GetParam(), operands);
      } catch (const gpu::Unsupported& reason) {
        GTEST_SKIP() << reason.what();
      }
      EXPECT_EQ(bench::fault(operands, expected).value_or(""), "");
    }
  }

  double worst(Values values) {
    double worst = 0;
    for (const Line& line : lines(bench::op_of(GetParam().variant), Size::kSmall)) {
      if (line.shape.empty()) continue;
      SCOPED_TRACE(line.text);
      Operands operands = bench::make_operands(line.shape, values);
      run_once(GetParam(), operands);
      worst =
          std::max(worst, bench::worst_error(operands, bench::exact(operands), GetParam().epsilon));
      EXPECT_LE(worst, 1.0);
    }
    return worst;
  }
};

TEST_P(Check, Small) { exact(Size::kSmall); }

TEST_P(Check, Reals) {
  try {
    for (const auto& [values, name] : bench::kRealValues) {
      SCOPED_TRACE(name);
      RecordProperty(std::string(name), fmt::format("{:.3g} of the bound", worst(values)));
    }
  } catch (const gpu::Unsupported& reason) {
    GTEST_SKIP() << reason.what();
  }
}

// One odd shape with padding everywhere: what a simulator can run in seconds.
TEST_P(Check, Odd) {
  const bool vector = bench::op_of(GetParam().variant) == Op::kSgemv;
  const Shape shape = vector ? Shape{19, 1, 37, 40, 1, 1} : Shape{19, 35, 21, 23, 37, 41};
  Operands operands = bench::make_operands(shape, Values::kIntegers);
  const auto expected = bench::reference(operands);
  try {
    run_once(GetParam(), operands);
  } catch (const gpu::Unsupported& reason) {
    GTEST_SKIP() << reason.what();
  }
  EXPECT_EQ(bench::fault(operands, expected).value_or(""), "");
}

TEST_P(Check, Slow) { exact(Size::kSlow); }

TEST_P(Check, Huge) {
  if (std::getenv("CHECK_HUGE") == nullptr) GTEST_SKIP() << "needs CHECK_HUGE=1 and 40 GB";
  exact(Size::kHuge);
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.variant;
  std::ranges::replace(name, '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Check, testing::ValuesIn(bench::cases()), test_name);

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
