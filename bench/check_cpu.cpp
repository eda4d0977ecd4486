// What is special about the SIMD variants: every instruction set this machine has, operands that
// are aligned to nothing, threads by shape; and the loading of peers.
#include "bench/problem.hpp"
#include "cpu/cpu.hpp"
#include "cpu/isa.hpp"
#include "cpu/pages.hpp"
#include "cpu/peak.hpp"
#include "cpu/peers.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

namespace {

using bench::Shape;

// Edges of strips (14, 6 and 5 rows), panels (32, 16, 8 and 2 columns) and slices (512 deep), each
// from both sides; one row, one column, nothing at all.
const Shape kProducts[] = {{1, 1, 1, 1, 1, 1},         {13, 31, 15, 16, 33, 35},
                           {14, 32, 16, 16, 32, 32},   {15, 33, 17, 19, 33, 39},
                           {29, 65, 63, 64, 67, 71},   {1, 129, 70, 70, 129, 129},
                           {129, 1, 70, 70, 1, 1},     {3, 200, 513, 513, 201, 203},
                           {100, 7, 600, 601, 9, 11},  {64, 64, 1025, 1025, 64, 64},
                           {40, 33, 512, 515, 34, 37}, {57, 515, 260, 261, 517, 519},
                           {5, 5, 0, 1, 5, 5},         {0, 5, 5, 5, 5, 5},
                           {5, 0, 5, 5, 1, 1},         {200, 180, 190, 191, 183, 185}};
const Shape kVectors[] = {{1, 1, 1, 1, 1, 1},        {31, 1, 33, 33, 1, 1},
                          {7, 1, 1000, 1001, 1, 1},  {1001, 1, 3, 5, 1, 1},
                          {259, 1, 517, 521, 1, 1},  {6, 1, 40, 41, 3, 2},
                          {1024, 1, 300, 300, 1, 1}, {3, 1, 0, 1, 1, 1}};

/// The floats at an address that is a multiple of four bytes and of nothing more.
std::vector<float> shifted(std::span<const float> values) {
  std::vector<float> all(values.size() + 1);
  std::ranges::copy(values, all.begin() + 1);
  return all;
}

void expect_exact(const cpu::Variant& variant, const Shape& s, cpu::Workspace& workspace) {
  bench::Operands operands = bench::make_operands(s, bench::Values::kIntegers);
  const std::vector<float> expected = bench::reference(operands);
  const std::vector<float> a = shifted(operands.a), b = shifted(operands.b);
  bench::poison(operands);
  variant.run({s.m, s.n, s.k, a.data() + 1, s.lda, b.data() + 1, s.ldb, operands.c(), s.ldc},
              workspace);
  EXPECT_EQ(bench::fault(operands, expected).value_or(""), "")
      << variant.name << " m=" << s.m << " n=" << s.n << " k=" << s.k;
}

class EveryIsa : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { cpu::force_isa(GetParam()); }
  void TearDown() override { cpu::force_isa(""); }
};

TEST_P(EveryIsa, IsTheOneInUse) { EXPECT_EQ(cpu::isa(), GetParam()); }

TEST_P(EveryIsa, MultipliesExactly) {
  for (const int threads : {1, 2, 5}) {
    cpu::Workspace workspace(threads);
    for (const auto& variant : cpu::packed_variants()) {
      for (const Shape& shape : kProducts) expect_exact(variant, shape, workspace);
    }
    for (const auto& variant : cpu::gemv_variants()) {
      for (const Shape& shape : kVectors) expect_exact(variant, shape, workspace);
    }
  }
}

TEST_P(EveryIsa, CountsWhatItMeasures) {
  cpu::Workspace workspace(2);
  EXPECT_GT(cpu::run_fma(workspace), 0);
  cpu::Traffic traffic(100'000, 2);
  EXPECT_GE(traffic.read(), 90'000);
  EXPECT_GE(traffic.copy(), 90'000);
}

INSTANTIATE_TEST_SUITE_P(Cpu, EveryIsa, testing::ValuesIn(cpu::available_isas()),
                         [](const auto& isa) { return isa.param; });

TEST(Pages, MemoryIsAlignedToALineAndLargeMemoryToAHugePage) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, cpu::kHugePage / 2 + 1}) {
    char* const memory = static_cast<char*>(cpu::allocate(bytes));
    memory[0] = memory[bytes - 1] = 1;
    const std::size_t alignment = bytes < cpu::kHugePage / 4 ? 64 : cpu::kHugePage;
    EXPECT_EQ(std::bit_cast<std::uintptr_t>(memory) % alignment, 0) << bytes;
    std::free(memory);
  }
}

TEST(Pages, AWorkspaceIsKeptUntilMoreIsWanted) {
  cpu::Workspace workspace(1);
  float* const first = workspace.floats(10).data();
  EXPECT_EQ(workspace.floats(1000).data(), first);
  const std::span<float> large = workspace.floats(cpu::kHugePage);
  large.front() = large.back() = 1;
  EXPECT_EQ(workspace.floats(cpu::kHugePage).data(), large.data());
}

TEST(Isa, UnknownNameListsTheChoices) {
  try {
    cpu::force_isa("Z80");
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find(cpu::available_isas().back()), std::string::npos);
  }
  EXPECT_EQ(cpu::isa(), cpu::available_isas().front());
}

std::string refusal(const std::string& library) {
  try {
    return cpu::find_peer(library) ? "accepted" : "not ours";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

TEST(Peers, AMissingLibraryIsNamedWithAWayOut) {
  const std::string text = refusal("libnosuchblas.so.7");
  EXPECT_NE(text.find("libnosuchblas.so.7"), std::string::npos) << text;
  EXPECT_NE(text.find("install it"), std::string::npos) << text;
}

TEST(Peers, ALibraryWithoutAProductIsNotOurs) { EXPECT_EQ(refusal("libm.so.6"), "not ours"); }

}  // namespace
