// GotoBLAS structure in portable SIMD: panels copied into cache-sized contiguous buffers, and a
// micro-kernel that keeps a whole block of C in registers. Compiled once per instruction set by
// Google Highway, which picks the best one at run time.
//
// Source of the idea: K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication"
// (2008); F. Van Zee, R. van de Geijn, "BLIS" (2015). Here C is row-major, so vectors run along n:
//
//   for each block of columns, nc wide          so that the packed B (kc x nc) stays in L2
//     for each slice of the depth, kc long      so that the packed A (rows x kc) stays in L1
//       pack B: kc x nc, in panels as wide as the micro-kernel
//       for each strip of rows, as high as the micro-kernel
//         pack A: rows x kc; for each panel of B: micro-kernel, rows x width of C in registers
//
// Packed A keeps its row order, with a row stride known at compile time: packing is a plain copy
// (no transposition), and every row of the strip is one base register plus a constant. Strips are
// as even as possible, so m needs no tail. The last panel of n is padded with zeros when packed and
// stored through a mask.

#include "cpu/packed.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/packed.cpp"
// The accumulators are an array of vectors, which vectors of unknown size cannot form.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>  // must precede highway.h
#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "cpu/caches.hpp"
#include "cpu/cpu.hpp"

#ifndef CPU_PACKED_ONCE
#define CPU_PACKED_ONCE
namespace cpu {

/// Row stride of packed A in floats: an upper bound of kc, plus one cache line so that the rows of a
/// strip do not share cache sets.
inline constexpr std::size_t kMaxDepth = 512;
inline constexpr std::size_t kStripStride = kMaxDepth + 16;
inline constexpr std::size_t kMaxRows = 14;

/// Block sizes, from the caches and the micro-kernel's shape.
struct Blocking {
  std::size_t kc, nc;
};

inline constexpr std::size_t ceil_div(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

}  // namespace cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using Vec = hn::Vec<D>;
constexpr D kTag;
constexpr std::size_t kLanes = hn::MaxLanes(D());

// Registers decide the micro-kernel's shape: rows * vectors accumulators, one B row, one A element.
// 32 registers: 14 x 2; 16 registers: 6 x 2 (5 x 2 where multiply-add needs a temporary).
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr std::size_t kRows = 14;
#elif HWY_TARGET == HWY_AVX2
constexpr std::size_t kRows = 6;
#else
constexpr std::size_t kRows = 5;
#endif
constexpr std::size_t kVectors = 2;
constexpr std::size_t kWidth = kVectors * kLanes;
static_assert(kRows <= kMaxRows);

/// Where a micro-kernel puts its block of C: `columns` of them are real; `add` on all but the first
/// slice of the depth, so that C is never read before it was written.
struct Output {
  float* c;
  std::size_t ldc;
  std::size_t columns;
  bool add;
};

/// First `count` lanes only, no other element of memory touched.
HWY_INLINE void store_first(Vec v, float* to, std::size_t count, bool add) {
  HWY_ALIGN float lanes[kLanes] = {};
  if (add) {
    std::memcpy(lanes, to, count * sizeof(float));
    v = hn::Add(v, hn::Load(kTag, lanes));
  }
  hn::Store(v, kTag, lanes);
  std::memcpy(to, lanes, count * sizeof(float));
}

/// Vector `v` of a row of the block, cut off at `columns`.
HWY_INLINE void store_vector(Vec vec, std::size_t v, float* row, const Output& out) {
  float* const to = row + v * kLanes;
  if (HWY_LIKELY(out.columns >= (v + 1) * kLanes)) {
    hn::StoreU(out.add ? hn::Add(vec, hn::LoadU(kTag, to)) : vec, kTag, to);
  } else if (out.columns > v * kLanes) {
    store_first(vec, to, out.columns - v * kLanes, out.add);
  }
}

/// What one call of a micro-kernel works on. `a`: R rows, stride kStripStride; `b`: rows of V
/// vectors, stride b_stride; `next_a`: rows of the strip that will be packed next, stride lda.
struct Operands {
  std::size_t depth;
  const float* a;
  const float* b;
  std::size_t b_stride;
  const float* next_a;
  std::size_t lda;
};

/// acc += a column of A times a row of B.
template <std::size_t R, std::size_t V>
HWY_INLINE void rank_one_update(Vec (&acc)[R][V], const float* a, const float* b) {
  Vec row[V];
#pragma GCC unroll 4
  for (std::size_t v = 0; v < V; ++v) row[v] = hn::LoadU(kTag, b + v * kLanes);
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r) {
    const Vec element = hn::Set(kTag, a[r * kStripStride]);
#pragma GCC unroll 4
    for (std::size_t v = 0; v < V; ++v) acc[r][v] = hn::MulAdd(element, row[v], acc[r][v]);
  }
}

/// C (+)= A times B for R rows and V vectors of columns, C's block held in registers. Every few
/// updates one line of C and one line of the next strip of A are fetched ahead, so that neither
/// waits for memory later, and no burst of fetches delays B.
template <std::size_t R, std::size_t V>
HWY_NOINLINE void micro_kernel(const Operands& in, const Output& out) {
  constexpr std::size_t kUnroll = 4, kLine = 16;
  Vec acc[R][V];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < V; ++v) acc[r][v] = hn::Zero(kTag);
  }
  const float* HWY_RESTRICT a = in.a;
  const float* HWY_RESTRICT b = in.b;
  const float* const end = a + in.depth;
  std::size_t ahead = 0;
  for (; a + kUnroll * R <= end; ahead += kLine) {
    const float* next_c = out.c + ahead;
    const float* next_a = in.next_a + ahead;
    for (std::size_t r = 0; r < R; ++r) {
      __builtin_prefetch(next_c, 1, 3);
      __builtin_prefetch(next_a, 0, 2);
      next_c += out.ldc;
      next_a += in.lda;
#pragma GCC unroll 4
      for (std::size_t u = 0; u < kUnroll; ++u) {
        rank_one_update<R, V>(acc, a, b);
        ++a;
        b += in.b_stride;
      }
    }
  }
  for (; a < end; ++a, b += in.b_stride) rank_one_update<R, V>(acc, a, b);
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < V; ++v) store_vector(acc[r][v], v, out.c + r * out.ldc, out);
  }
}

using Kernel = void (*)(const Operands&, const Output&);

template <std::size_t V, std::size_t... R>
constexpr std::array<Kernel, sizeof...(R)> kernels_of(std::index_sequence<R...>) {
  return {micro_kernel<R + 1, V>...};
}

/// kKernels[vectors - 1][rows - 1]
constexpr std::array<std::array<Kernel, kRows>, kVectors> kKernels = {
    kernels_of<1>(std::make_index_sequence<kRows>()),
    kernels_of<2>(std::make_index_sequence<kRows>())};

/// `columns` floats from `from`, then zeros up to `width` (a multiple of the vector length).
HWY_INLINE void copy_padded(const float* HWY_RESTRICT from, float* HWY_RESTRICT to,
                            std::size_t columns, std::size_t width) {
  std::size_t j = 0;
  for (; j + kLanes <= columns; j += kLanes) hn::StoreU(hn::LoadU(kTag, from + j), kTag, to + j);
  if (j < width) {
    HWY_ALIGN float lanes[kLanes] = {};
    std::memcpy(lanes, from + j, (columns - j) * sizeof(float));
    for (; j < width; j += kLanes, std::memset(lanes, 0, sizeof lanes)) {
      hn::StoreU(hn::Load(kTag, lanes), kTag, to + j);
    }
  }
}

/// Panels of B, each kWidth columns (the last one padded) and `depth` rows, one after the other.
static const std::size_t PF=getenv("PF")?atoi(getenv("PF")):4;
void pack_b(const float* b, std::size_t ldb, std::size_t depth, std::size_t columns, float* to) {
  for (std::size_t p = 0; p < depth; ++p, b += ldb) {
    float* row = to + p * kWidth;
    std::size_t j = 0;
    for (; j + kWidth <= columns; j += kWidth, row += depth * kWidth) {
      hwy::Prefetch(b + PF * ldb + j);
      hwy::Prefetch(b + PF * ldb + j + 16);
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kVectors; ++v) {
        hn::Store(hn::LoadU(kTag, b + j + v * kLanes), kTag, row + v * kLanes);
      }
    }
    if (j < columns) copy_padded(b + j, row, columns - j, kWidth);
  }
}

void pack_a(const float* a, std::size_t lda, std::size_t rows, std::size_t depth, float* to) {
  for (std::size_t r = 0; r < rows; ++r) {
    copy_padded(a + r * lda, to + r * kStripStride, depth, depth);
  }
}

/// One strip of rows against all panels of the packed B.
void multiply_strip(Operands in, std::size_t rows, const Output& out) {
  const std::size_t ahead = in.depth / (4 * rows) * 16;
  const float* const end = in.next_a + in.depth;
  for (std::size_t j = 0; j < out.columns; j += kWidth) {
    const std::size_t columns = std::min(kWidth, out.columns - j);
    const Kernel kernel = kKernels[ceil_div(columns, kLanes) - 1][rows - 1];
    kernel(in, {out.c + j, out.ldc, columns, out.add});
    in.b += in.depth * kWidth;
    in.next_a = in.next_a + ahead < end ? in.next_a + ahead : in.a;
  }
}

Blocking blocking(std::size_t n, std::size_t k) {
 static const std::size_t KC=getenv("KC")?atoi(getenv("KC")):0, NC=getenv("NC")?atoi(getenv("NC")):0;
  const std::size_t l1 = caches().l1 / sizeof(float), l2 = caches().l2 / sizeof(float);
  const std::size_t kc_max = KC?KC:std::clamp<std::size_t>(l1 * 5 / 8 / kRows / 16 * 16, 64, kMaxDepth);
  const std::size_t kc = std::max<std::size_t>(1, ceil_div(k, ceil_div(std::max<std::size_t>(k, 1), kc_max)));
  const std::size_t nc_max = NC?NC:std::max(kWidth, l2 * 3 / 4 / kc / kWidth * kWidth);
  const std::size_t panels = ceil_div(n, kWidth);
  const std::size_t nc = ceil_div(panels, ceil_div(panels * kWidth, nc_max)) * kWidth;
  return {kc, nc};
}

/// Floats of scratch that `multiply` needs: one strip of A, one block of B.
std::size_t scratch_size(const Product& p) {
  const Blocking block = blocking(p.n, p.k);
  return kRows * kStripStride + block.kc * block.nc;
}

/// The whole product on the calling thread.
void multiply(const Product& p, float* scratch) {
  float* const packed_a = scratch;
  float* const packed_b = scratch + kRows * kStripStride;
  const Blocking block = blocking(p.n, p.k);
  const std::size_t strips = ceil_div(p.m, kRows);
  for (std::size_t j = 0; j < p.n; j += block.nc) {
    const std::size_t columns = std::min(block.nc, p.n - j);
    for (std::size_t q = 0; q < std::max<std::size_t>(p.k, 1); q += block.kc) {
      const std::size_t depth = std::min(block.kc, p.k - q);
      pack_b(p.b + q * p.ldb + j, p.ldb, depth, columns, packed_b);
      for (std::size_t s = 0; s < strips; ++s) {
        const std::size_t i = p.m * s / strips, rows = p.m * (s + 1) / strips - i;
        pack_a(p.a + i * p.lda + q, p.lda, rows, depth, packed_a);
        multiply_strip({depth, packed_a, packed_b, kWidth, p.a + (i + rows) * p.lda + q, p.lda}, rows,
                       {p.c + i * p.ldc + j, p.ldc, columns, q > 0});
      }
    }
  }
}

[[maybe_unused]] std::size_t width() { return kWidth; }

}  // namespace HWY_NAMESPACE
}  // namespace cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cpu {
HWY_EXPORT(multiply);
HWY_EXPORT(scratch_size);
HWY_EXPORT(width);

namespace {

void packed(const Product& p, Workspace& w) {
  const std::span<float> scratch = w.floats(HWY_DYNAMIC_DISPATCH(scratch_size)(p));
  HWY_DYNAMIC_DISPATCH(multiply)(p, scratch.data());
}

}  // namespace

std::span<const Variant> packed_variants() {
  static const Variant table[] = {{"SGEMM/CPU/Packed", packed}};
  return table;
}
}  // namespace cpu
#endif
