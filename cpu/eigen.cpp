// Eigen as a contestant: same operands, same thread count, no temporaries (noalias into C).
// The maps below are views of the caller's arrays, nothing is copied.
#include "cpu/cpu.hpp"

#include <Eigen/Dense>

namespace cpu {
namespace {

using Row = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Stride = Eigen::OuterStride<>;
using In = Eigen::Map<const Row, Eigen::Unaligned, Stride>;
using Out = Eigen::Map<Row, Eigen::Unaligned, Stride>;
using Index = Eigen::Index;

void gemm(const Product& p, Workspace& w) {
  Eigen::setNbThreads(w.threads());
  const auto m = static_cast<Index>(p.m);
  const auto n = static_cast<Index>(p.n);
  const auto k = static_cast<Index>(p.k);
  const In a(p.a, m, k, Stride(static_cast<Index>(p.lda)));
  const In b(p.b, k, n, Stride(static_cast<Index>(p.ldb)));
  Out(p.c, m, n, Stride(static_cast<Index>(p.ldc))).noalias() = a * b;
}

void gemv(const Product& p, Workspace& w) {
  Eigen::setNbThreads(w.threads());
  const auto m = static_cast<Index>(p.m);
  const auto k = static_cast<Index>(p.k);
  const In a(p.a, m, k, Stride(static_cast<Index>(p.lda)));
  const Eigen::Map<const Eigen::VectorXf> x(p.b, k);
  Eigen::Map<Eigen::VectorXf>(p.c, m).noalias() = a * x;
}

const Variant kTable[] = {{"SGEMM/CPU/Eigen", gemm}, {"SGEMV/CPU/Eigen", gemv}};

}  // namespace

std::span<const Variant> eigen_variants() { return kTable; }

}  // namespace cpu
