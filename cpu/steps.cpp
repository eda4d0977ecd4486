// The steps between Blocked and Packed in plain C++, one idea each: packing alone, then a block of
// C in registers. What vector instructions add on top of these is Packed (packed.cpp). Source of
// the ideas: K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication" (2008).
#include "cpu/caches.hpp"
#include "cpu/cpu.hpp"

#include <algorithm>

namespace cpu {
namespace {

constexpr std::size_t kDepth = 256;  // rows of B in a packed block
constexpr std::size_t kHeight = 4;   // rows of C in registers
constexpr std::size_t kWidth = 32;   // columns of C in registers, and of a packed panel

/// Columns of B in a packed block: it fills half of L2.
std::size_t block_columns(std::size_t n) {
  const std::size_t fit = caches().l2 / 2 / sizeof(float) / kDepth / kWidth * kWidth;
  const std::size_t padded = (n + kWidth - 1) / kWidth * kWidth;
  return std::clamp(fit, kWidth, std::max(padded, kWidth));
}

void clear(const Product& p) {
  for (std::size_t i = 0; i < p.m; ++i) std::fill_n(p.c + i * p.ldc, p.n, 0.0F);
}

/// Calls `block` with one product for each block of B, all of which add to C.
template <class Block>
void for_each_block(const Product& p, std::size_t columns, const Block& block) {
  clear(p);
  for (std::size_t j = 0; j < p.n; j += columns) {
    for (std::size_t q = 0; q < p.k; q += kDepth) {
      block(Product{p.m, std::min(columns, p.n - j), std::min(kDepth, p.k - q), p.a + q, p.lda,
                    p.b + q * p.ldb + j, p.ldb, p.c + j, p.ldc});
    }
  }
}

/// The block of B, row after row without gaps: no cache set is hit harder than another, whatever
/// ldb is, and every page of it is in use.
void pack_rows(const Product& p, float* to) {
  for (std::size_t q = 0; q < p.k; ++q) std::copy_n(p.b + q * p.ldb, p.n, to + q * p.n);
}

void add_ikj(const Product& p, const float* b) {
  for (std::size_t i = 0; i < p.m; ++i) {
    float* const c = p.c + i * p.ldc;
    for (std::size_t q = 0; q < p.k; ++q) {
      const float a = p.a[i * p.lda + q];
      for (std::size_t j = 0; j < p.n; ++j) c[j] += a * b[q * p.n + j];
    }
  }
}

void blocked_packed(const Product& p, Workspace& w) {
  const std::size_t columns = block_columns(p.n);
  float* const packed = w.floats(columns * kDepth).data();
  for_each_block(p, columns, [packed](const Product& block) {
    pack_rows(block, packed);
    add_ikj(block, packed);
  });
}

/// The block of B as panels of kWidth columns, the last one padded with zeros.
void pack_panels(const Product& p, float* to) {
  for (std::size_t j = 0; j < p.n; j += kWidth) {
    const std::size_t columns = std::min(kWidth, p.n - j);
    for (std::size_t q = 0; q < p.k; ++q, to += kWidth) {
      std::fill(std::copy_n(p.b + q * p.ldb + j, columns, to), to + kWidth, 0.0F);
    }
  }
}

/// R rows of C times one panel: R x kWidth sums that stay in registers for the whole depth. The
/// loop over the columns is left to the compiler, which makes vectors of it.
template <std::size_t R>
void add_tile(const Product& p, const float* b) {
  float sums[R][kWidth] = {};
  for (std::size_t q = 0; q < p.k; ++q, b += kWidth) {
#pragma GCC unroll 4
    for (std::size_t r = 0; r < R; ++r) {
      const float a = p.a[r * p.lda + q];
      for (std::size_t j = 0; j < kWidth; ++j) sums[r][j] += a * b[j];
    }
  }
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t j = 0; j < p.n; ++j) p.c[r * p.ldc + j] += sums[r][j];
  }
}

void add_panels(const Product& p, const float* packed) {
  for (std::size_t i = 0; i < p.m; i += kHeight) {
    for (std::size_t j = 0; j < p.n; j += kWidth) {
      const Product tile{1,      std::min(kWidth, p.n - j), p.k,  p.a + i * p.lda, p.lda, nullptr,
                         kWidth, p.c + i * p.ldc + j,       p.ldc};
      const float* const b = packed + j * p.k;
      switch (p.m - i) {
        case 1:
          add_tile<1>(tile, b);
          break;
        case 2:
          add_tile<2>(tile, b);
          break;
        case 3:
          add_tile<3>(tile, b);
          break;
        default:
          add_tile<kHeight>(tile, b);
      }
    }
  }
}

void blocked_packed_register(const Product& p, Workspace& w) {
  const std::size_t columns = block_columns(p.n);
  float* const packed = w.floats(columns * kDepth).data();
  for_each_block(p, columns, [packed](const Product& block) {
    pack_panels(block, packed);
    add_panels(block, packed);
  });
}

}  // namespace

std::span<const Variant> step_variants() {
  static const Variant table[] = {
      {"SGEMM/CPU/BlockedPacked", blocked_packed},
      {"SGEMM/CPU/BlockedPackedRegister", blocked_packed_register},
  };
  return table;
}

}  // namespace cpu
