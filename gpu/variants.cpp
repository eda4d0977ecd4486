// The rows; see the header for the columns.
#include "gpu/variants.hpp"

namespace gpu {

namespace {

constexpr std::size_t kWhole = Geometry::kWhole;

// Work-groups stay at 256 work-items or fewer unless the idea itself is a larger one: that fits
// every GPU, and a CPU device keeps a work-group's private memory on one thread's stack.
// Geometry: {WG_X, WG_Y, TILE_M, TILE_N, axis of NDRange dimension 0}.
constexpr Variant kTable[] = {
    {.name = "SGEMM/GPU/Base", .kernel = "sgemm_base", .geometry = {16, 16, 16, 16, Axis::kRows}},
    {.name = "SGEMM/GPU/Naive", .kernel = "sgemm_naive", .geometry = {16, 16, 16, 16}},
    {.name = "SGEMM/GPU/Row", .kernel = "sgemm_row", .geometry = {64, 1, 64, kWhole, Axis::kRows}},
    {.name = "SGEMM/GPU/CachedRow",
     .kernel = "sgemm_cached_row",
     .geometry = {64, 1, 64, kWhole, Axis::kRows},
     .private_row = true},
    {.name = "SGEMM/GPU/Tile16", .kernel = "sgemm_tile", .geometry = {16, 16, 16, 16}},
    {.name = "SGEMM/GPU/Tile32", .kernel = "sgemm_tile", .geometry = {32, 32, 32, 32}},
    {.name = "SGEMM/GPU/Block4x4", .kernel = "sgemm_block", .geometry = {8, 8, 32, 32}},

    // The ladder on the vector lanes: portable down to Warp, then with cp.async.
    {.name = "SGEMM/GPU/TileRegister",
     .kernel = "sgemm_tile_register",
     .geometry = {16, 16, 64, 64},
     .defines = "TILE_K=16"},
    {.name = "SGEMM/GPU/TileRegisterWarp",
     .kernel = "sgemm_tile_register_warp",
     .geometry = {128, 1, 64, 128},
     .defines = "TILE_K=16 WARP_M=32 WARP_N=64 LANES_M=4"},
    {.name = "SGEMM/GPU/TileRegisterWarpLarge",
     .kernel = "sgemm_tile_register_warp",
     .geometry = {256, 1, 256, 128},
     .defines = "TILE_K=8 WARP_M=64 WARP_N=64 LANES_M=4"},
    {.name = "SGEMM/GPU/TileRegisterAsync",
     .kernel = "sgemm_tile_register_async",
     .geometry = {256, 1, 128, 256},
     .defines = "TILE_K=16 WARP_M=64 WARP_N=64 LANES_M=4 STAGES=3",
     .nvidia_capability = 80},
    {.name = "SGEMM/GPU/TileRegisterSliced",
     .kernel = "sgemm_tile_register_sliced",
     .geometry = {256, 1, 32, 64},
     .defines = "TILE_K=64 WARP_M=32 WARP_N=32 LANES_M=8 SLICES=4 STAGES=3",
     .nvidia_capability = 80},
    // For devices whose work-items are CPU threads.
    {.name = "SGEMM/GPU/VectorPanel",
     .kernel = "sgemm_vector_panel",
     .geometry = {1, 1, 128, 32},
     .defines = "TILE_K=256"},
    // Matrix units: mma.sync, then Hopper's wgmma, then wgmma by warpgroups with roles.
    {.name = "SGEMM/GPU/TensorCoreTf32",
     .kernel = "sgemm_tensor_core_tf32",
     .geometry = {128, 1, 128, 128},
     .defines = "TILE_K=16 WARP_M=64 WARP_N=64 STAGES=3",
     .nvidia_capability = 80,
     .epsilon = kTf32Epsilon},
    {.name = "SGEMM/GPU/TensorCoreTf32Wgmma",
     .kernel = "sgemm_tensor_core_tf32_wgmma",
     .geometry = {256, 1, 256, 128},
     .defines = "STAGES=4",
     .nvidia_capability = 90,
     .epsilon = kTruncatedTf32Epsilon},
    {.name = "SGEMM/GPU/TensorCoreTf32WgmmaRing",
     .kernel = "sgemm_tensor_core_tf32_wgmma_ring",
     .geometry = {384, 1, 256, 128},
     .defines = "STAGES=4",
     .nvidia_capability = 90,
     .epsilon = kTruncatedTf32Epsilon},
    {.name = "SGEMM/GPU/TensorCore3xTf32",
     .kernel = "sgemm_tensor_core_3xtf32",
     .geometry = {256, 1, 128, 128},
     .defines = "TILE_K=16 WARP_M=64 WARP_N=32 STAGES=3",
     .nvidia_capability = 80,
     .epsilon = kSplitTf32Epsilon},
    {.name = "SGEMM/GPU/TensorCore3xTf32Sliced",
     .kernel = "sgemm_tensor_core_3xtf32",
     .geometry = {256, 1, 32, 64},
     .defines = "TILE_K=64 WARP_M=32 WARP_N=32 SLICES=4 STAGES=5",
     .nvidia_capability = 80,
     .epsilon = kSplitTf32Epsilon},
    {.name = "SGEMM/GPU/TensorCore3xTf32Wgmma",
     .kernel = "sgemm_tensor_core_3xtf32_wgmma",
     .geometry = {256, 1, 128, 128},
     .defines = "STAGES=4",
     .nvidia_capability = 90,
     .epsilon = kTruncatedSplitTf32Epsilon},
    {.name = "SGEMM/GPU/TensorCore3xTf32WgmmaRing",
     .kernel = "sgemm_tensor_core_3xtf32_wgmma_ring",
     .geometry = {512, 1, 128, 128},
     .defines = "STAGES=4",
     .nvidia_capability = 90,
     .epsilon = kTruncatedSplitTf32Epsilon},
    {.name = "SGEMM/GPU/TensorCore3xTf32WgmmaRingSliced",
     .kernel = "sgemm_tensor_core_3xtf32_wgmma_ring",
     .geometry = {512, 1, 32, 64},
     .defines = "STAGES=8 SLICES=2",
     .nvidia_capability = 90,
     .epsilon = kTruncatedSplitTf32Epsilon},

    {.name = "SGEMV/GPU/Naive", .kernel = "sgemv_naive", .geometry = {64, 1, 64, 1, Axis::kRows}},
    {.name = "SGEMV/GPU/Reduce", .kernel = "sgemv_reduce", .geometry = {128, 1, 1, 1, Axis::kRows}},
    {.name = "SGEMV/GPU/Vector", .kernel = "sgemv_vector", .geometry = {128, 1, 1, 1, Axis::kRows}},
    {.name = "SGEMV/GPU/Stream",
     .kernel = "sgemv_stream",
     .geometry = {256, 1, 2, 1, Axis::kRows},
     .defines = "UNROLL=4"},
};

}  // namespace

std::span<const Variant> variants() { return kTable; }

}  // namespace gpu
