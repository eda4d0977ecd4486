// Device limits against needs; see the header.
#include "gpu/limits.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gpu {

namespace {

std::size_t tiles(std::size_t extent, std::size_t tile) {
  return tile == Geometry::kWhole ? 1 : (extent + tile - 1) / tile;
}

}  // namespace

NdRange cover(const Geometry& g, std::size_t m, std::size_t n) {
  std::size_t x = tiles(n, g.tile_n);
  std::size_t y = tiles(m, g.tile_m);
  if (g.x_axis == Axis::kRows) std::swap(x, y);
  return {{x * g.wg_x, y * g.wg_y}, {g.wg_x, g.wg_y}};
}

std::string obstacle(const Limits& limits, const Needs& needs) {
  const std::size_t items = needs.wg_x * needs.wg_y;
  if (items > limits.work_group)
    return fmt::format("needs {} work-items in a work-group, the device allows {}", items,
                       limits.work_group);
  if (needs.wg_x > limits.items[0] || needs.wg_y > limits.items[1])
    return fmt::format("needs work-items {}x{}, the device allows {}x{}", needs.wg_x, needs.wg_y,
                       limits.items[0], limits.items[1]);
  if (items > limits.kernel_work_group)
    return fmt::format("needs {} work-items in a work-group, the kernel's registers allow {} here",
                       items, limits.kernel_work_group);
  if (needs.local_bytes > limits.local_bytes)
    return fmt::format("needs {} bytes of local memory, the device has {}", needs.local_bytes,
                       limits.local_bytes);
  if (needs.private_bytes > 0 && needs.private_bytes * items > limits.private_bytes)
    return fmt::format("needs {} bytes of private memory for {} work-items, the device has {}",
                       needs.private_bytes * items, items, limits.private_bytes);
  return {};
}

std::string obstacle(const Limits& limits, const Shape& shape) {
  constexpr double kMiB = 1024.0 * 1024.0;
  const auto bytes = [](std::size_t floats) { return floats * sizeof(float); };
  const std::size_t guarded_c = shape.c_size() + 2 * kGuard;
  const std::size_t most = bytes(std::max({shape.a_size(), shape.b_size(), guarded_c}));
  const std::size_t sum = bytes(shape.a_size() + shape.b_size() + guarded_c);
  if (most > limits.allocation)
    return fmt::format("needs a buffer of {:.2f} MiB, the device allows {:.2f} MiB",
                       static_cast<double>(most) / kMiB,
                       static_cast<double>(limits.allocation) / kMiB);
  if (sum > limits.memory)
    return fmt::format("needs {:.2f} MiB for A, B and C, the device has {:.2f} MiB",
                       static_cast<double>(sum) / kMiB, static_cast<double>(limits.memory) / kMiB);
  return {};
}

}  // namespace gpu
