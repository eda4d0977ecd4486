// Matrix-vector product y = A·x: every element of A is used once, so the only thing that counts is
// to read A as fast as memory delivers it. Several rows at a time give the memory system several
// streams; several accumulators a row hide the latency of the additions. Compiled once per
// instruction set. The idea is that of every BLAS: row-blocked dot products.

#include "cpu/cpu.hpp"
#include "cpu/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/gemv.cpp"
#include <hwy/foreach_target.h>  // must precede highway.h
#include <hwy/highway.h>
#include <omp.h>

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<float, 16>;
using Vec = hn::Vec<Tag>;
constexpr Tag kTag;
constexpr std::size_t kLanes = hn::MaxLanes(Tag());
constexpr std::size_t kRows = 4;     // streams of A at a time
constexpr std::size_t kVectors = 2;  // accumulators a row

/// The first `count` floats, then zeros; nothing beyond is read.
HWY_INLINE Vec load_first(const float* from, std::size_t count) {
  HWY_ALIGN float lanes[kLanes] = {};
  std::memcpy(lanes, from, count * sizeof(float));
  return hn::Load(kTag, lanes);
}

/// R rows of A times x, which is contiguous.
template <std::size_t R>
HWY_NOINLINE void dot_rows(const Product& p, const float* a, const float* x, float* y) {
  Vec acc[R][kVectors];
  CPU_UNROLL(4)
  for (std::size_t r = 0; r < R; ++r) {
    CPU_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) acc[r][v] = hn::Zero(kTag);
  }
  std::size_t j = 0;
  for (; j + kVectors * kLanes <= p.k; j += kVectors * kLanes) {
    CPU_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) {
      const Vec part = hn::LoadU(kTag, x + j + v * kLanes);
      CPU_UNROLL(4)
      for (std::size_t r = 0; r < R; ++r) {
        const float* const from = a + r * p.lda + j + v * kLanes;
        acc[r][v] = hn::MulAdd(hn::LoadU(kTag, from), part, acc[r][v]);
      }
    }
  }
  for (; j < p.k; j += kLanes) {
    const std::size_t count = std::min(kLanes, p.k - j);
    const Vec part = load_first(x + j, count);
    CPU_UNROLL(4)
    for (std::size_t r = 0; r < R; ++r) {
      acc[r][0] = hn::MulAdd(load_first(a + r * p.lda + j, count), part, acc[r][0]);
    }
  }
  CPU_UNROLL(4)
  for (std::size_t r = 0; r < R; ++r) {
    y[r * p.ldc] = hn::GetLane(hn::SumOfLanes(kTag, hn::Add(acc[r][0], acc[r][1])));
  }
}

/// Rows [begin, end) of y = A·x.
void multiply_rows(const Product& p, const float* x, std::size_t begin, std::size_t end) {
  std::size_t i = begin;
  for (; i + kRows <= end; i += kRows) dot_rows<kRows>(p, p.a + i * p.lda, x, p.c + i * p.ldc);
  for (; i < end; ++i) dot_rows<1>(p, p.a + i * p.lda, x, p.c + i * p.ldc);
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cpu {
HWY_EXPORT(multiply_rows);

namespace {

/// x as a contiguous vector: itself, or a copy in the workspace.
const float* contiguous_x(const Product& p, Workspace& w) {
  if (p.ldb == 1) return p.b;
  const std::span<float> x = w.floats(p.k);
  for (std::size_t j = 0; j < p.k; ++j) x[j] = p.b[j * p.ldb];
  return x.data();
}

void simd(const Product& p, Workspace& w) {
  HWY_DYNAMIC_DISPATCH(multiply_rows)(p, contiguous_x(p, w), 0, p.m);
}

/// A thread reads one contiguous part of A, if that takes longer than to wake the thread.
void simd_parallel(const Product& p, Workspace& w) {
  constexpr std::size_t kWorthAThread = std::size_t{1} << 16;
  const std::size_t worth = std::max<std::size_t>(1, p.m * p.k / kWorthAThread);
  const std::size_t parts = std::min(static_cast<std::size_t>(w.threads()), worth);
  if (parts == 1) return simd(p, w);
  const float* const x = contiguous_x(p, w);
#pragma omp parallel for num_threads(static_cast <int>(parts)) schedule(static, 1)
  for (std::size_t i = 0; i < parts; ++i) {
    HWY_DYNAMIC_DISPATCH(multiply_rows)(p, x, p.m * i / parts, p.m * (i + 1) / parts);
  }
}

}  // namespace

std::span<const Variant> gemv_variants() {
  static const Variant table[] = {
      {"SGEMV/CPU/Simd", simd},
      {"SGEMV/CPU/SimdParallel", simd_parallel},
  };
  return table;
}

}  // namespace cpu
#endif
