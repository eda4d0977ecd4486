// The problem every variant solves: its data, the reference result (Eigen), and the verdict.
// Contract: verification is exact where it can be (integer inputs) and bounded by rounding theory
// where it cannot; NaN never passes. This code is never built with fast-math.
#pragma once

#include "cpu/pages.hpp"
#include "gpu/limits.hpp"

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

using gpu::Shape;

enum class Op { kSgemm, kSgemv };

/// From the first part of a name, "SGEMM/…" or "SGEMV/…".
Op op_of(std::string_view name);

/// n×n times n×n for SGEMM, n×n times n for SGEMV; no padding.
Shape square(Op op, std::size_t n);

/// 2·m·n·k, in double: an int overflows at n = 1024.
double flops(const Shape& shape);
/// Compulsory traffic in bytes: each input read once, the output written once.
double bytes(const Shape& shape);

enum class Values {
  kIntegers,    // in [−8, 8]: every partial sum is exact in float32 (and TF32) for k ≤ 2^18
  kUnit,        // [0, 1)
  kSigned,      // [−1, 1); what is timed
  kCancelling,  // pairs of products that nearly cancel
  kWideRange,   // signed, scaled by powers of two from 2^−12 to 2^12
};

/// The kinds that rounding errors are looked for in.
inline constexpr std::array<std::pair<Values, std::string_view>, 4> kRealValues{
    {{Values::kUnit, "unit"},
     {Values::kSigned, "signed"},
     {Values::kCancelling, "cancelling"},
     {Values::kWideRange, "wide"}}};

inline constexpr unsigned kSeed = 20240229;

/// A, B and a guarded C on the host. The padding of A and B is NaN: who reads it gets caught.
struct Operands {
  Shape shape{};
  cpu::Floats a, b;
  cpu::Floats guarded_c;  // gpu::kGuard floats before C and after it

  float* c();
  [[nodiscard]] const float* c() const;
};

Operands make_operands(const Shape& shape, Values values);

/// Fills C, its padding and its guards with a NaN of a bit pattern of its own.
void poison(Operands& operands);

/// A·B by Eigen in float32, m×n without padding; exact for kIntegers.
std::vector<float> reference(const Operands& operands);

/// What is wrong with C against the exact reference, element by element with ==, or with the guard
/// and the padding around it; empty if nothing is. Names the first wrong place and how many.
std::optional<std::string> fault(const Operands& operands, std::span<const float> expected);

/// A·B and |A|·|B| in double, of every `step`-th row: what errors are measured against.
struct Exact {
  std::size_t step;
  std::vector<double> product, magnitude;  // those rows, n doubles each
};

/// All rows, or at most so many of them, evenly spread.
Exact exact(const Operands& operands, std::size_t most_rows = std::numeric_limits<int>::max());

/// The largest |c − exact| over its bound k·ε·(|A||B|)ij: right if ≤ 1. Infinity where C holds a
/// NaN, or where its guard or padding was touched.
double worst_error(const Operands& operands, const Exact& exact, double epsilon);

}  // namespace bench
