// The textbook loop nests: what the order of three loops, a second core and cache blocking are each
// worth before anybody writes SIMD by hand. Source of the ideas: any course on the memory
// hierarchy.
#include "cpu/cpu.hpp"

#include <omp.h>

#include <algorithm>
#include <cstddef>

namespace cpu {
namespace {

// k innermost: one dot product an element. B is read down a column, a new cache line every step.
void naive_ijk(const Product& p, Workspace&) {
  for (std::size_t i = 0; i < p.m; ++i)
    for (std::size_t j = 0; j < p.n; ++j) {
      float sum = 0;
      for (std::size_t l = 0; l < p.k; ++l) sum += p.a[i * p.lda + l] * p.b[l * p.ldb + j];
      p.c[i * p.ldc + j] = sum;
    }
}

// Rows [first, last) of C with j innermost: A is a scalar, B and C stream, so the compiler can
// vectorise the inner loop and the prefetcher can follow it.
void ikj_rows(const Product& p, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i) {
    float* const c = p.c + i * p.ldc;
    std::fill_n(c, p.n, 0.0F);
    for (std::size_t l = 0; l < p.k; ++l) {
      const float a = p.a[i * p.lda + l];
      const float* const b = p.b + l * p.ldb;
      for (std::size_t j = 0; j < p.n; ++j) c[j] += a * b[j];
    }
  }
}

void ikj(const Product& p, Workspace&) {
  ikj_rows(p, 0, p.m);
#ifdef PLANT_SLOWDOWN  // a regression on purpose, to show that tools/compare.py finds it
  ikj_rows(p, p.m - p.m * PLANT_SLOWDOWN / 100, p.m);
#endif
}

void ikj_parallel(const Product& p, Workspace& w) {
#pragma omp parallel for schedule(static) num_threads(w.threads())
  for (std::size_t i = 0; i < p.m; ++i) ikj_rows(p, i, i + 1);
}

// Ikj over a block of B that stays in the second-level cache (128 × 512 floats = 256 KiB) while
// every row of A passes it: B is read from memory once instead of m times.
void blocked(const Product& p, Workspace&) {
  constexpr std::size_t kDepth = 128;
  constexpr std::size_t kWidth = 512;
  for (std::size_t i = 0; i < p.m; ++i) std::fill_n(p.c + i * p.ldc, p.n, 0.0F);
  for (std::size_t j0 = 0; j0 < p.n; j0 += kWidth)
    for (std::size_t l0 = 0; l0 < p.k; l0 += kDepth) {
      const std::size_t width = std::min(kWidth, p.n - j0);
      const std::size_t depth = std::min(kDepth, p.k - l0);
      for (std::size_t i = 0; i < p.m; ++i) {
        float* const c = p.c + i * p.ldc + j0;
        for (std::size_t l = l0; l < l0 + depth; ++l) {
          const float a = p.a[i * p.lda + l];
          const float* const b = p.b + l * p.ldb + j0;
          for (std::size_t j = 0; j < width; ++j) c[j] += a * b[j];
        }
      }
    }
}

float dot(const float* x, const float* y, std::size_t count) {
  float sum = 0;
  for (std::size_t l = 0; l < count; ++l) sum += x[l] * y[l];
  return sum;
}

// The vector of a matrix-vector product is B with one column; this suite keeps it contiguous
// (ldb = 1), which lets the two inputs of the dot product stream alike.
void gemv_naive(const Product& p, Workspace&) {
  for (std::size_t i = 0; i < p.m; ++i) p.c[i * p.ldc] = dot(p.a + i * p.lda, p.b, p.k);
}

void gemv_parallel(const Product& p, Workspace& w) {
#pragma omp parallel for schedule(static) num_threads(w.threads())
  for (std::size_t i = 0; i < p.m; ++i) p.c[i * p.ldc] = dot(p.a + i * p.lda, p.b, p.k);
}

const Variant kTable[] = {
    {"SGEMM/CPU/NaiveIjk", naive_ijk},       {"SGEMM/CPU/Ikj", ikj},
    {"SGEMM/CPU/IkjParallel", ikj_parallel}, {"SGEMM/CPU/Blocked", blocked},
    {"SGEMV/CPU/Naive", gemv_naive},         {"SGEMV/CPU/Parallel", gemv_parallel},
};

}  // namespace

std::span<const Variant> loop_variants() { return kTable; }

}  // namespace cpu
