// Explanations; see the header.
#include "bench/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace bench {

namespace {

constexpr double kDecides = 0.5;  // share of the time from which a roof is the explanation
constexpr double kIdle = 0.75;    // share of the units at work below which the idle ones are

// Loads that would take longer than the kernel, by more than two measurements differ, were counted
// too high: work-items in step that read the same word may share one load. Of other roofs it says
// that they were taken while the machine was busy.
constexpr double kShared = 1.1;

// A candidate: how long the work takes at least under this roof.
struct Candidate {
  Bound bound;
  double seconds;
};

double load_bytes(const KernelFacts& f) { return f.work.flops / 2 * f.loads * sizeof(float); }

// Of the units, the share that has work in the mean of all waves, seen from whole work-groups.
double units_at_work(const KernelFacts& f) {
  return f.groups_per_unit > 0 ? f.groups_per_unit / std::ceil(f.groups_per_unit) : 1;
}

Candidate highest(const KernelFacts& f, const DeviceRoofs& d) {
  const bool matrix = on_matrix_units(f.variant);
  const auto over = [](double work, double rate) { return rate > 0 ? work / rate : 0; };
  const double loads = over(load_bytes(f), d.local_bytes);
  const Candidate all[] = {
      {Bound::kMultiplyAdds, matrix ? 0 : over(f.work.flops, d.roofs.flops)},
      {Bound::kMemory, over(f.work.bytes, d.roofs.bytes)},
      {Bound::kLoads, loads <= kShared * f.seconds ? loads : 0},
  };
  return *std::ranges::max_element(all, {}, &Candidate::seconds);
}

std::string amount(Bound bound, const KernelFacts& f) {
  switch (bound) {
    case Bound::kMultiplyAdds:
      return fmt::format("{:.3g} GFLOP", f.work.flops * 1e-9);
    case Bound::kMemory:
      return fmt::format("{:.3g} MB of compulsory traffic", f.work.bytes * 1e-6);
    default:
      return fmt::format("{:.3g} loads a multiply-add, {:.3g} GB from {}", f.loads,
                         load_bytes(f) * 1e-9,
                         f.resources.local_bytes > 0 ? "local memory" : "caches");
  }
}

// Bytes of a work-item's private memory that are known to lie outside its registers.
std::size_t outside_registers(const KernelFacts& f) {
  if (f.resources.stack_bytes)
    return *f.resources.stack_bytes + f.resources.spill_bytes.value_or(0);
  return f.cpu ? f.resources.array_bytes : 0;
}

std::string private_evidence(const KernelFacts& f) {
  const std::size_t bytes = outside_registers(f);
  if (f.resources.stack_bytes)
    return fmt::format("the compiler put {} bytes of each work-item on its stack in device memory",
                       bytes);
  return fmt::format("{} bytes of array for each of {} work-items, {} KiB on a core's stack", bytes,
                     f.work_group, bytes * f.work_group >> 10U);
}

std::string title(const KernelFacts& f) {
  if (f.row.empty() || f.row == f.variant) return f.variant;
  return fmt::format("{} ({})", f.row, f.variant.substr(f.variant.rfind('/') + 1));
}

std::string optional(const std::optional<std::size_t>& value) {
  return value ? std::to_string(*value) : "-";
}

std::string line(const KernelFacts& f, const DeviceRoofs& d, std::size_t width) {
  const Explanation why = explain(f, d);
  const gpu::Resources& r = f.resources;
  Roofs roofs = d.roofs;
  if (on_matrix_units(f.variant)) roofs.flops = 0;
  return fmt::format(
      "{:<{}} {:>6} {:>10.3f} {:>6.1f} {:>5} {:>8} {:>7} {:>6} {:>6} {:>6} {:>8.4g} {:>7}  "
      "{:<14} {}\n",
      title(f), width, f.n, f.seconds * 1e3, percent_of_roof(f.work, roofs, f.seconds),
      optional(r.registers), r.private_bytes, r.local_bytes, optional(r.stack_bytes),
      optional(r.spill_bytes), f.loads > 0 ? fmt::format("{:.3g}", f.loads) : "-",
      f.groups_per_unit, f.waves ? fmt::format("{:.3g}", *f.waves) : "-", name(why.bound),
      why.evidence);
}

}  // namespace

std::string name(Bound bound) {
  switch (bound) {
    case Bound::kMultiplyAdds:
      return "multiply-adds";
    case Bound::kMemory:
      return "memory";
    case Bound::kLoads:
      return "loads";
    case Bound::kIdleUnits:
      return "idle units";
    case Bound::kPrivateMemory:
      return "private memory";
    case Bound::kStrides:
      return "strides";
    case Bound::kLatency:
      return "latency";
    case Bound::kGeneratedCode:
      break;
  }
  return "generated code";
}

Explanation explain(const KernelFacts& f, const DeviceRoofs& d) {
  const auto [bound, least] = highest(f, d);
  const double share = f.seconds > 0 ? least / f.seconds : 0;
  const std::string roof =
      fmt::format("{} take at least {:.0f} % of the time at the measured rate{}", amount(bound, f),
                  100 * share, share > kShared ? ": the roof is too low" : "");
  const std::string array = outside_registers(f) > 0 ? "; " + private_evidence(f) : "";
  if (share >= kDecides) return {bound, share, roof + array};
  const std::string rest =
      fmt::format("; no roof is near ({}: {:.0f} %)", name(bound), 100 * share);
  if (const double busy = units_at_work(f); busy < kIdle)
    return {Bound::kIdleUnits, 1 - busy,
            fmt::format("{:.3g} work-groups a compute unit leave {:.0f} % of the units idle{}",
                        f.groups_per_unit, 100 * (1 - busy), rest)};
  if (outside_registers(f) > 0) return {Bound::kPrivateMemory, 0, private_evidence(f) + rest};
  if (f.strided)
    return {Bound::kStrides, 0,
            "neighbouring work-items read and write addresses a row apart" + rest};
  if (f.cpu)
    return {Bound::kGeneratedCode, 0,
            "the device's compiler makes loops of the work-items: see its machine code" + rest};
  return {Bound::kLatency, 0,
          fmt::format("{} work-items in a group, {:.3g} groups a unit{}", f.work_group,
                      f.groups_per_unit, rest)};
}

std::string explanation_table(std::span<const KernelFacts> kernels, const DeviceRoofs& d) {
  std::size_t width = 0;
  for (const KernelFacts& f : kernels) width = std::max(width, title(f).size());
  std::string text = fmt::format(
      "measured roofs: {:.0f} GFLOP/s of multiply-adds, {:.0f} GB/s of copy, {:.0f} GB/s from "
      "local memory, {:.1f} us a launch\n\n",
      d.roofs.flops * 1e-9, d.roofs.bytes * 1e-9, d.local_bytes * 1e-9, d.launch_seconds * 1e6);
  text += fmt::format(
      "{:<{}} {:>6} {:>10} {:>6} {:>5} {:>8} {:>7} {:>6} {:>6} {:>6} {:>8} {:>7}  {:<14} {}\n",
      "variant", width, "n", "time ms", "% roof", "regs", "private", "local", "stack", "spill",
      "loads", "groups", "waves", "likely bound", "evidence");
  for (const KernelFacts& f : kernels) text += line(f, d, width);
  return text +
         "\nprivate, stack, spill: bytes of a work-item; local: bytes of a work-group;\n"
         "loads: words for each multiply-add; groups: work-groups for each compute unit;\n"
         "waves: how many times they fill the device; -: the driver does not tell.\n";
}

}  // namespace bench
