// The pure logic behind the explanations and the warnings: roofs, resources, bounds, rotation,
// conditions, the report on the clocks.
#include "bench/conditions.hpp"
#include "bench/explain.hpp"
#include "bench/facts.hpp"
#include "bench/forecast.hpp"
#include "bench/peaks.hpp"
#include "bench/reporting.hpp"
#include "bench/roofline.hpp"
#include "bench/rotation.hpp"
#include "bench/selftest.hpp"
#include "gpu/resources.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace {

using bench::Bound;
using bench::Roofs;
using bench::Work;
using gpu::Axis;
using gpu::Geometry;

constexpr std::size_t kWhole = Geometry::kWhole;
constexpr Work kProduct{2e9, 12e6};  // n = 1000
constexpr Roofs kRoofs{1e12, 1e11};

TEST(Roofline, TheNearerRoofCounts) {
  EXPECT_DOUBLE_EQ(bench::least_seconds(kProduct, kRoofs), 2e-3);
  EXPECT_DOUBLE_EQ(bench::least_seconds({2e6, 4e6}, kRoofs), 4e-5);  // a matrix times a vector
  EXPECT_DOUBLE_EQ(bench::percent_of_roof(kProduct, kRoofs, 4e-3), 50);
  EXPECT_EQ(bench::percent_of_roof(kProduct, {}, 4e-3), 0);
  EXPECT_EQ(kProduct.intensity(), 2e9 / 12e6);
}

TEST(Roofline, AnImpossibleTimeIsMarkedAndACacheIsNamed) {
  EXPECT_EQ(bench::remark(kProduct, kRoofs, 2e-3), "");
  EXPECT_EQ(bench::remark(kProduct, kRoofs, 1.95e-3), "");  // within the slack of two measurements
  EXPECT_TRUE(bench::remark(kProduct, kRoofs, 1e-3).starts_with("suspicious: 2000 GFLOP/s"));
  EXPECT_TRUE(bench::remark({2e6, 4e6}, kRoofs, 2e-5).starts_with("cache: 200 GB/s"));
  const Roofs small_cache{1e12, 1e11, 5e5};
  EXPECT_TRUE(bench::remark({2e6, 4e6}, small_cache, 2e-5).starts_with("reads: 200 GB/s"));
  EXPECT_EQ(bench::remark(kProduct, {}, 1e-9), "");  // nothing is known, nothing is said
}

TEST(Roofline, MatrixUnitsByName) {
  EXPECT_TRUE(bench::on_matrix_units("SGEMM/GPU/TensorCore3xTf32"));
  EXPECT_TRUE(bench::on_matrix_units("SGEMM/GPU/PeerCuBLASTf32"));
  EXPECT_FALSE(bench::on_matrix_units("SGEMM/GPU/PeerCuBLAS"));
  EXPECT_FALSE(bench::on_matrix_units("SGEMM/GPU/TileRegister128x128"));
}

TEST(Resources, LogOfNvidiasCompiler) {
  const char* const log =
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'other' for 'sm_90a'\n"
      "ptxas info    : Function properties for other\n"
      "ptxas         .     16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers, 9 bytes smem\n"
      "ptxas info    : Compiling entry function 'sgemm_cached_row' for 'sm_90a'\n"
      "ptxas info    : Function properties for sgemm_cached_row\n"
      "ptxas         .     4096 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 0 barriers, 4096 bytes cumulative stack size\n";
  const auto row = gpu::parse_log(log, "sgemm_cached_row");
  EXPECT_EQ(row.registers, 32U);
  EXPECT_EQ(row.stack_bytes, 4096U);
  EXPECT_EQ(row.spill_bytes, 0U);
  EXPECT_EQ(gpu::parse_log(log, "other").registers, 255U);
  EXPECT_EQ(gpu::parse_log(log, "missing").registers, std::nullopt);
  EXPECT_EQ(gpu::parse_log("", "other").stack_bytes, std::nullopt);
}

TEST(Resources, LoadsByGeometry) {
  struct {
    Geometry geometry;
    double loads;
  } const lines[] = {
      {{16, 16, 16, 16}, 2},                   // one element a work-item, tiled or not
      {{8, 8, 32, 32}, 0.5},                   // 4×4 of them
      {{16, 16, 128, 128}, 0.25},              // 8×8
      {{64, 1, 64, kWhole, Axis::kRows}, 2},   // a row, one element after the other
      {{128, 1, 1, 1, Axis::kRows}, 2},        // a part of a dot product
      {{16, 8, 128, 64}, 1.0 / 16 + 1.0 / 4},  // 16 rows × 4 columns
      {{1, 1, 128, 32}, 1.0 / 128 + 1.0 / 32},
      {{256, 1, 128, 128}, 2.0 / 8},  // warps arrange a line of work-items
  };
  for (const auto& line : lines)
    EXPECT_DOUBLE_EQ(gpu::loads_per_multiply_add(line.geometry), line.loads);
}

TEST(Resources, SlicesOwnTheSameTile) {
  gpu::Variant v{.name = "SGEMM/GPU/X", .kernel = "x", .geometry = {256, 1, 32, 64}};
  EXPECT_DOUBLE_EQ(gpu::loads_per_multiply_add(bench::geometry_of_a_slice(v)), 2 / std::sqrt(8));
  v.defines = "TILE_K=64 SLICES=4 STAGES=3";  // 64 work-items hold the tile, four times
  EXPECT_DOUBLE_EQ(gpu::loads_per_multiply_add(bench::geometry_of_a_slice(v)), 2 / std::sqrt(32));
  for (const char* const other : {"", "SLICES=0", "SLICES=x", "NO_SLICES=4", "SLICES"}) {
    v.defines = other;
    EXPECT_EQ(bench::geometry_of_a_slice(v).wg_x, 256U) << other;
  }
}

TEST(Resources, OneByteOfLocalMemoryIsNone) {
  EXPECT_EQ(gpu::local_memory(1), 0U);  // what NVIDIA reports for a kernel without any
  EXPECT_EQ(gpu::local_memory(2048), 2048U);
}

TEST(Resources, ResidentGroups) {
  gpu::Resources r;
  EXPECT_EQ(gpu::resident_groups(r, 256, 0, true), 1U);  // a core takes one at a time
  EXPECT_EQ(gpu::resident_groups(r, 256, 0, false), std::nullopt);
  EXPECT_EQ(gpu::resident_groups(r, 256, 90, false), 8U);  // 2048 work-items
  r.registers = 126;                                       // taken in eights
  EXPECT_EQ(gpu::resident_groups(r, 256, 90, false), 2U);
  r.registers = 32;
  r.local_bytes = 100UL << 10U;
  EXPECT_EQ(gpu::resident_groups(r, 256, 90, false), 2U);
}

// A kernel under roofs of 1000 GFLOP/s, 100 GB/s of copy and 1000 GB/s from local memory: its
// multiply-adds take 2 ms, its traffic 0.12 ms, its loads 8 ms.
class Explained : public testing::Test {
 protected:
  Explained() {
    facts.variant = "SGEMM/GPU/Tile16";
    facts.n = 1000;
    facts.work = kProduct;
    facts.loads = 2;
    facts.work_group = 256;
    facts.groups_per_unit = 30;
    facts.resources.local_bytes = 2048;
  }
  bench::Explanation at(double seconds) {
    facts.seconds = seconds;
    return bench::explain(facts, roofs);
  }

  bench::KernelFacts facts;
  bench::DeviceRoofs roofs{kRoofs, 1e12, 5e-6};
};

TEST_F(Explained, LoadsBoundATiledKernel) {
  const auto why = at(10e-3);
  EXPECT_EQ(why.bound, Bound::kLoads);
  EXPECT_DOUBLE_EQ(why.share, 0.8);
  EXPECT_NE(why.evidence.find("2 loads a multiply-add, 8 GB from local memory"), std::string::npos);
}

TEST_F(Explained, RegisterBlocksMoveTheBoundToArithmetic) {
  facts.loads = 0.25;
  EXPECT_EQ(at(3e-3).bound, Bound::kMultiplyAdds);
}

TEST_F(Explained, LoadsThatWouldOutlastTheKernelWereCountedTooHigh) {
  EXPECT_EQ(at(7.5e-3).bound, Bound::kLoads);
  const auto why = at(5e-3);
  EXPECT_EQ(why.bound, Bound::kLatency);
  EXPECT_NE(why.evidence.find("no roof is near (multiply-adds: 40 %)"), std::string::npos);
}

TEST_F(Explained, VectorProductsAreBoundByMemory) {
  facts.work = {2e6, 4e6};
  facts.loads = 0.1;
  EXPECT_EQ(at(5e-5).bound, Bound::kMemory);
}

TEST_F(Explained, FewGroupsLeaveUnitsIdle) {
  facts.groups_per_unit = 0.25;
  const auto why = at(1);
  EXPECT_EQ(why.bound, Bound::kIdleUnits);
  EXPECT_NE(why.evidence.find("75 % of the units idle"), std::string::npos);
  facts.groups_per_unit = 1.1;  // the second wave has a tenth of the work
  EXPECT_EQ(at(1).bound, Bound::kIdleUnits);
}

TEST_F(Explained, AStackFrameIsPrivateMemoryOutsideTheRegisters) {
  facts.resources.stack_bytes = 4096;
  EXPECT_EQ(at(1).bound, Bound::kPrivateMemory);
  facts.resources.stack_bytes = 0;  // the array found its registers
  facts.resources.array_bytes = 64;
  EXPECT_EQ(at(1).bound, Bound::kLatency);
}

TEST_F(Explained, OnACpuALongArrayIsOnTheStack) {
  facts.resources.array_bytes = 4096;
  EXPECT_EQ(at(1).bound, Bound::kLatency);  // a GPU's driver has not told
  facts.cpu = true;
  EXPECT_EQ(at(1).bound, Bound::kPrivateMemory);
}

TEST_F(Explained, StridesAndLatencyRemain) {
  EXPECT_EQ(at(1).bound, Bound::kLatency);
  facts.strided = true;
  EXPECT_EQ(at(1).bound, Bound::kStrides);
}

TEST_F(Explained, FarFromEveryRoofOfACpuIsWhatItsCompilerMade) {
  facts.cpu = true;
  EXPECT_EQ(at(0.1).bound, Bound::kGeneratedCode);
  EXPECT_NE(at(0.1).evidence.find("no roof is near (loads: 8 %)"), std::string::npos);
  EXPECT_EQ(at(0.012).bound, Bound::kLoads);
}

TEST_F(Explained, MatrixUnitsAreNotHeldToTheVectorRoof) {
  facts.variant = "SGEMM/GPU/TensorCoreTf32";
  facts.loads = 0;
  EXPECT_NE(at(3e-3).bound, Bound::kMultiplyAdds);
}

TEST_F(Explained, ARowThatRunsAnothersKernelSaysBoth) {
  facts.seconds = 10e-3;
  facts.row = "SGEMM/GPU/Tuned";
  const std::string table = bench::explanation_table({&facts, 1}, roofs);
  EXPECT_NE(table.find("SGEMM/GPU/Tuned (Tile16) "), std::string::npos);
}

TEST_F(Explained, MoreThanAllOfTheTimeSpeaksAgainstTheRoof) {
  facts.loads = 0.25;
  EXPECT_NE(at(1e-3).evidence.find("200 % of the time at the measured rate: the roof is too low"),
            std::string::npos);
  EXPECT_EQ(at(3e-3).evidence.find("too low"), std::string::npos);
}

TEST_F(Explained, TheTableHasALineForEachKernel) {
  facts.seconds = 10e-3;
  const std::vector<bench::KernelFacts> all(3, facts);
  const std::string table = bench::explanation_table(all, roofs);
  std::size_t lines = 0;
  for (auto at = table.find("SGEMM/GPU/Tile16"); at != std::string::npos;
       at = table.find("SGEMM/GPU/Tile16", at + 1))
    ++lines;
  EXPECT_EQ(lines, 3U);
}

// Times of one product of SGEMM/GPU/X by size, and at which sizes they were asked for.
struct Prober {
  std::map<std::size_t, double> seconds;
  std::vector<std::size_t> asked;

  bench::Forecast::Probe probe() {
    return [this](std::size_t n) -> std::optional<double> {
      asked.push_back(n);
      return seconds.contains(n) ? std::optional(seconds[n]) : std::nullopt;
    };
  }
};

TEST(Forecast, ScalesTheTimeOfASmallerProduct) {
  Prober prober{{{128, 0.01}}, {}};
  bench::Forecast forecast(5);
  forecast.allow("SGEMM/GPU/X", 512, 3, prober.probe());  // 64 times as long: 1.9 s
  EXPECT_THROW(forecast.allow("SGEMM/GPU/X", 512, 22, prober.probe()), bench::OverBudget);
  forecast.note("SGEMM/GPU/X", 512, 0.1);
  forecast.allow("SGEMM/GPU/X", 1024, 3, prober.probe());  // 8 times 0.1 s
  EXPECT_EQ(prober.asked, (std::vector<std::size_t>{128, 256}));
}

TEST(Forecast, WhatSmallProductsLeaveIdlePredictsNothing) {
  Prober prober{{{128, 0.05}, {256, 0.05}, {512, 0.06}}, {}};
  bench::Forecast(5).allow("SGEMM/GPU/X", 1024, 3, prober.probe());
  EXPECT_EQ(prober.asked, (std::vector<std::size_t>{128, 256, 512}));
}

TEST(Forecast, WhereNothingCanBeTriedNothingIsRefused) {
  Prober prober;
  bench::Forecast(1).allow("SGEMM/GPU/X", 1024, 3, prober.probe());
  bench::Forecast(0).allow("SGEMM/GPU/X", 65536, 1e9, prober.probe());  // no limit, no question
  EXPECT_EQ(prober.asked, std::vector<std::size_t>{128});
}

TEST(Rotation, CopiesDisplaceTheCacheThreeTimes) {
  constexpr std::size_t kMiB = 1UL << 20U;
  EXPECT_EQ(bench::copies(3.0 * kMiB, 32 * kMiB, 1024 * kMiB), 32U);
  EXPECT_EQ(bench::copies(400.0 * kMiB, 32 * kMiB, 1024 * kMiB), 1U);  // cold by itself
  EXPECT_EQ(bench::copies(3.0 * kMiB, 32 * kMiB, 30 * kMiB), 10U);     // what memory allows
  EXPECT_EQ(bench::copies(3.0 * kMiB, 32 * kMiB, 0), 1U);
}

// A runner that records what happened to which of the copies.
class Recorder final : public bench::Runner {
 public:
  Recorder(int id, std::vector<std::string>& log) : id_(std::to_string(id)), log_(log) {}
  void write_inputs(const bench::Operands& o) override {
    log_.push_back("in" + id_);
    inputs = o.a.data();
  }
  void write_output(bench::Operands&) override {}
  std::optional<double> run(int) override {
    log_.push_back("run" + id_);
    return std::nullopt;
  }
  void read_output(bench::Operands&) override { log_.push_back("out" + id_); }

  const float* inputs = nullptr;

 private:
  std::string id_;
  std::vector<std::string>& log_;
};

TEST(Rotation, GoesRoundAndKeepsAProductsStepsTogether) {
  std::vector<std::string> log;
  std::vector<Recorder*> made;
  const auto prepare = [&] {
    auto runner = std::make_unique<Recorder>(static_cast<int>(made.size()), log);
    made.push_back(runner.get());
    return runner;
  };
  auto operands =
      bench::make_operands(bench::square(bench::Op::kSgemm, 4), bench::Values::kIntegers);
  const auto rotation = bench::rotating(prepare, operands, 2, false);
  std::set<const float*> distinct{operands.a.data()};
  for (const Recorder* runner : made) distinct.insert(runner->inputs);
  EXPECT_EQ(distinct.size(), 3U);  // each its own copy of A
  log.clear();
  for (int i = 0; i < 3; ++i) {
    rotation->write_inputs(operands);
    rotation->run(1);
    rotation->read_output(operands);
  }
  EXPECT_EQ(log, (std::vector<std::string>{"in0", "run0", "out0", "in1", "run1", "out1", "in0",
                                           "run0", "out0"}));
}

// A system's files, played by a folder.
class PlayedSystem : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text << '\n';
  }
  void TearDown() override { std::filesystem::remove_all(root); }

  std::filesystem::path root =
      std::filesystem::temp_directory_path() / ("conditions-" + std::to_string(::getpid()));
};

TEST_F(PlayedSystem, ReadsLoadGovernorAndPower) {
  put("proc/loadavg", "3.25 1.00 0.50 2/345 6789");
  put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave");
  put("sys/class/power_supply/AC/type", "Mains");
  put("sys/class/power_supply/AC/online", "0");
  const auto found = bench::read_conditions(root);
  EXPECT_DOUBLE_EQ(found.load, 3.25);
  EXPECT_EQ(found.governor, "powersave");
  EXPECT_TRUE(found.on_battery);
  put("sys/class/power_supply/AC/online", "1");
  EXPECT_FALSE(bench::read_conditions(root).on_battery);
}

TEST_F(PlayedSystem, AnEmptySystemSaysNothing) {
  auto found = bench::read_conditions(root);
  found.build_type = "Release";
  EXPECT_TRUE(bench::warnings(found).empty());
}

TEST(Conditions, OneLineForEachThingThatIsWrong) {
  const bench::Conditions fine{"Release", 2, 2, 0.1, "performance", false};
  EXPECT_TRUE(bench::warnings(fine).empty());
  const bench::Conditions bad{"Debug", 8, 2, 4.0, "powersave", true};
  const auto lines = bench::warnings(bad);
  ASSERT_EQ(lines.size(), 5U);
  const char* const words[] = {"Debug build", "8 threads on 2", "busy: 4.0", "powersave",
                               "battery"};
  for (std::size_t i = 0; i < lines.size(); ++i)
    EXPECT_NE(lines[i].find(words[i]), std::string::npos) << lines[i];
}

TEST(Conditions, DriftBetweenFirstAndLastRepetition) {
  EXPECT_EQ(bench::drift("row", {1.0}), "");
  EXPECT_EQ(bench::drift("row", {1.0, 3.0, 1.05}), "");
  EXPECT_NE(bench::drift("row", {1.0, 1.0, 1.2}).find("+20 %"), std::string::npos);
  EXPECT_NE(bench::drift("row", {1.0, 0.8}).find("-20 %"), std::string::npos);
}

class Silent final : public benchmark::BenchmarkReporter {
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

TEST(Reporting, DriftOfARowsRepetitionsIsSaid) {
  Silent inner;
  bench::Ledger ledger;
  bench::Bookkeeper reporter(inner, &ledger);
  std::vector<benchmark::BenchmarkReporter::Run> runs(2);
  for (auto& run : runs) {
    run.run_name.function_name = "row";
    run.iterations = 10;
    run.real_accumulated_time = 1;
  }
  const auto said = [&] {
    testing::internal::CaptureStderr();
    reporter.ReportRuns(runs);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said(), "");
  runs[1].real_accumulated_time = 1.2;
  EXPECT_NE(said().find("drift: row: the last repetition took +20 %"), std::string::npos);
  EXPECT_EQ(ledger.measured, 4);
}

TEST(Clocks, AgreeWithinThreePercentBeyondAMillisecond) {
  bench::ClockReport report;
  EXPECT_TRUE(bench::agree(report));  // no device, nothing to disagree
  report.points = {{1, 1e-4, 2e-4, 1e-5}, {10, 10e-3, 10.2e-3, 1e-5}};
  EXPECT_TRUE(bench::agree(report));
  EXPECT_TRUE(bench::summary(report).starts_with("ok: wall/event 1.019 at 10.00 ms"));
  report.points[1].wall = 10.5e-3;
  EXPECT_FALSE(bench::agree(report));
  EXPECT_TRUE(bench::summary(report).starts_with("failed"));
  EXPECT_NE(bench::table(report).find("IT IS NOT"), std::string::npos);
  report = {};
  report.failure = "no usable time";
  EXPECT_FALSE(bench::agree(report));
}

TEST(Peaks, NamesFollowTheDesign) {
  std::set<std::pair<std::string, std::size_t>> seen;
  for (const auto& row : bench::ceilings(2)) {
    EXPECT_TRUE(row.name.starts_with(row.on_device ? "Peak/GPU/" : "Peak/CPU/")) << row.name;
    EXPECT_TRUE(seen.insert({row.name, row.n}).second) << row.name;
    EXPECT_EQ(row.name.find_first_of(".[]{}()\\*+?|^$"), std::string::npos);
  }
}

// Every ceiling of this machine is measured and its result right; how high it is decides nothing.
TEST(Peaks, EachRunsAndIsRight) {
  const auto devices = gpu::devices();
  bench::Machine machine{cpu::Workspace(cpu::allowed_threads()), nullptr};
  if (!devices.empty())
    machine.session = std::make_unique<gpu::Session>(gpu::choose(devices, ""), gpu::Sources());
  for (const auto& row : bench::ceilings(machine.workspace.threads())) {
    if ((row.on_device && !machine.session) || row.n > 1UL << 26U) continue;
    const auto peak = row.prepare(machine);
    const double seconds = peak.run();
    EXPECT_EQ(peak.fault(), "") << row.name;
    EXPECT_EQ(seconds > 0, row.by_events) << row.name;
    EXPECT_TRUE(peak.flops > 0 || peak.bytes > 0 || row.name == "Peak/GPU/Launch") << row.name;
  }
}

}  // namespace
