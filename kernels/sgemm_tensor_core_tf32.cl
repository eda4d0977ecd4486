// C = A B, row-major float32, on the warp matrix unit (mma.sync): inputs rounded to TF32 (11 bits),
// float32 sums.
//
// Idea. One instruction of a warp multiplies 16 x 8 by 8 x 8: 64 times the work of an FMA on the
// vector lanes.
//
// A warp owns WARP_M x WARP_N of C. Copies are cp.async, STAGES deep, with zero fill at the edges
// of k and n; any leading dimension is right, multiples of 4 floats are fast. Needs compute
// capability 8.0. WG_X = 32 * (TILE_M / WARP_M) * (TILE_N / WARP_N); WARP_M % 16 == WARP_N % 8 ==
// TILE_K % (8) == 0.
#ifndef TILE_M
#define TILE_M 64
#endif
#ifndef TILE_N
#define TILE_N 64
#endif
#ifndef TILE_K
#define TILE_K 32
#endif
#ifndef WARP_M
#define WARP_M 32
#endif
#ifndef WARP_N
#define WARP_N 32
#endif
#ifndef STAGES
#define STAGES 3  // >= 2
#endif
#define WARPS_N (TILE_N / WARP_N)
#define WARPS_M (TILE_M / WARP_M)
#ifndef WG_X
#define WG_X (32 * WARPS_M * WARPS_N)
#endif
#ifndef WG_Y
#define WG_Y 1
#endif
#define A_STRIDE (TILE_K + 4)  // floats; 4 mod 8 and
#define B_STRIDE (TILE_N + 8)  // 8 mod 32: fragment loads meet every bank once
#define STAGE_FLOATS (TILE_M * A_STRIDE + TILE_K * B_STRIDE)
#if TILE_K < 1 || WARP_M < 1 || WARP_N < 1
#error "TILE_K, WARP_M and WARP_N must be at least 1"
#endif
#if TILE_M % WARP_M != 0 || TILE_N % WARP_N != 0 || WG_X != 32 * WARPS_M * WARPS_N || WG_Y != 1
#error "WG_X must be 32 for each WARP_M x WARP_N block of the tile, WG_Y 1"
#endif
#if WARP_M % 16 != 0 || WARP_N % 8 != 0 || TILE_K % 8 != 0
#error "WARP_M must be a multiple of 16, WARP_N and TILE_K of 8"
#endif
#if STAGES < 2
#error "STAGES must be at least 2"
#endif

uint to_tf32(float x) {
  uint y;
  __asm__("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
}

// d += A fragment (16 x 8) * B fragment (8 x 8)
void multiply(float* d, const uint* a, const uint* b) {
  __asm__ volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Starts the copy of 4 floats to local memory, of which the first `valid` exist; the others become
// 0. WIDE: the source lies at a multiple of 16 bytes.
#define COPY_WIDE(to, from, valid)                                                       \
  __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), \
                   "r"(4 * (valid))                                                      \
                   : "memory")
#define COPY_NARROW(to, from, valid)                                                    \
  for (int j_ = 0; j_ < 4; ++j_)                                                        \
  __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((to) + 4 * j_), \
                   "l"((from) + (j_ < (valid) ? j_ : 0)), "r"(j_ < (valid) ? 4 : 0)     \
                   : "memory")

// Stores two neighbours in a row, of which `valid` exist.
void store2(__global float* to, float2 x, int valid, int aligned) {
  if (aligned && valid >= 2) {
    *(__global float2*)to = x;
  } else {
    if (valid >= 1) to[0] = x.x;
    if (valid >= 2) to[1] = x.y;
  }
}

__attribute__((reqd_work_group_size(WG_X, WG_Y, 1))) __kernel void sgemm_tensor_core_tf32(
    const int m, const int n, const int k, __global const float* a, const int lda,
    __global const float* b, const int ldb, __global float* c, const int ldc) {
  __local float local_floats[STAGES * STAGE_FLOATS] __attribute__((aligned(128)));
  const int item = get_local_id(0);
  const int lane = item % 32, warp = item / 32;
  const int warp_n = warp % WARPS_N * WARP_N, warp_m = warp / WARPS_N * WARP_M;
  const int row0 = get_group_id(1) * TILE_M, col0 = get_group_id(0) * TILE_N;
  const int aligned = ((lda | ldb) % 4 == 0) && ((((size_t)a | (size_t)b) & 15) == 0);
  const int pairs = ldc % 2 == 0 && ((size_t)c & 7) == 0;

#define ROUNDS(count) (((count) + WG_X - 1) / WG_X)
#define A_CHUNKS (TILE_M * TILE_K / 4)
#define B_CHUNKS (TILE_K * TILE_N / 4)
#define LOAD_WITH(COPY, tile)                                                            \
  {                                                                                      \
    const int k0_ = (tile)*TILE_K;                                                       \
    const uint to_a_ = (uint)(size_t)&local_floats[(tile) % STAGES * STAGE_FLOATS];      \
    const uint to_b_ = to_a_ + 4 * TILE_M * A_STRIDE;                                    \
    _Pragma("unroll") for (int q = 0; q < ROUNDS(A_CHUNKS); ++q) {                       \
      const int i = item + q * WG_X, y_ = i / (TILE_K / 4), x_ = i % (TILE_K / 4) * 4;   \
      const int valid_ = clamp(k - k0_ - x_, 0, 4);                                      \
      if (y_ < TILE_M)                                                                   \
        COPY(to_a_ + 4 * (y_ * A_STRIDE + x_),                                           \
             a + (size_t)min(row0 + y_, m - 1) * lda + (valid_ ? k0_ + x_ : 0), valid_); \
    }                                                                                    \
    _Pragma("unroll") for (int q = 0; q < ROUNDS(B_CHUNKS); ++q) {                       \
      const int i = item + q * WG_X, y_ = i / (TILE_N / 4), x_ = i % (TILE_N / 4) * 4;   \
      const int valid_ = k0_ + y_ < k ? clamp(n - col0 - x_, 0, 4) : 0;                  \
      if (y_ < TILE_K)                                                                   \
        COPY(to_b_ + 4 * (y_ * B_STRIDE + x_),                                           \
             b + (size_t)min(k0_ + y_, k - 1) * ldb + (valid_ ? col0 + x_ : 0), valid_); \
    }                                                                                    \
  }
#define LOAD(tile)             \
  if (aligned)                 \
    LOAD_WITH(COPY_WIDE, tile) \
  else                         \
    LOAD_WITH(COPY_NARROW, tile) __asm__ volatile("cp.async.commit_group;" ::: "memory");

  float total[WARP_M / 16][WARP_N / 8][4];
#pragma unroll
  for (int i = 0; i < WARP_M / 16; ++i)
#pragma unroll
    for (int j = 0; j < WARP_N / 8; ++j)
      total[i][j][0] = total[i][j][1] = total[i][j][2] = total[i][j][3] = 0;

  const int tiles = (k + TILE_K - 1) / TILE_K;
  for (int t = 0; t < STAGES - 1; ++t) {
    LOAD(t)
  }
#pragma unroll 1
  for (int t = 0; t < tiles; ++t) {
    __asm__ volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    barrier(CLK_LOCAL_MEM_FENCE);
    LOAD(t + STAGES - 1)
    __local const float* tile_a =
        local_floats + t % STAGES * STAGE_FLOATS + (warp_m + lane / 4) * A_STRIDE + lane % 4;
    __local const float* tile_b = local_floats + t % STAGES * STAGE_FLOATS + TILE_M * A_STRIDE +
                                  lane % 4 * B_STRIDE + warp_n + lane / 4;
#pragma unroll
    for (int s = 0; s < TILE_K / 8; ++s) {
      const int k0 = s * 8;
      uint a_part[WARP_M / 16][4], b_part[WARP_N / 8][2];
#pragma unroll
      for (int i = 0; i < WARP_M / 16; ++i)
#pragma unroll
        for (int q = 0; q < 4; ++q)
          a_part[i][q] = to_tf32(tile_a[(16 * i + q % 2 * 8) * A_STRIDE + k0 + q / 2 * 4]);
#pragma unroll
      for (int j = 0; j < WARP_N / 8; ++j)
#pragma unroll
        for (int q = 0; q < 2; ++q) b_part[j][q] = to_tf32(tile_b[(k0 + q * 4) * B_STRIDE + 8 * j]);
#pragma unroll
      for (int i = 0; i < WARP_M / 16; ++i)
#pragma unroll
        for (int j = 0; j < WARP_N / 8; ++j) multiply(total[i][j], a_part[i], b_part[j]);
    }
  }
  __asm__ volatile("cp.async.wait_group 0;" ::: "memory");

#pragma unroll
  for (int i = 0; i < WARP_M / 16 * 2; ++i) {
    const int row = row0 + warp_m + 8 * i + lane / 4;
#pragma unroll
    for (int j = 0; j < WARP_N / 8; ++j) {
      const int col = col0 + warp_n + 8 * j + lane % 4 * 2;
      if (row < m)
        store2(c + (size_t)row * ldc + col,
               (float2)(total[i / 2][j][i % 2 * 2], total[i / 2][j][i % 2 * 2 + 1]), n - col,
               pairs);
    }
  }
}
