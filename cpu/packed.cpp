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

#include "cpu/cpu.hpp"
#include "cpu/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/packed.cpp"
#include "cpu/caches.hpp"

#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // must precede highway.h
#include <hwy/highway.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#ifndef CPU_PACKED_ONCE
#define CPU_PACKED_ONCE
namespace cpu {

/// Row stride of packed A in floats: an upper bound of kc, plus one cache line so that the rows of
/// a strip do not share cache sets.
inline constexpr std::size_t kMaxDepth = 512;
inline constexpr std::size_t kStripStride = kMaxDepth + 16;
inline constexpr std::size_t kMaxRows = 14;
inline constexpr std::size_t kLine = 16;               // floats in a cache line
inline constexpr std::size_t kUnroll = 4;              // updates between two portions of moved data
inline constexpr std::size_t kFetchAhead = 2 * kLine;  // columns of A between fetch and use
inline constexpr std::size_t kRowsAhead = 8;           // rows of B fetched ahead while it is packed

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

/// The strip of A that comes next, no higher than the present one, which packs it column by column
/// while it is multiplied: `fetched` columns are on their way from memory, and all but the last
/// kFetchAhead of these are packed. No rows: nothing to do.
struct NextStrip {
  const float* from;
  std::size_t lda;
  float* to;
  std::size_t rows;
  std::size_t fetched;
};

/// What one call of a micro-kernel works on. `a`: R rows, stride kStripStride. `b`: rows of V
/// vectors, stride b_stride; a kernel that packs B copies them to `packed_b` on the way.
struct Operands {
  std::size_t depth;
  const float* a;
  const float* b;
  std::size_t b_stride;
  float* packed_b;
  NextStrip next;
};

HWY_INLINE void copy_line(const float* HWY_RESTRICT from, float* HWY_RESTRICT to) {
  CPU_UNROLL(16)
  for (std::size_t j = 0; j < kLine; j += kLanes) {
    hn::StoreU(hn::LoadU(kTag, from + j), kTag, to + j);
  }
}

/// Fetches the lines that a panel of B, W floats wide, has not in common with the panel before it,
/// whatever their alignment: to L2 for the next panel, to L1 for this one.
template <std::size_t W>
HWY_INLINE void fetch_ahead(const float* b, std::size_t b_stride) {
  CPU_UNROLL(4)
  for (std::size_t end = std::min(kLine, W); end <= W; end += kLine) {
    __builtin_prefetch(b + W + end - 1, 0, 2);
    hwy::Prefetch(b + kRowsAhead * b_stride + end - 1);
  }
}

/// acc += a column of A times a row of B, which is copied to `packed_b` if kPackB says so.
template <bool kPackB, std::size_t R, std::size_t V>
HWY_INLINE void rank_one_update(Vec (&acc)[R][V], const float* a, const float* b,
                                std::size_t b_stride, float* packed_b) {
  Vec row[V];
  CPU_UNROLL(4)
  for (std::size_t v = 0; v < V; ++v) row[v] = hn::LoadU(kTag, b + v * kLanes);
  if constexpr (kPackB) {
    fetch_ahead<V * kLanes>(b, b_stride);
    CPU_UNROLL(4)
    for (std::size_t v = 0; v < V; ++v) hn::Store(row[v], kTag, packed_b + v * kLanes);
  }
  CPU_UNROLL(16)
  for (std::size_t r = 0; r < R; ++r) {
    const Vec element = hn::Set(kTag, a[r * kStripStride]);
    CPU_UNROLL(4)
    for (std::size_t v = 0; v < V; ++v) acc[r][v] = hn::MulAdd(element, row[v], acc[r][v]);
  }
}

/// C (+)= A times B for R rows and V vectors of columns, C's block held in registers. Whatever else
/// has to be moved is moved between the updates, in portions that hide behind the arithmetic: lines
/// of C are fetched ahead, the next strip of A is packed, and with kPackB the panel of B, too.
template <bool kPackB, std::size_t R, std::size_t V>
HWY_NOINLINE void micro_kernel(const Operands& in, const Output& out) {
  Vec acc[R][V];
  CPU_UNROLL(16)
  for (std::size_t r = 0; r < R; ++r) {
    CPU_UNROLL(4)
    for (std::size_t v = 0; v < V; ++v) acc[r][v] = hn::Zero(kTag);
  }
  const float* a = in.a;
  const float* b = in.b;
  float* packed_b = in.packed_b;
  const float* const end = a + in.depth;
  const std::size_t last_line = in.depth - std::min(in.depth, kLine);
  for (std::size_t ahead = 0; a + kUnroll * R <= end; ahead += kLine) {
    const float* c = out.c + ahead;
    const std::size_t fetched = in.next.fetched + ahead;
    const bool copy = fetched >= kFetchAhead;
    const std::size_t column = std::min(copy ? fetched - kFetchAhead : 0, last_line);
    const float* fetch = in.next.from + std::min(fetched, last_line);
    const float* from = in.next.from + column;
    float* to = in.next.to + column;
    for (std::size_t r = 0; r < R; ++r) {
      __builtin_prefetch(c, 1);
      c += out.ldc;
      if (r < in.next.rows) {
        hwy::Prefetch(fetch);
        if (copy) copy_line(from, to);
        fetch += in.next.lda;
        from += in.next.lda;
        to += kStripStride;
      }
      CPU_UNROLL(4)
      for (std::size_t u = 0; u < kUnroll; ++u) {
        rank_one_update<kPackB, R, V>(acc, a, b, in.b_stride, packed_b);
        ++a;
        b += in.b_stride;
        packed_b += kWidth;
      }
    }
  }
  for (; a < end; ++a, b += in.b_stride, packed_b += kWidth) {
    rank_one_update<kPackB, R, V>(acc, a, b, in.b_stride, packed_b);
  }
  CPU_UNROLL(16)
  for (std::size_t r = 0; r < R; ++r) {
    CPU_UNROLL(4)
    for (std::size_t v = 0; v < V; ++v) store_vector(acc[r][v], v, out.c + r * out.ldc, out);
  }
}

using Kernel = void (*)(const Operands&, const Output&);

template <bool kPackB, std::size_t V, std::size_t... R>
constexpr std::array<Kernel, sizeof...(R)> kernels_of(std::index_sequence<R...>) {
  return {micro_kernel<kPackB, R + 1, V>...};
}

/// kKernels[vectors - 1][rows - 1]
constexpr std::array<std::array<Kernel, kRows>, kVectors> kKernels = {
    kernels_of<false, 1>(std::make_index_sequence<kRows>()),
    kernels_of<false, 2>(std::make_index_sequence<kRows>())};
/// kPackingKernels[rows - 1], for panels of full width
constexpr std::array<Kernel, kRows> kPackingKernels =
    kernels_of<true, kVectors>(std::make_index_sequence<kRows>());

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

/// A panel of B, narrower than kWidth and padded to it.
void pack_narrow_panel(const float* b, std::size_t ldb, std::size_t depth, std::size_t columns,
                       float* to) {
  for (std::size_t p = 0; p < depth; ++p) {
    copy_padded(b + p * ldb, to + p * kWidth, columns, kWidth);
  }
}

/// Columns [begin, end) of a strip of A.
void pack_strip(const NextStrip& strip, std::size_t begin, std::size_t end) {
  for (std::size_t r = 0; r < strip.rows; ++r) {
    copy_padded(strip.from + r * strip.lda + begin, strip.to + r * kStripStride + begin,
                end - begin, end - begin);
  }
}

/// One panel of B times the strip; `b` is null when the panel is packed already.
void multiply_panel(Operands in, std::size_t rows, const Output& out) {
  const bool pack = in.b != nullptr;
  if (pack && out.columns == kWidth) return kPackingKernels[rows - 1](in, out);
  if (pack) pack_narrow_panel(in.b, in.b_stride, in.depth, out.columns, in.packed_b);
  in.b = in.packed_b;
  in.b_stride = kWidth;
  kKernels[ceil_div(out.columns, kLanes) - 1][rows - 1](in, out);
}

/// One strip of rows against a block of B, and the next strip packed. `b` is B in its own memory
/// for the first strip, which packs it, and null for the others.
void multiply_strip(Operands in, std::size_t rows, const Output& out) {
  const std::size_t ahead = in.depth < kLine ? 0 : in.depth / (kUnroll * rows) * kLine;
  const NextStrip next = in.next;
  if (in.depth < kLine) in.next.rows = 0;
  for (std::size_t j = 0; j < out.columns; j += kWidth) {
    multiply_panel(in, rows, {out.c + j, out.ldc, std::min(kWidth, out.columns - j), out.add});
    in.packed_b += in.depth * kWidth;
    if (in.b != nullptr) in.b += kWidth;
    in.next.fetched += ahead;
    if (in.next.fetched >= in.depth + kFetchAhead) in.next.rows = 0;
  }
  const std::size_t packed = in.next.fetched - std::min(in.next.fetched, kFetchAhead);
  if (packed < in.depth) pack_strip(next, packed, in.depth);
}

/// kc: as deep as a strip of A may be to fill most of L1. nc: such that the block of B fills most
/// of L2. Both evened out, so that no block is much smaller than the others.
Blocking blocking(std::size_t n, std::size_t k) {
  const std::size_t l1 = caches().l1 / sizeof(float), l2 = caches().l2 / sizeof(float);
  const std::size_t kc_max =
      std::clamp<std::size_t>(l1 * 7 / 8 / kRows / kLine * kLine, 128, kMaxDepth);
  const std::size_t kc = k == 0 ? 1 : ceil_div(k, ceil_div(k, kc_max));
  const std::size_t panels_max = std::max<std::size_t>(1, l2 * 3 / 4 / kc / kWidth);
  const std::size_t panels = std::max<std::size_t>(1, ceil_div(n, kWidth));
  return {kc, ceil_div(panels, ceil_div(panels, panels_max)) * kWidth};
}

/// Floats of scratch that `multiply` needs: two strips of A, a block of B.
std::size_t scratch_size(const Product& p) {
  const Blocking block = blocking(p.n, p.k);
  return 2 * kRows * kStripStride + block.kc * block.nc;
}

/// C (+)= A (all its rows, `depth` columns) times a block of B, strip by strip. The strips differ
/// by one row at most, the higher ones first.
void multiply_block(const Product& p, bool add, float* scratch) {
  const std::size_t strips = ceil_div(p.m, kRows);
  const auto first_row = [&](std::size_t s) {
    return p.m / strips * s + std::min(s, p.m % strips);
  };
  float* present = scratch;
  float* next = scratch + kRows * kStripStride;
  float* const packed_b = scratch + 2 * kRows * kStripStride;
  pack_strip({p.a, p.lda, present, first_row(1), 0}, 0, p.k);
  for (std::size_t s = 0; s < strips; ++s) {
    const std::size_t i = first_row(s), end = first_row(s + 1);
    const std::size_t next_rows = s + 1 < strips ? first_row(s + 2) - end : 0;
    multiply_strip({p.k,
                    present,
                    s == 0 ? p.b : nullptr,
                    p.ldb,
                    packed_b,
                    {p.a + end * p.lda, p.lda, next, next_rows, 0}},
                   end - i, {p.c + i * p.ldc, p.ldc, p.n, add});
    std::swap(present, next);
  }
}

/// The whole product on the calling thread.
void multiply(const Product& p, float* scratch) {
  if (p.m == 0) return;
  const Blocking block = blocking(p.n, p.k);
  for (std::size_t j = 0; j < p.n; j += block.nc) {
    for (std::size_t q = 0; q < std::max<std::size_t>(p.k, 1); q += block.kc) {
      multiply_block({p.m, std::min(block.nc, p.n - j), std::min(block.kc, p.k - q),  //
                      p.a + q, p.lda, p.b + q * p.ldb + j, p.ldb, p.c + j, p.ldc},
                     q > 0, scratch);
    }
  }
}

/// Columns that a thread's share should be a multiple of.
[[maybe_unused]] std::size_t panel_width() { return kWidth; }

}  // namespace HWY_NAMESPACE
}  // namespace cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cpu {
HWY_EXPORT(multiply);
HWY_EXPORT(scratch_size);
HWY_EXPORT(panel_width);

namespace {

void packed(const Product& p, Workspace& w) {
  const std::span<float> scratch = w.floats(HWY_DYNAMIC_DISPATCH(scratch_size)(p));
  HWY_DYNAMIC_DISPATCH(multiply)(p, scratch.data());
}

/// C cut into a grid of rows x columns shares, each of which is a product of its own: nothing is
/// shared but A and B, and nobody waits before the end.
struct Grid {
  std::size_t rows, columns;
};

/// The grid whose largest share costs least. A share of r x c outputs costs r * c multiplications
/// per step of k, and packs c numbers of B, and r of A at least twice (once for each block of
/// columns); a number packed counts as kPackingCost multiplications. Wide shares hide the packing
/// of A better. A thread gets nothing to do that is cheaper than waking it.
Grid choose_grid(const Product& p, std::size_t panel, std::size_t threads) {
  constexpr std::size_t kPackingCost = 32, kWorthAThread = std::size_t{1} << 19;
  threads = std::min(threads, p.m * p.n * p.k / kWorthAThread);
  Grid best{1, 1};
  std::size_t best_cost = std::numeric_limits<std::size_t>::max();
  for (std::size_t rows = 1; rows <= std::min(threads, p.m); ++rows) {
    const std::size_t panels = ceil_div(p.n, panel);
    const std::size_t columns = std::min(threads / rows, panels);
    const std::size_t r = ceil_div(p.m, rows), c = ceil_div(panels, columns) * panel;
    const std::size_t cost = r * c + kPackingCost * (2 * r + c);
    if (cost < best_cost) best = {rows, columns}, best_cost = cost;
  }
  return best;
}

/// The share number `index` of the grid; whole panels of columns, rows as even as possible.
Product share(const Product& p, const Grid& grid, std::size_t panel, std::size_t index) {
  const std::size_t y = index / grid.columns, x = index % grid.columns;
  const std::size_t panels = ceil_div(p.n, panel);
  const std::size_t top = p.m * y / grid.rows, bottom = p.m * (y + 1) / grid.rows;
  const std::size_t left = panels * x / grid.columns * panel;
  const std::size_t right = std::min(p.n, panels * (x + 1) / grid.columns * panel);
  return {bottom - top, right - left, p.k,   p.a + top * p.lda,
          p.lda,        p.b + left,   p.ldb, p.c + top * p.ldc + left,
          p.ldc};
}

void packed_parallel(const Product& p, Workspace& w) {
  const std::size_t panel = HWY_DYNAMIC_DISPATCH(panel_width)();
  const Grid grid = choose_grid(p, panel, static_cast<std::size_t>(w.threads()));
  const std::size_t shares = grid.rows * grid.columns;
  if (shares == 1) return packed(p, w);
  std::size_t each = 0;
  for (std::size_t i = 0; i < shares; ++i) {
    each = std::max(each, HWY_DYNAMIC_DISPATCH(scratch_size)(share(p, grid, panel, i)));
  }
  each = ceil_div(each, kLine) * kLine;
  float* const scratch = w.floats(each * shares).data();
#pragma omp parallel for num_threads(static_cast <int>(shares)) schedule(static, 1)
  for (std::size_t i = 0; i < shares; ++i) {
    HWY_DYNAMIC_DISPATCH(multiply)(share(p, grid, panel, i), scratch + i * each);
  }
}

}  // namespace

std::span<const Variant> packed_variants() {
  static const Variant table[] = {
      {"SGEMM/CPU/Packed", packed},
      {"SGEMM/CPU/PackedParallel", packed_parallel},
  };
  return table;
}

}  // namespace cpu
#endif
