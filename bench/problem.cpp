// Data, reference and verdict; see the header.
#include "bench/problem.hpp"

#include "gpu/session.hpp"

#include <Eigen/Dense>
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace bench {

namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<const Matrix<float>, Eigen::Unaligned, Eigen::OuterStride<>>;

constexpr std::uint32_t kPoison = 0x7fc0dead;  // a quiet NaN that no arithmetic produces

bool poisoned(float value) { return std::bit_cast<std::uint32_t>(value) == kPoison; }

View view(const cpu::Floats& data, std::size_t rows, std::size_t cols, std::size_t leading) {
  return {data.data(), static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(cols),
          Eigen::OuterStride<>(static_cast<Eigen::Index>(leading))};
}

View a_of(const Operands& o) { return view(o.a, o.shape.m, o.shape.k, o.shape.lda); }
View b_of(const Operands& o) { return view(o.b, o.shape.k, o.shape.n, o.shape.ldb); }

class Generator {
 public:
  Generator(Values values, unsigned seed) : values_(values), random_(seed) {}

  float operator()() {
    switch (values_) {
      case Values::kIntegers:
        return static_cast<float>(static_cast<int>(random_() % 17) - 8);
      case Values::kUnit:
        return unit();
      case Values::kWideRange:
        return std::ldexp(2 * unit() - 1, static_cast<int>(random_() % 25) - 12);
      case Values::kSigned:
      case Values::kCancelling:
        break;
    }
    return 2 * unit() - 1;
  }

 private:
  float unit() { return static_cast<float>(random_() >> 8U) * 0x1p-24F; }

  Values values_;
  std::mt19937 random_;
};

// rows × leading floats, the last leading − cols of each row NaN.
cpu::Floats filled(std::size_t rows, std::size_t cols, std::size_t leading, Generator next) {
  cpu::Floats data(rows * leading, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < cols; ++j) data[i * leading + j] = next();
  return data;
}

// Every odd product of a sum undoes the one before it but for one part in 4096.
void cancel(Operands& o) {
  const Shape& s = o.shape;
  for (std::size_t l = 1; l < s.k; l += 2) {
    for (std::size_t i = 0; i < s.m; ++i) o.a[i * s.lda + l] = -o.a[i * s.lda + l - 1];
    for (std::size_t j = 0; j < s.n; ++j)
      o.b[l * s.ldb + j] = o.b[(l - 1) * s.ldb + j] * (1 + 0x1p-12F * o.b[l * s.ldb + j]);
  }
}

// The first float outside C's m×n elements that was written to, if any.
std::optional<std::string> outside_fault(const Operands& o) {
  const Shape& s = o.shape;
  const float* const first = o.guarded_c.data();
  const float* const last = first + o.guarded_c.size();
  for (const float* p = first; p != last; ++p) {
    const auto offset = p - o.c();
    const bool inside = offset >= 0 && static_cast<std::size_t>(offset) < s.c_size();
    if (inside && static_cast<std::size_t>(offset) % s.ldc < s.n) continue;
    if (!poisoned(*p))
      return fmt::format("wrote {} at {} floats from the start of C, outside its {}x{} elements",
                         *p, offset, s.m, s.n);
  }
  return std::nullopt;
}

}  // namespace

Op op_of(std::string_view name) { return name.starts_with("SGEMV/") ? Op::kSgemv : Op::kSgemm; }

Shape square(Op op, std::size_t n) {
  return op == Op::kSgemv ? Shape{n, 1, n, n, 1, 1} : Shape{n, n, n, n, n, n};
}

double flops(const Shape& s) {
  return 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
}

double bytes(const Shape& s) {
  return static_cast<double>(sizeof(float) * (s.m * s.k + s.k * s.n + s.m * s.n));
}

float* Operands::c() { return guarded_c.data() + gpu::kGuard; }
const float* Operands::c() const { return guarded_c.data() + gpu::kGuard; }

Operands make_operands(const Shape& s, Values values) {
  Operands o{s,
             filled(s.m, s.k, s.lda, Generator(values, kSeed)),
             filled(s.k, s.n, s.ldb, Generator(values, kSeed + 1)),
             {}};
  if (values == Values::kCancelling) cancel(o);
  o.guarded_c.resize(s.c_size() + 2 * gpu::kGuard);
  poison(o);
  return o;
}

void poison(Operands& o) {
  std::fill(o.guarded_c.begin(), o.guarded_c.end(), std::bit_cast<float>(kPoison));
}

std::vector<float> reference(const Operands& o) {
  std::vector<float> result(o.shape.m * o.shape.n);
  Eigen::Map<Matrix<float>>(result.data(), static_cast<Eigen::Index>(o.shape.m),
                            static_cast<Eigen::Index>(o.shape.n))
      .noalias() = a_of(o) * b_of(o);
  return result;
}

std::optional<std::string> fault(const Operands& o, std::span<const float> expected) {
  if (auto outside = outside_fault(o)) return outside;
  const Shape& s = o.shape;
  std::size_t wrong = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < s.m * s.n; ++i) {
    const bool equal = o.c()[i / s.n * s.ldc + i % s.n] == expected[i];  // false for a NaN
    if (!equal && wrong++ == 0) first = i;
  }
  if (wrong == 0) return std::nullopt;
  const float got = o.c()[first / s.n * s.ldc + first % s.n];
  return fmt::format("wrong result: {} of {} elements, the first at row {}, column {}: {} for {}{}",
                     wrong, s.m * s.n, first / s.n, first % s.n, got, expected[first],
                     poisoned(got) ? " (never written)" : "");
}

Exact exact(const Operands& o, std::size_t most_rows) {
  const Shape& s = o.shape;
  const std::size_t step = std::max<std::size_t>(1, (s.m + most_rows - 1) / most_rows);
  const std::size_t rows = (s.m + step - 1) / step;
  const Matrix<double> a = view(o.a, rows, s.k, s.lda * step).cast<double>();
  const Matrix<double> b = b_of(o).cast<double>();
  Exact result{step, std::vector<double>(rows * s.n), std::vector<double>(rows * s.n)};
  const auto into = [&](std::vector<double>& to) {
    return Eigen::Map<Matrix<double>>(to.data(), a.rows(), b.cols());
  };
  into(result.product).noalias() = a * b;
  into(result.magnitude).noalias() = a.cwiseAbs() * b.cwiseAbs();
  return result;
}

double worst_error(const Operands& o, const Exact& exact, double epsilon) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (outside_fault(o)) return kInfinity;
  const Shape& s = o.shape;
  const double unit = epsilon * static_cast<double>(s.k);
  double worst = 0;
  for (std::size_t at = 0; at < exact.product.size(); ++at) {
    const float got = o.c()[at / s.n * exact.step * s.ldc + at % s.n];
    const double error = std::abs(static_cast<double>(got) - exact.product[at]);
    const double bound = unit * exact.magnitude[at];
    if (!(error <= worst * bound))  // a NaN enters here, and stays
      worst = error == 0 ? worst : error / bound;
    if (!(worst < kInfinity)) return kInfinity;
  }
  return worst;
}

}  // namespace bench
