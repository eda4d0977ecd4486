// Collecting facts; see the header.
#include "bench/facts.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace bench {

namespace {

// The value of a macro in "TILE_K=64 SLICES=4", 1 where it is not defined.
std::size_t macro(std::string_view defines, std::string_view name) {
  std::size_t value = 1;
  for (std::size_t at = 0; at < defines.size();) {
    const std::string_view define = defines.substr(at, defines.find(' ', at) - at);
    if (define.starts_with(name) && define.substr(name.size()).starts_with('='))
      std::from_chars(define.data() + name.size() + 1, define.data() + define.size(), value);
    at += define.size() + 1;
  }
  return value;
}

}  // namespace

gpu::Geometry geometry_of_a_slice(const gpu::Variant& variant) {
  gpu::Geometry geometry = variant.geometry;
  geometry.wg_x /= std::clamp<std::size_t>(macro(variant.defines, "SLICES"), 1, geometry.wg_x);
  return geometry;
}

KernelFacts kernel_facts(gpu::Session& session, const gpu::Variant& variant, std::size_t n,
                         double seconds) {
  const Shape shape = square(op_of(variant.name), n);
  const gpu::Geometry& geometry = variant.geometry;
  const gpu::Geometry slice = geometry_of_a_slice(variant);
  const gpu::NdRange range = gpu::cover(geometry, shape.m, shape.n);
  KernelFacts f;
  f.variant = variant.name;
  f.n = n;
  f.seconds = seconds;
  f.work = {flops(shape), bytes(shape)};
  f.resources = session.inspect(variant, shape);
  f.resources.local_bytes = gpu::local_memory(f.resources.local_bytes);
  f.loads = on_matrix_units(variant.name) ? 0 : gpu::loads_per_multiply_add(slice);
  f.cpu = session.info().type == "CPU";
  f.work_group = geometry.wg_x * geometry.wg_y;
  // With dimension 0 along the rows and a work-item for each, neighbours are lda elements apart.
  f.strided = geometry.x_axis == gpu::Axis::kRows && f.resources.local_bytes == 0;
  const auto groups =
      static_cast<double>(range.global[0] * range.global[1]) / static_cast<double>(f.work_group);
  f.groups_per_unit = groups / std::max(session.info().compute_units, 1U);
  if (const auto resident =
          gpu::resident_groups(f.resources, f.work_group, session.info().capability, f.cpu))
    f.waves = f.groups_per_unit / static_cast<double>(*resident);
  return f;
}

DeviceRoofs device_roofs(Machine& machine, const Roofs& roofs) {
  return {roofs, best_rate(machine, "Peak/GPU/LocalMemory"),
          best_seconds(machine, "Peak/GPU/Launch")};
}

}  // namespace bench
