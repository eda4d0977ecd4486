// The pure logic, by tables of real devices and drivers, and the checker itself by planted faults.
#include "bench/accuracy.hpp"
#include "bench/options.hpp"
#include "bench/problem.hpp"
#include "bench/selftest.hpp"
#include "gpu/event_time.hpp"
#include "gpu/peers.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <limits>

namespace {

using bench::Operands;
using bench::Shape;
using bench::Values;
using nlohmann::json;

json table(const char* name) {
  std::ifstream file(std::string(CHECK_DATA "/") + name);
  return json::parse(file);
}

TEST(Limits, DevicesOfTheField) {
  for (const json& device : table("devices.json")) {
    gpu::Limits limits;
    limits.work_group = device["max_wg"];
    limits.items = device["item_sizes"];
    limits.kernel_work_group = device["kernel_wg"];
    limits.local_bytes = device["local_mem"];
    for (const std::size_t tile : {8UL, 16UL, 32UL}) {
      const gpu::Needs needs{tile, tile, 2 * tile * tile * sizeof(float)};
      const std::string why = gpu::obstacle(limits, needs);
      const bool run = device["expected"]["tile" + std::to_string(tile)] == "run";
      EXPECT_EQ(why.empty(), run) << device["id"] << " tile " << tile << ": " << why;
    }
  }
}

TEST(Limits, PrivateArraysOfAWholeWorkGroup) {
  gpu::Limits limits{.work_group = 4096, .items = {4096, 4096, 1}, .kernel_work_group = 4096};
  limits.private_bytes = 4UL << 20U;
  EXPECT_EQ(gpu::obstacle(limits, gpu::Needs{64, 1, 0, 2048UL * 4}), "");
  EXPECT_NE(gpu::obstacle(limits, gpu::Needs{4096, 1, 0, 2048UL * 4}), "");
}

TEST(Limits, BuffersAndTheirSum) {
  const Shape shape = bench::square(bench::Op::kSgemm, 8192);  // 256 MiB each
  gpu::Limits limits;
  constexpr std::size_t kGuards = 2 * gpu::kGuard * sizeof(float);
  limits.allocation = (256UL << 20U) + kGuards;
  limits.memory = (768UL << 20U) + kGuards;
  EXPECT_EQ(gpu::obstacle(limits, shape), "");
  --limits.memory;
  EXPECT_NE(gpu::obstacle(limits, shape).find("768.01 MiB for A, B and C"), std::string::npos);
  --limits.allocation;
  EXPECT_NE(gpu::obstacle(limits, shape).find("a buffer of 256.01 MiB"), std::string::npos);
}

TEST(Limits, SizesBeyondAnIntAreRefused) {
  EXPECT_EQ(gpu::to_int(2147483647), 2147483647);
  EXPECT_THROW(gpu::to_int(2147483648), gpu::Unsupported);
  EXPECT_THROW(gpu::to_int(1UL << 32U), gpu::Unsupported);
}

TEST(Sources, AFolderIsReadOnceSoThatARunIsOfOneText) {
  const std::filesystem::path folder = testing::TempDir() + "/sources";
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "mine.cl") << "before";
  const gpu::Sources sources(folder);
  std::ofstream(folder / "mine.cl") << "after";
  EXPECT_EQ(sources.text("mine"), "before");
  EXPECT_EQ(gpu::Sources(folder).text("mine"), "after");
  EXPECT_THROW(static_cast<void>(sources.text("other")), std::runtime_error);
  EXPECT_THROW(gpu::Sources(folder / "mine.cl"), std::runtime_error);
  std::filesystem::remove_all(folder);
}

TEST(Peers, CudasDeviceIsTheOneWhereOpenClsSits) {
  const std::vector<gpu::PciAddress> cuda = {{0, 1, 0}, {0, 2, 0}, {1, 2, 0}, {0, 2, 4}};
  for (std::size_t i = 0; i < cuda.size(); ++i)
    EXPECT_EQ(gpu::same_device(cuda[i], cuda), static_cast<int>(i));
  EXPECT_THROW(gpu::same_device(std::nullopt, cuda), gpu::Unsupported);
  EXPECT_THROW(gpu::same_device(gpu::PciAddress{0, 3, 0}, cuda), gpu::Unsupported);
  const std::vector<gpu::PciAddress> twice(2, {0, 1, 0});
  EXPECT_THROW(gpu::same_device(twice[0], twice), gpu::Unsupported);
}

TEST(NdRange, CoversCWithWholeWorkGroups) {
  const auto range = gpu::cover({16, 8, 32, 64}, 33, 65);
  EXPECT_EQ(range.global, (std::array<std::size_t, 2>{32, 16}));
  const auto rows = gpu::cover({64, 1, 64, gpu::Geometry::kWhole, gpu::Axis::kRows}, 1000, 77);
  EXPECT_EQ(rows.global, (std::array<std::size_t, 2>{1024, 1}));
}

// A field of the table that may be missing or null.
template <class T>
std::optional<T> field(const json& row, const char* name) {
  const auto found = row.find(name);
  if (found == row.end() || found->is_null()) return std::nullopt;
  return found->get<T>();
}

TEST(EventTime, StampsOfTheField) {
  const std::map<std::string, gpu::Trust> words = {{"ok", gpu::Trust::kOk},
                                                   {"too_short_for_timer", gpu::Trust::kTooShort},
                                                   {"invalid", gpu::Trust::kInvalid},
                                                   {"suspicious", gpu::Trust::kSuspicious}};
  for (const json& row : table("timestamps.json")) {
    gpu::Stamps stamps;
    stamps.start = field<std::uint64_t>(row, "st");
    stamps.end = field<std::uint64_t>(row, "en");
    stamps.queued = field<std::uint64_t>(row, "q");
    stamps.query = field<int>(row, "rc").value_or(0);
    stamps.status = field<int>(row, "status").value_or(0);
    gpu::Plausible plausible;
    plausible.timer_ns = field<double>(row, "timer_ns").value_or(0);
    plausible.wall_ns = field<double>(row, "wall_ns").value_or(0);
    if (const auto flop = field<double>(row, "flop"))
      plausible.minimum_ns = *flop / row["peak_flops"].get<double>() * 1e9;
    const auto time = gpu::judge(stamps, plausible);
    EXPECT_EQ(time.trust, words.at(row["expect"])) << row["id"] << ": " << time.why;
    EXPECT_EQ(time.why.empty(), time.trust == gpu::Trust::kOk);
    if (const auto ns = field<double>(row, "ns")) {
      EXPECT_NEAR(time.seconds * 1e9, *ns, 1e-6);
    }
  }
}

// A right product, to be spoilt by each test.
class Checker : public testing::Test {
 protected:
  Checker() {
    const auto& s = operands.shape;
    for (std::size_t i = 0; i < s.m; ++i)
      for (std::size_t j = 0; j < s.n; ++j) at(i, j) = expected[i * s.n + j];
  }
  float& at(std::size_t i, std::size_t j) { return operands.c()[i * operands.shape.ldc + j]; }
  std::string fault() { return bench::fault(operands, expected).value_or(""); }

  Operands operands = bench::make_operands({17, 17, 9, 9, 17, 20}, Values::kIntegers);
  std::vector<float> expected = bench::reference(operands);
};

TEST_F(Checker, AcceptsTheRightResult) {
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(bench::worst_error(operands, bench::exact(operands), gpu::kFloat32Epsilon), 0);
}

TEST_F(Checker, CatchesOneChangedElement) {
  at(16, 3) += 1;
  EXPECT_NE(fault().find("1 of 289 elements, the first at row 16, column 3"), std::string::npos);
  EXPECT_GT(bench::worst_error(operands, bench::exact(operands), gpu::kFloat32Epsilon), 1);
}

TEST_F(Checker, CatchesANaN) {
  at(0, 0) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(fault(), "");
  EXPECT_FALSE(bench::worst_error(operands, bench::exact(operands), gpu::kFloat32Epsilon) <= 1);
}

TEST_F(Checker, CatchesATransposedResult) {
  for (std::size_t i = 0; i < 17; ++i)
    for (std::size_t j = 0; j < i; ++j) std::swap(at(i, j), at(j, i));
  EXPECT_NE(fault(), "");
}

TEST_F(Checker, CatchesADeadKernel) {
  bench::poison(operands);
  EXPECT_NE(fault().find("never written"), std::string::npos);
}

TEST_F(Checker, CatchesATouchedGuardAndPadding) {
  operands.guarded_c.front() = 0;
  EXPECT_NE(fault().find("outside"), std::string::npos);
  bench::poison(operands);
  operands.c()[17] = 1;  // the first element of the padding of row 0
  EXPECT_NE(fault().find("wrote 1 at 17 floats"), std::string::npos);
}

TEST_F(Checker, BoundIsTightEnoughForOneLostProduct) {
  Operands real = bench::make_operands({33, 33, 500, 500, 33, 33}, Values::kUnit);
  const auto product = bench::reference(real);
  std::copy(product.begin(), product.end(), real.c());
  EXPECT_LE(bench::worst_error(real, bench::exact(real), gpu::kFloat32Epsilon), 1);
  real.c()[40] -= real.a[500] * real.b[7];  // row 1, column 7
  EXPECT_GT(bench::worst_error(real, bench::exact(real), gpu::kFloat32Epsilon), 1);
}

TEST_F(Checker, LooksAtEveryStepOfRowsWhereNotAllAreWanted) {
  const bench::Exact some = bench::exact(operands, 6);  // rows 0, 3, … 15
  EXPECT_EQ(some.product.size(), 6 * 17U);
  at(14, 0) += 1;
  EXPECT_EQ(bench::worst_error(operands, some, gpu::kFloat32Epsilon), 0);
  at(15, 16) += 1;
  EXPECT_GT(bench::worst_error(operands, some, gpu::kFloat32Epsilon), 1);
}

bench::Case row(std::string variant, double epsilon = gpu::kFloat32Epsilon) {
  const bool on_device = variant.find("/GPU/") != std::string::npos;
  return {std::move(variant), on_device, epsilon, {}, {}};
}

TEST(Accuracy, TheYardstickIsAPeerOfFullAccuracyElseEigen) {
  std::vector<bench::Case> cases{row("SGEMM/CPU/Eigen"), row("SGEMM/CPU/Packed"),
                                 row("SGEMM/GPU/PeerCuBLASTf32", gpu::kTf32Epsilon),
                                 row("SGEMV/CPU/Eigen")};
  const auto of = [&](bench::Op op) { return bench::yardstick(cases, op).variant; };
  EXPECT_EQ(of(bench::Op::kSgemm), "SGEMM/CPU/Eigen");
  cases.push_back(row("SGEMM/CPU/PeerOneDNN"));
  EXPECT_EQ(of(bench::Op::kSgemm), "SGEMM/CPU/PeerOneDNN");
  cases.push_back(row("SGEMM/GPU/PeerCuBLAS"));
  EXPECT_EQ(of(bench::Op::kSgemm), "SGEMM/GPU/PeerCuBLAS");
  EXPECT_EQ(of(bench::Op::kSgemv), "SGEMV/CPU/Eigen");
}

TEST(Accuracy, TheTableHoldsEveryRowAgainstTheYardstickOfItsSize) {
  const std::vector<bench::Case> cases{row("SGEMM/CPU/Eigen")};
  const std::string text = bench::accuracy_table({{"SGEMM/CPU/Eigen", 32, {1, 2, 3, 4}},
                                                  {"SGEMM/CPU/Packed", 64, {1, 1, 1, 1}},
                                                  {"SGEMM/CPU/Packed", 32, {3, 2, 6, 1}}},
                                                 cases);
  const auto held = text.find("Packed     32         3 (3.00x)           2 (1.00x)");
  const auto alone = text.find("Packed     64         1                   1  ");
  EXPECT_LT(held, alone) << text;
  EXPECT_LT(alone, text.find("(x): over that of SGEMM/CPU/Eigen on")) << text;
}

TEST(Accuracy, AnErrorBeyondTheBoundIsNamedWithItsInputs) {
  constexpr double kEpsilon = gpu::kFloat32Epsilon;
  EXPECT_EQ(bench::beyond_bound({100, 100, 100, 100}, 100, kEpsilon), "");
  EXPECT_EQ(bench::beyond_bound({1, 1, 300, 1}, 100, kEpsilon),
            "inexact: 3 times its bound for cancelling inputs");
  EXPECT_NE(bench::beyond_bound({NAN, 1, 1, 1}, 100, kEpsilon), "");
}

// A launch of some rounds on a device that takes a microsecond for each.
bench::ClockPoint launched(std::size_t rounds) {
  const double seconds = static_cast<double>(rounds) * 1e-6;
  return {rounds, seconds, seconds, 0};
}

TEST(Selftest, LaunchesAreLengthenedWhereTheFirstWasSlow) {
  const bench::ClockPoint slow{64, 1, 1, 0};  // the machine had other things to do
  EXPECT_GT(bench::launch_of(2e-3, slow, launched).event, 1e-3);
}

TEST(Selftest, WithoutALongLaunchNothingIsTested) {
  bench::ClockReport report;
  EXPECT_TRUE(bench::agree(report));  // there is no device
  report.points = {launched(900)};
  EXPECT_FALSE(bench::agree(report));
  EXPECT_TRUE(bench::summary(report).starts_with("not tested: no launch took more than 1 ms"));
  EXPECT_NE(bench::table(report).find("NOT TESTED"), std::string::npos);
  report.points.push_back(launched(1100));
  EXPECT_TRUE(bench::agree(report));
  EXPECT_TRUE(bench::summary(report).starts_with("ok: wall/event 1.000 at 1.10 ms"));
  report.points.back().wall *= 1.04;
  EXPECT_FALSE(bench::agree(report));
  EXPECT_TRUE(bench::summary(report).starts_with("failed: wall/event 1.040"));
}

// What a filter selects must be what its words say, by the rules of names in the design.
TEST(Filter, SelectsWhatItSays) {
  const char* const tile = "SGEMM/GPU/Tile16/n:1024/manual_time";
  const char* const cached_row = "SGEMM/GPU/CachedRow/EndToEnd/n:256/real_time";
  const char* const row = "SGEMM/GPU/Row/n:10240/manual_time";
  const char* const vector = "SGEMV/CPU/Naive/n:1024/real_time";
  struct {
    const char* filter;
    bool tile, cached_row, row, vector;
  } const lines[] = {
      {"", true, true, true, true},
      {"all", true, true, true, true},
      {"Tile", true, false, false, false},
      {"tile", false, false, false, false},
      {"/Row/", false, false, true, false},
      {"Row", false, true, true, false},
      {"SGEMM/GPU", true, true, true, false},
      {"n:1024(/|$)", true, false, false, true},
      {"-SGEMM", false, false, false, true},
      {"EndToEnd", false, true, false, false},
      {"manual_time$", true, false, true, false},
  };
  for (const auto& line : lines) {
    SCOPED_TRACE(line.filter);
    EXPECT_EQ(bench::selected(line.filter, tile), line.tile);
    EXPECT_EQ(bench::selected(line.filter, cached_row), line.cached_row);
    EXPECT_EQ(bench::selected(line.filter, row), line.row);
    EXPECT_EQ(bench::selected(line.filter, vector), line.vector);
  }
  EXPECT_THROW(bench::selected("Tile(", ""), bench::Usage);
}

TEST(Work, FlopsAndBytesOfAMatrixOf1024) {
  const Shape shape = bench::square(bench::Op::kSgemm, 1024);
  EXPECT_EQ(bench::flops(shape), 2147483648.0);  // 2^31: negative as an int
  EXPECT_EQ(bench::bytes(shape), 3 * 4.0 * 1024 * 1024);
  EXPECT_EQ(bench::bytes(bench::square(bench::Op::kSgemv, 1024)), 4.0 * (1024 * 1024 + 2 * 1024));
}

}  // namespace
