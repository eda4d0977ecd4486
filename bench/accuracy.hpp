// How exact a variant is on real-valued inputs, beside a library on the same data: the program's
// --accuracy. Errors are relative to (|A||B|)ij, the sum of the magnitudes, so that inputs of any
// range compare; see Higham, Accuracy and Stability of Numerical Algorithms, section 3.5.
#pragma once

#include "bench/cases.hpp"
#include "bench/problem.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace bench {

/// One kind of inputs with the product in double.
struct Sample {
  Operands operands;
  Exact exact;
};

/// One for each of kRealValues; of a large product some hundred rows are looked at.
std::vector<Sample> samples(const Shape& shape);

/// The largest |c − exact| for each kind, in units of 2^-23·(|A||B|)ij.
using Errors = std::array<double, kRealValues.size()>;

struct Exactness {
  std::string variant;
  std::size_t n;
  Errors errors;
};

/// Runs the product once on each sample; the runner is left with the last one.
Errors worst_errors(Runner& runner, std::span<Sample> samples);

/// What is wrong with errors larger than the bound k·epsilon allows, which kind and by how much;
/// empty if none is.
std::string beyond_bound(const Errors& errors, std::size_t k, double epsilon);

/// The row that others are held against: a peer with float32 accuracy, first one on the device,
/// else Eigen.
const Case& yardstick(std::span<const Case> cases, Op op);

/// A line a row, grouped by operation and n, each error followed by its ratio to the yardstick's.
std::string accuracy_table(std::vector<Exactness> rows, std::span<const Case> cases);

}  // namespace bench
