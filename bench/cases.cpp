// Both sides' tables behind one interface; see the header.
#include "bench/cases.hpp"

#include "cpu/caches.hpp"
#include "cpu/peers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

namespace bench {

namespace {

class CpuRunner final : public Runner {
 public:
  CpuRunner(const cpu::Variant& variant, cpu::Workspace& workspace, const Shape& s)
      : variant_(variant), workspace_(workspace), product_{s.m,     s.n,   s.k,     nullptr, s.lda,
                                                           nullptr, s.ldb, nullptr, s.ldc} {}

  void write_inputs(const Operands& o) override {
    product_.a = o.a.data();
    product_.b = o.b.data();
  }
  void write_output(Operands& o) override { product_.c = o.c(); }
  std::optional<double> run(int batch) override {
    for (int i = 0; i < batch; ++i) variant_.run(product_, workspace_);
    return std::nullopt;
  }
  void read_output(Operands&) override {}

 private:
  cpu::Variant variant_;
  cpu::Workspace& workspace_;
  cpu::Product product_;
};

class GpuRunner final : public Runner {
 public:
  explicit GpuRunner(std::unique_ptr<gpu::Multiplication> product) : product_(std::move(product)) {}

  void write_inputs(const Operands& o) override { product_->write_inputs(o.a, o.b); }
  void write_output(Operands& o) override { product_->write_output(o.guarded_c); }
  std::optional<double> run(int batch) override { return product_->run(batch); }
  void read_output(Operands& o) override { product_->read_output(o.guarded_c); }

 private:
  std::unique_ptr<gpu::Multiplication> product_;
};

Case kernel_case(std::string name, double epsilon, Case::Choice choose) {
  const auto prepare = [choose](Machine& machine, const Shape& shape) -> std::unique_ptr<Runner> {
    if (!machine.session) throw gpu::Unsupported("there is no OpenCL device");
    const gpu::Variant variant = choose(machine.session->info(), shape);
    return std::make_unique<GpuRunner>(machine.session->prepare(variant, shape));
  };
  return {std::move(name), true, epsilon, prepare, std::move(choose)};
}

}  // namespace

std::size_t Machine::last_level_cache(bool on_device) const {
  // A GPU's driver reports a first-level cache, or none. More than the largest second level known.
  constexpr std::size_t kGpuCache = 128UL << 20U;
  if (on_device && session && session->info().type != "CPU") return kGpuCache;
  return cpu::caches().l3;
}

Case case_of(const cpu::Variant& variant) {
  return {std::string(variant.name),
          false,
          gpu::kFloat32Epsilon,
          [variant](Machine& machine, const Shape& shape) -> std::unique_ptr<Runner> {
            return std::make_unique<CpuRunner>(variant, machine.workspace, shape);
          },
          {}};
}

Case case_of(const gpu::Variant& variant) {
  return kernel_case(std::string(variant.name), variant.epsilon,
                     [variant](const gpu::DeviceInfo&, const Shape&) { return variant; });
}

Case case_of(const gpu::Peer& peer) {
  return {peer.name,
          true,
          peer.epsilon,
          [peer](Machine& machine, const Shape& shape) -> std::unique_ptr<Runner> {
            if (!machine.session) throw gpu::Unsupported("there is no OpenCL device");
            return std::make_unique<GpuRunner>(peer.prepare(*machine.session, shape));
          },
          {}};
}

Case case_of(gpu::TunedTable table) {
  const auto kept = std::make_shared<const gpu::TunedTable>(std::move(table));
  return kernel_case(std::string(gpu::TunedTable::kVariant), gpu::kLengthenedSplitTf32Epsilon,
                     [kept](const gpu::DeviceInfo& device, const Shape& s) {
                       if (const auto variant = kept->choose(device, s)) return *variant;
                       throw gpu::Unsupported(
                           fmt::format("the table of tuned kernels has none for "
                                       "{} at m = {}, n = {}, k = {}",
                                       device.name, s.m, s.n, s.k));
                     });
}

namespace {

std::vector<Case> peer_cases(const std::string& library) {
  std::vector<Case> rows;
  if (const auto row = cpu::find_peer(library)) rows.push_back(case_of(*row));
  for (const auto& row : gpu::find_peers(library)) rows.push_back(case_of(row));
  if (rows.empty())
    throw std::invalid_argument(
        fmt::format("the peer {} is no library that this suite can call", library));
  return rows;
}

// A row's name stands for its verdict and its times, so two libraries must not share one.
std::vector<Case> peer_cases(std::span<const std::string> libraries) {
  std::vector<Case> rows;
  std::map<std::string, std::string_view> owners;
  for (const auto& library : libraries)
    for (auto& row : peer_cases(library)) {
      const auto [owner, first] = owners.emplace(row.variant, library);
      if (!first)
        throw std::invalid_argument(fmt::format("{} and {} are both {}; compare them in two runs",
                                                owner->second, library, row.variant));
      rows.push_back(std::move(row));
    }
  return rows;
}

}  // namespace

std::vector<Case> cases(std::span<const std::string> peers, gpu::TunedTable tuned) {
  std::vector<Case> all;
  for (const auto& variant : cpu::variants()) all.push_back(case_of(variant));
  for (const auto& variant : gpu::variants()) all.push_back(case_of(variant));
  all.push_back(case_of(std::move(tuned)));
  for (auto& row : peer_cases(peers)) all.push_back(std::move(row));
  std::ranges::stable_sort(all, {}, [](const Case& row) { return op_of(row.variant); });
  return all;
}

}  // namespace bench
