// The table of tuned kernels: what is built in, the choice, and every kind of hand-edited nonsense.
#include "gpu/sources.hpp"
#include "gpu/tuned.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace {

using nlohmann::json;

const json kEntry = {{"device", ""},        {"n", {1, 100}},    {"kernel", "sgemm_tile_register"},
                     {"group", {16, 8}},    {"tile", {64, 32}}, {"defines", {{"TILE_K", 16}}},
                     {"note", "a sentence"}};

json entry(const json& changes) {
  json changed = kEntry;
  changed.update(changes);
  return changed;
}

std::string document(const std::vector<json>& entries) {
  return json{{"version", 1}, {"entries", entries}}.dump();
}

gpu::DeviceInfo device(const char* platform, const char* name, const char* type, int capability) {
  gpu::DeviceInfo info;
  info.platform = platform;
  info.name = name;
  info.type = type;
  info.capability = capability;
  return info;
}

const gpu::DeviceInfo kH200 = device("NVIDIA CUDA", "NVIDIA H200", "GPU", 90);
const gpu::DeviceInfo kOther = device("Some Platform", "Some GPU", "GPU", 0);
const gpu::DeviceInfo kCpu = device("Portable Computing Language", "pthread-skylake", "CPU", 0);

gpu::Shape square(std::size_t n) { return {n, n, n, n, n, n}; }

std::string complaint(const std::string& text) {
  try {
    gpu::TunedTable::parse(text, "table.json");
  } catch (const gpu::BadTable& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Tuned, TheBuiltInTableHasADefaultForEveryDevice) {
  const auto table = gpu::TunedTable::built_in();
  for (const std::size_t n : {1UL, 255UL, 256UL, 512UL, 1024UL, 100000UL}) {
    EXPECT_EQ(table.choose(kOther, square(n)).value().kernel,
              n <= 512 ? "sgemm_tile_register" : "sgemm_tile_register_vector");
    EXPECT_EQ(table.choose(kCpu, square(n)).value().kernel, "sgemm_vector_panel");
    EXPECT_EQ(table.choose(kH200, square(n)).value().kernel,
              n < 256 ? "sgemm_tile_register_sliced" : "sgemm_tensor_core_3xtf32_wgmma_ring");
  }
  EXPECT_EQ(table.choose(kH200, square(512)).value().defines, "SLICES=2 STAGES=8");
  EXPECT_EQ(table.choose(kH200, square(513)).value().geometry.tile_m, 64U);
}

TEST(Tuned, TheLargerExtentOfCIsTheSize) {
  const auto table = gpu::TunedTable::parse(document({kEntry}), "table.json");
  EXPECT_TRUE(table.choose(kOther, {100, 1, 5000, 5000, 1, 1}));
  EXPECT_TRUE(table.choose(kOther, {0, 0, 0, 1, 1, 1}));
  EXPECT_FALSE(table.choose(kOther, {101, 1, 5, 5, 1, 1}));
  EXPECT_FALSE(table.choose(kOther, {1, 101, 5, 5, 101, 101}));
}

TEST(Tuned, SplitOperandsAreForLongSumsOnly) {
  const auto table = gpu::TunedTable::built_in();
  const auto epsilon = [&](std::size_t n, std::size_t k) {
    return table.choose(kH200, {n, n, k, k, n, n}).value().epsilon;
  };
  for (const std::size_t n : {256UL, 1024UL, 2048UL}) {
    EXPECT_EQ(epsilon(n, 32), gpu::kFloat32Epsilon);
    EXPECT_EQ(epsilon(n, 255), gpu::kFloat32Epsilon);
    EXPECT_GT(epsilon(n, 256), gpu::kFloat32Epsilon);
  }
}

TEST(Tuned, AnEntryBecomesAVariant) {
  const auto table = gpu::TunedTable::parse(document({kEntry}), "table.json");
  const auto variant = table.choose(kOther, square(100));
  ASSERT_TRUE(variant);
  EXPECT_EQ(variant->name, "SGEMM/GPU/TileRegister");
  EXPECT_EQ(variant->defines, "TILE_K=16");
  EXPECT_EQ(variant->geometry.wg_x, 16U);
  EXPECT_EQ(variant->geometry.wg_y, 8U);
  EXPECT_EQ(variant->geometry.tile_m, 64U);
  EXPECT_EQ(variant->geometry.tile_n, 32U);
  EXPECT_FALSE(table.choose(kOther, square(101)));
}

TEST(Tuned, TheMostSpecificEntryIsChosenWhereverItStands) {
  std::vector<json> entries = {kEntry, entry({{"type", "GPU"}, {"tile", {32, 32}}}),
                               entry({{"nvidia_capability", 80}, {"tile", {16, 16}}}),
                               entry({{"device", "CUDA / NVIDIA H"}, {"tile", {128, 128}}})};
  for (int turn = 0; turn < 2; ++turn) {
    const auto table = gpu::TunedTable::parse(document(entries), "table.json");
    EXPECT_EQ(table.choose(kCpu, square(5)).value().geometry.tile_m, 64U);
    EXPECT_EQ(table.choose(kOther, square(5)).value().geometry.tile_m, 32U);
    EXPECT_EQ(table.choose(kH200, square(5)).value().geometry.tile_m, 128U);
    std::ranges::reverse(entries);
  }
}

TEST(Tuned, NeighbouringRangesAndOtherDevicesDoNotOverlap) {
  EXPECT_EQ(complaint(document({kEntry, entry({{"n", {101, nullptr}}}), entry({{"device", "x"}}),
                                entry({{"type", "CPU"}})})),
            "accepted");
}

TEST(Tuned, NonsenseIsAnsweredWithItsPlace) {
  const std::pair<json, const char*> changes[] = {
      {{{"colour", 1}}, "table.json: entries[1]: unknown key \"colour\""},
      {{{"device", 7}}, "table.json: entries[1].device: expected a text, found 7"},
      {{{"type", "TPU"}}, "entries[1].type: expected \"CPU\" or \"GPU\", found \"TPU\""},
      {{{"n", 5}}, "entries[1].n: expected a pair"},
      {{{"n", {0, 5}}}, "entries[1].n[0]: expected a whole number from 1"},
      {{{"n", {9, 5}}}, "entries[1].n: expected a range that is not empty, found [9,5]"},
      {{{"n", {100, 200}}}, "entries[1]: its range of n overlaps with that of entries[0]"},
      {{{"n", {1, nullptr}}}, "overlaps"},
      {{{"kernel", "sgemm_magic"}}, "entries[1].kernel: expected one of sgemm_block, "},
      {{{"kernel", "sgemv_stream"}}, "entries[1].kernel: expected one of"},
      {{{"kernel", "sgemm_tensor_core_tf32"}}, "entries[1].kernel: expected one of"},
      {{{"kernel", "sgemm_tensor_core_3xtf32"}}, "\"nvidia_capability\": 80 or more"},
      {{{"nvidia_capability", "9.0"}}, "entries[1].nvidia_capability: expected a whole number"},
      {{{"group", {16}}}, "entries[1].group: expected a pair [WG_X, WG_Y], found [16]"},
      {{{"group", {16, "8"}}}, "entries[1].group[1]: expected a whole number from 1"},
      {{{"group", {-16, 8}}}, "entries[1].group[0]: expected a whole number from 1"},
      {{{"tile", {64, 1.5}}}, "entries[1].tile[1]: expected a whole number from 1"},
      {{{"defines", {"TILE_K"}}}, "entries[1].defines: expected an object"},
      {{{"defines", {{"TILE_K", true}}}}, "entries[1].defines.TILE_K: expected a whole number"},
      {{{"defines", {{"TILEK", 16}}}},
       "entries[1].defines.TILEK: no macro of sgemm_tile_register; known are: TILE_K"},
      {{{"kernel", "sgemm_tile"}, {"defines", {{"T", 1}}}}, "defines.T: no macro of sgemm_tile"},
      {{{"defines", {{"WG_X", 1}}}}, "entries[1].defines.WG_X: belongs into \"group\""},
      {{{"note", 3}}, "entries[1].note: expected a text"},
  };
  for (const auto& [change, expected] : changes) {
    const std::string said = complaint(document({kEntry, entry(change)}));
    EXPECT_NE(said.find(expected), std::string::npos) << change << " gave: " << said;
  }
}

TEST(Tuned, BrokenDocumentsAreAnsweredWithTheirPlace) {
  const std::pair<std::string, const char*> texts[] = {
      {"", "table.json: "},
      {"{\n  \"version\": 1,\n  \"entries\": [,]\n}", "at line 3, column 15"},
      {"[]", "table.json: expected an object"},
      {R"({"entries": []})", "\"version\" is missing"},
      {R"({"version": 2, "entries": []})", "version: expected 1, the version known here, found 2"},
      {R"({"version": "1", "entries": []})", "version: expected 1"},
      {R"({"version": 1, "entries": {}})", "entries: expected a list"},
      {R"({"version": 1, "entries": [3]})", "entries[0]: expected an object"},
      {"[1,\n 1e999]", "table.json: line 2: "},
      {"[1,1e999\n]", "table.json: line 1: "},
      {"[1,\n\n1e999", "table.json: line 3: "},
      {R"({"version": 1, "version": 1, "entries": []})", "the key \"version\" stands twice"},
      {R"({"version": 1, "entries": [{"device": ""}]})", "entries[0]: \"kernel\" is missing"},
  };
  for (const auto& [text, expected] : texts)
    EXPECT_NE(complaint(text).find(expected), std::string::npos) << text << complaint(text);
}

TEST(Tuned, ALogThatNamesNoLineIsFollowedByTheFilesConditions) {
  const std::string text =
      "#ifndef TILE_K\n#define TILE_K 4\n#endif\n#if TILE_K < 1\n"
      "#error \"TILE_K must be at least 1\"\n#endif\n";
  EXPECT_EQ(gpu::parameters(text), std::vector<std::string>{"TILE_K"});
  const std::string mute = gpu::readable_log("Device X failed to build", "k", text);
  EXPECT_TRUE(mute.starts_with("Device X failed to build\n")) << mute;
  EXPECT_NE(mute.find("TILE_K must be at least 1"), std::string::npos) << mute;
  EXPECT_EQ(gpu::readable_log("k.cl:2:1: no C", "k", text), "k.cl:2:1: no C");
  EXPECT_EQ(gpu::readable_log("failed", "k", "no condition"), "failed");
}

TEST(Tuned, AFileThatIsNotThereIsNamed) {
  EXPECT_THROW(gpu::TunedTable::read("no/such/table.json"), gpu::BadTable);
}

}  // namespace
