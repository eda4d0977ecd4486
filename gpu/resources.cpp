// Resources of a kernel; see the header.
#include "gpu/resources.hpp"

#include <algorithm>
#include <cmath>
#include <regex>
#include <string>

namespace gpu {

namespace {

constexpr std::size_t kRegisters = 65536;  // of a multiprocessor, all generations since 3.5
constexpr std::size_t kRegisterStep = 8;   // a work-item gets a multiple of it
constexpr std::size_t kMostGroups = 32;

// What one multiprocessor holds, by compute capability. Source: CUDA C++ Programming Guide, table
// of technical specifications per compute capability.
struct Multiprocessor {
  int capability;
  std::size_t work_items, local_bytes;
};
constexpr Multiprocessor kMultiprocessors[] = {
    {70, 2048, 96UL << 10U},  {75, 1024, 64UL << 10U},  {80, 2048, 164UL << 10U},
    {86, 1536, 100UL << 10U}, {89, 1536, 100UL << 10U}, {90, 2048, 228UL << 10U},
};

std::optional<std::size_t> number(const std::string& text, const char* pattern) {
  std::smatch found;
  if (!std::regex_search(text, found, std::regex(pattern))) return std::nullopt;
  return std::stoul(found[1]);
}

struct Block {
  double rows, columns;
};

// Outputs of one work-item along one axis; a share below one is one.
double outputs(std::size_t tile, std::size_t items) {
  if (tile == Geometry::kWhole) return 1;  // it takes them one after the other
  return static_cast<double>(std::max<std::size_t>(tile / items, 1));
}

Block block(const Geometry& g) {
  const bool rows = g.x_axis == Axis::kRows;
  const Block own{outputs(g.tile_m, rows ? g.wg_x : g.wg_y),
                  outputs(g.tile_n, rows ? g.wg_y : g.wg_x)};
  if (g.wg_y != 1 || g.wg_x == 1 || g.tile_m <= 1 || g.tile_n <= 1 || rows) return own;
  // A line of work-items over a block of C: the kernel arranges them in warps, at best squarely.
  const double side =
      std::sqrt(static_cast<double>(g.tile_m * g.tile_n) / static_cast<double>(g.wg_x));
  return {side, side};
}

}  // namespace

Resources parse_log(std::string_view log, std::string_view kernel) {
  Resources r;
  const std::string entry = "entry function '" + std::string(kernel) + "'";
  const auto begin = log.find(entry);
  if (begin == std::string_view::npos) return r;
  const auto end = log.find("entry function", begin + entry.size());
  const std::string part(log.substr(begin, end == std::string_view::npos ? end : end - begin));
  r.registers = number(part, "Used ([0-9]+) registers");
  r.stack_bytes = number(part, "([0-9]+) bytes stack frame");
  r.spill_bytes = number(part, "([0-9]+) bytes spill stores");
  return r;
}

std::size_t local_memory(std::size_t reported) { return reported < sizeof(float) ? 0 : reported; }

double loads_per_multiply_add(const Geometry& g) {
  return 1 / block(g).rows + 1 / block(g).columns;
}

std::optional<std::size_t> resident_groups(const Resources& r, std::size_t work_group,
                                           int capability, bool cpu) {
  if (cpu) return 1;
  const auto* const unit =
      std::ranges::find(kMultiprocessors, capability, &Multiprocessor::capability);
  if (unit == std::end(kMultiprocessors) || work_group == 0) return std::nullopt;
  std::size_t most = std::min(kMostGroups, unit->work_items / work_group);
  if (r.local_bytes > 0) most = std::min(most, unit->local_bytes / r.local_bytes);
  if (r.registers.value_or(0) > 0) {
    const std::size_t each = (*r.registers + kRegisterStep - 1) / kRegisterStep * kRegisterStep;
    most = std::min(most, kRegisters / (each * work_group));
  }
  return std::max<std::size_t>(most, 1);
}

}  // namespace gpu
