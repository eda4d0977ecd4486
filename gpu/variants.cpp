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

    {.name = "SGEMV/GPU/Naive", .kernel = "sgemv_naive", .geometry = {64, 1, 64, 1, Axis::kRows}},
    {.name = "SGEMV/GPU/Reduce", .kernel = "sgemv_reduce", .geometry = {128, 1, 1, 1, Axis::kRows}},
    {.name = "SGEMV/GPU/Vector", .kernel = "sgemv_vector", .geometry = {128, 1, 1, 1, Axis::kRows}},
};

}  // namespace

std::span<const Variant> variants() { return kTable; }

}  // namespace gpu
