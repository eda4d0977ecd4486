// C = A B, row-major float32, on the vector lanes (FMA), fed by asynchronous copies.
//
// Idea. cp.async moves global memory to local memory without passing through registers: STAGES
// tiles are under way while one is multiplied, and no register holds data in transit. A therefore
// stays as it lies (m rows of k): a work-item reads 4 steps of k of a row in one load, as often as
// it would read 4 rows of a transposed tile. Small products leave most of the device idle: SLICES
// groups of warps share a tile of C, each takes its part of every k-tile, and their sums meet in
// local memory at the end.
//
// A warp owns WARP_M x WARP_N of C; LANES_M x 32/LANES_M lanes, each rows lane_m + LANES_M * i and
// groups of 4 columns. Zero fill at the edges of k and n; any leading dimension is right, multiples
// of 4 floats are fast. Needs compute capability 8.0. WG_X = 32 * (TILE_M / WARP_M) * (TILE_N /
// WARP_N) * SLICES; WARP_M % LANES_M == WARP_N % (128 / LANES_M) == 0; TILE_K % (4 * SLICES) == 0;
// TILE_K % 8 == 0.
// "tune:" lists what tools/tune.py tries; it also obeys the #error lines and LOCAL_BYTES.
#ifndef TILE_M
#define TILE_M 128  // tune: 32 64 128
#endif
#ifndef TILE_N
#define TILE_N 128  // tune: 32 64 128
#endif
#ifndef TILE_K
#define TILE_K 16  // tune: 16 32 64
#endif
#ifndef WARP_M
#define WARP_M 64  // tune: 32 64
#endif
#ifndef WARP_N
#define WARP_N 32  // tune: 32 64
#endif
#ifndef LANES_M
#define LANES_M 8  // tune: 4 8
#endif
#ifndef SLICES
#define SLICES 1  // tune: 1 2 4
#endif
#ifndef STAGES
#define STAGES 3  // tune: 2 3 4
#endif
#define WARPS_N (TILE_N / WARP_N)
#define WARPS_M (TILE_M / WARP_M)
#ifndef WG_X
#define WG_X (32 * WARPS_M * WARPS_N * SLICES)  // tune: 64 128 256 512
#endif
#ifndef WG_Y
#define WG_Y 1
#endif
#define LANES_N (32 / LANES_M)
#define ITEM_M (WARP_M / LANES_M)
#define ITEM_N (WARP_N / LANES_N)
#define A_STRIDE (TILE_K + 4)  // floats; 4 mod 8: 8 neighbouring rows meet every bank once
#define B_STRIDE TILE_N
#define STAGE_FLOATS (TILE_M * A_STRIDE + TILE_K * B_STRIDE)
#define SUM_STRIDE (TILE_N + 4)
#define SUMS_FLOATS (SLICES > 1 ? SLICES * TILE_M * SUM_STRIDE : 0)
#define LOCAL_FLOATS (STAGES * STAGE_FLOATS > SUMS_FLOATS ? STAGES * STAGE_FLOATS : SUMS_FLOATS)
#define LOCAL_BYTES (4 * LOCAL_FLOATS)
#if TILE_K < 1 || WARP_M < 1 || WARP_N < 1 || SLICES < 1
#error "TILE_K, WARP_M, WARP_N and SLICES must be at least 1"
#endif
#if LANES_M < 1 || 32 % LANES_M != 0
#error "LANES_M must divide the 32 lanes of a warp"
#endif
#if TILE_M % WARP_M != 0 || TILE_N % WARP_N != 0
#error "TILE_M must be a multiple of WARP_M, TILE_N of WARP_N"
#endif
#if WG_X != 32 * WARPS_M * WARPS_N * SLICES || WG_Y != 1
#error "WG_X must be 32 for each WARP_M x WARP_N block of the tile and each slice, WG_Y 1"
#endif
#if WARP_M % LANES_M != 0 || WARP_N % (128 / LANES_M) != 0
#error "WARP_M must be a multiple of LANES_M, WARP_N of 128 / LANES_M"
#endif
#if TILE_K % (4 * SLICES) != 0 || TILE_K % 8 != 0
#error "TILE_K must be a multiple of 8 and of 4 * SLICES"
#endif
#if STAGES < 2
#error "STAGES must be at least 2"
#endif
#if ITEM_M * ITEM_N > 128
#error "more than 128 sums of a work-item do not fit its registers beside their operands"
#endif

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

// Stores four neighbours in a row, of which `valid` exist.
void store4(__global float* to, float4 x, int valid, int aligned) {
  if (aligned && valid >= 4) {
    *(__global float4*)to = x;
  } else {
    if (valid >= 1) to[0] = x.x;
    if (valid >= 2) to[1] = x.y;
    if (valid >= 3) to[2] = x.z;
    if (valid >= 4) to[3] = x.w;
  }
}

__attribute__((reqd_work_group_size(WG_X, WG_Y, 1))) __kernel void sgemm_tile_register_sliced(
    const int m, const int n, const int k, __global const float* a, const int lda,
    __global const float* b, const int ldb, __global float* c, const int ldc) {
  __local float local_floats[LOCAL_FLOATS] __attribute__((aligned(128)));
  const int item = get_local_id(0);
  const int lane = item % 32, warp = item / 32;
  const int warp_n = warp % WARPS_N * WARP_N, warp_m = warp / WARPS_N % WARPS_M * WARP_M;
  const int slice = warp / (WARPS_N * WARPS_M);
  const int item_m = warp_m + lane / LANES_N, item_n = warp_n + lane % LANES_N * 4;
  const int row0 = get_group_id(1) * TILE_M, col0 = get_group_id(0) * TILE_N;
  const int aligned = ((lda | ldb) % 4 == 0) && ((((size_t)a | (size_t)b) & 15) == 0);
  const int quads = ldc % 4 == 0 && ((size_t)c & 15) == 0;

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

  float4 total[ITEM_M][ITEM_N / 4];
#pragma unroll
  for (int i = 0; i < ITEM_M; ++i)
#pragma unroll
    for (int j = 0; j < ITEM_N / 4; ++j) total[i][j] = 0;

  const int tiles = (k + TILE_K - 1) / TILE_K;
  for (int t = 0; t < STAGES - 1; ++t) {
    LOAD(t)
  }
#pragma unroll 1
  for (int t = 0; t < tiles; ++t) {
    __asm__ volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    barrier(CLK_LOCAL_MEM_FENCE);
    LOAD(t + STAGES - 1)
    __local const float* tile_a = local_floats + t % STAGES * STAGE_FLOATS + item_m * A_STRIDE;
    __local const float* tile_b =
        local_floats + t % STAGES * STAGE_FLOATS + TILE_M * A_STRIDE + item_n;
#pragma unroll
    for (int s = 0; s < TILE_K / 4 / SLICES; ++s) {
      const int k0 = (slice * (TILE_K / 4 / SLICES) + s) * 4;
      float a_part[ITEM_M][4];
#pragma unroll
      for (int i = 0; i < ITEM_M; ++i)
        *(float4*)a_part[i] = *(__local const float4*)(tile_a + i * LANES_M * A_STRIDE + k0);
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        float4 b_part[ITEM_N / 4];
#pragma unroll
        for (int j = 0; j < ITEM_N / 4; ++j)
          b_part[j] = *(__local const float4*)(tile_b + (k0 + q) * B_STRIDE + j * LANES_N * 4);
#pragma unroll
        for (int i = 0; i < ITEM_M; ++i)
#pragma unroll
          for (int j = 0; j < ITEM_N / 4; ++j)
            total[i][j] = fma((float4)(a_part[i][q]), b_part[j], total[i][j]);
      }
    }
  }
  __asm__ volatile("cp.async.wait_group 0;" ::: "memory");

#if SLICES == 1
#pragma unroll
  for (int i = 0; i < ITEM_M; ++i) {
    const int row = row0 + item_m + LANES_M * i;
#pragma unroll
    for (int j = 0; j < ITEM_N / 4; ++j) {
      const int col = col0 + item_n + LANES_N * 4 * j;
      if (row < m) store4(c + (size_t)row * ldc + col, total[i][j], n - col, quads);
    }
  }
#else
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int i = 0; i < ITEM_M; ++i)
#pragma unroll
    for (int j = 0; j < ITEM_N / 4; ++j)
      *(__local float4*)&local_floats[(slice * TILE_M + item_m + LANES_M * i) * SUM_STRIDE +
                                      item_n + LANES_N * 4 * j] = total[i][j];
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int q = 0; q < ROUNDS(TILE_M * TILE_N / 4); ++q) {
    const int i = item + q * WG_X, y = i / (TILE_N / 4), x = i % (TILE_N / 4) * 4;
    if (y < TILE_M && row0 + y < m) {
      float4 sum = 0;
#pragma unroll
      for (int s = 0; s < SLICES; ++s)
        sum += *(__local float4*)&local_floats[(s * TILE_M + y) * SUM_STRIDE + x];
      store4(c + (size_t)(row0 + y) * ldc + col0 + x, sum, n - col0 - x, quads);
    }
  }
#endif
}
