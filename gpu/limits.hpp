// What a launch needs, what a device allows, and the comparison of the two: pure arithmetic, no
// OpenCL, so that tables of real devices can test it.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace gpu {

/// Sizes of one product, in elements; row-major with leading dimensions (lda ≥ k, ldb ≥ n,
/// ldc ≥ n). A matrix-vector product has n = 1 and ldb = ldc = 1.
struct Shape {
  std::size_t m, n, k;
  std::size_t lda, ldb, ldc;

  /// Floats that each operand occupies, the padding of its last row included.
  [[nodiscard]] std::size_t a_size() const { return m * lda; }
  [[nodiscard]] std::size_t b_size() const { return k * ldb; }
  [[nodiscard]] std::size_t c_size() const { return m * ldc; }
  [[nodiscard]] bool empty() const { return m == 0 || n == 0 || k == 0; }
};

/// Untouchable floats before and after C, so that a write out of bounds can be seen. One page:
/// a multiple of every device's alignment for sub-buffers.
inline constexpr std::size_t kGuard = 1024;

/// Which way the work-items of NDRange dimension 0 run over C.
enum class Axis { kColumns, kRows };

/// The one convention between host and kernels: a work-group of WG_X × WG_Y work-items computes a
/// block of TILE_M rows × TILE_N columns of C. A tile of kWhole takes the whole extent.
struct Geometry {
  static constexpr std::size_t kWhole = 0;
  std::size_t wg_x, wg_y;
  std::size_t tile_m, tile_n;
  Axis x_axis = Axis::kColumns;
};

struct NdRange {
  std::array<std::size_t, 2> global, local;
};

/// Covers C with whole work-groups: global sizes are the rounded-up number of tiles times the local
/// size, so that they are multiples of it. Requires m, n ≥ 1.
NdRange cover(const Geometry& geometry, std::size_t m, std::size_t n);

/// A device's (or, after a build, a kernel's) limits; bytes and work-items.
struct Limits {
  std::size_t work_group = 0;          // CL_DEVICE_MAX_WORK_GROUP_SIZE
  std::array<std::size_t, 3> items{};  // CL_DEVICE_MAX_WORK_ITEM_SIZES
  std::size_t kernel_work_group = 0;   // CL_KERNEL_WORK_GROUP_SIZE; the device's before a build
  std::size_t local_bytes = 0;         // most local memory that one work-group may have
  std::size_t private_bytes = 0;       // most private memory of one work-group, all its items
  std::size_t allocation = 0;          // CL_DEVICE_MAX_MEM_ALLOC_SIZE
  std::size_t memory = 0;              // CL_DEVICE_GLOBAL_MEM_SIZE
};

struct Needs {
  std::size_t wg_x, wg_y;
  std::size_t local_bytes = 0;
  std::size_t private_bytes = 0;  // of one work-item
};

/// Why a launch cannot run on such a device, as a sentence that names the limit; empty if it can.
std::string obstacle(const Limits& limits, const Needs& needs);

/// The same for the three buffers of a product, C's with its guards.
std::string obstacle(const Limits& limits, const Shape& shape);

}  // namespace gpu
