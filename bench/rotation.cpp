// Rotating operands; see the header.
#include "bench/rotation.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace bench {

namespace {

// Caches replace at random or nearly so: what was left behind must be several times their size.
constexpr double kDisplaced = 3;

class Rotation final : public Runner {
 public:
  Rotation(const std::function<std::unique_ptr<Runner>()>& prepare, const Operands& operands,
           std::size_t count, bool on_device) {
    operands_.assign(on_device ? 1 : count, operands);
    for (std::size_t i = 0; i < count; ++i) {
      Operands& own = operands_[i % operands_.size()];
      runners_.push_back(prepare());
      runners_.back()->write_inputs(own);
      runners_.back()->write_output(own);
    }
  }

  void write_inputs(const Operands& operands) override { runners_[next_]->write_inputs(operands); }
  void write_output(Operands& operands) override { runners_[next_]->write_output(operands); }
  std::optional<double> run(int batch) override {
    last_ = next_;
    next_ = (next_ + 1) % runners_.size();
    return runners_[last_]->run(batch);
  }
  void read_output(Operands& operands) override { runners_[last_]->read_output(operands); }

 private:
  std::vector<Operands> operands_;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::size_t next_ = 0, last_ = 0;
};

}  // namespace

std::size_t copies(double bytes, std::size_t cache, std::size_t memory) {
  const double wanted = std::ceil(kDisplaced * static_cast<double>(cache) / bytes);
  const double most = std::floor(static_cast<double>(memory) / bytes);
  return static_cast<std::size_t>(std::max(1.0, std::min(wanted, most)));
}

std::unique_ptr<Runner> rotating(const std::function<std::unique_ptr<Runner>()>& prepare,
                                 const Operands& operands, std::size_t count, bool on_device) {
  return std::make_unique<Rotation>(prepare, operands, count, on_device);
}

}  // namespace bench
