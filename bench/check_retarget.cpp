// The text step that brings Hopper's instructions to the device, on PTX as the driver writes it.
#include "gpu/retarget.hpp"
#include "gpu/sources.hpp"
#include "gpu/variants.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace {

using std::string_literals::operator""s;

const std::string kPtx =
    ".version 9.0\n.target sm_90, texmode_independent\n.entry f(\n)\n.reqntid 384, 1, 1\n{\n"
    "\t//@sm_90a wgmma.fence.sync.aligned;\n\t// an ordinary comment\n"
    "\t//@sm_90a {.reg .pred p; wgmma.commit_group.sync.aligned;}\n\tret;\n}\n";

TEST(Retarget, EveryMarkBecomesAnInstruction) {
  EXPECT_EQ(gpu::retarget_ptx(kPtx),
            ".version 9.0\n.target sm_90a, texmode_independent\n.entry f(\n)\n.reqntid 384, 1, 1\n"
            ".minnctapersm 1\n{\n\twgmma.fence.sync.aligned;\n\t// an ordinary comment\n"
            "\t{.reg .pred p; wgmma.commit_group.sync.aligned;}\n\tret;\n}\n");
}

TEST(Retarget, EveryEntryIsTreated) {
  const std::string twice = gpu::retarget_ptx(kPtx + kPtx.substr(kPtx.find(".entry")));
  std::size_t entries = 0;
  for (std::size_t at = 0; (at = twice.find(".minnctapersm 1", at)) != std::string::npos; ++at)
    ++entries;
  EXPECT_EQ(entries, 2U);
  EXPECT_EQ(twice.find(gpu::kMark), std::string::npos);
}

TEST(Retarget, AnUnmarkedProgramKeepsItsText) {
  EXPECT_EQ(gpu::retarget_ptx(".target sm_90\n.entry g() { ret; }\n"),
            ".target sm_90a\n.entry g() { ret; }\n");
}

TEST(Retarget, ATargetThatIsRightAlreadyStays) {
  EXPECT_EQ(gpu::retarget_ptx(".target sm_90a\n"), ".target sm_90a\n");
}

TEST(Retarget, TheDriversTrailingNulGoes) {
  EXPECT_EQ(gpu::retarget_ptx(".target sm_90\n\0\0"s), ".target sm_90a\n");
}

TEST(Retarget, MarkedKernelsRunOnHopperAlone) {
  EXPECT_EQ(gpu::obstacle(kPtx, 90), "");
  EXPECT_EQ(gpu::obstacle(kPtx, 100),
            "needs an NVIDIA GPU of compute capability 9.0 exactly, this has 10.0");
  EXPECT_NE(gpu::obstacle(kPtx, 89), "");
  EXPECT_EQ(gpu::obstacle("an ordinary kernel", 120), "");
}

TEST(Retarget, EveryRowOfAMarkedKernelAsksForHopper) {
  std::size_t marked = 0;
  for (const gpu::Variant& row : gpu::variants()) {
    if (gpu::obstacle(gpu::Sources().text(row.kernel), 120).empty()) continue;
    EXPECT_EQ(row.nvidia_capability, 90) << row.name;
    ++marked;
  }
  EXPECT_GT(marked, 0U);
}

TEST(Retarget, OtherBinariesAreRefused) {
  EXPECT_THROW(gpu::retarget_ptx(""), std::invalid_argument);
  EXPECT_THROW(gpu::retarget_ptx(".target sm_80\n"), std::invalid_argument);
  EXPECT_THROW(gpu::retarget_ptx("\x7f"
                                 "ELF"),
               std::invalid_argument);
}

}  // namespace
