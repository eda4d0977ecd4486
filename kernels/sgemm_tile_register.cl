// C = A B, row-major float32: a block of C per work-item, held in registers, over tiles in local
// memory.
//
// Idea. A local-memory tile alone still costs two loads per multiplication. With ITEM_M x ITEM_N
// results per work-item, ITEM_M + ITEM_N loads feed ITEM_M * ITEM_N of them. (V. Volkov, "Better
// performance at lower occupancy", 2010.)
//
// WG_X * ITEM_N == TILE_N, WG_Y * ITEM_M == TILE_M. Item (x, y) owns rows y + WG_Y * i and columns
// x + WG_X * j: neighbours in x read neighbouring words of the tile and write neighbouring words of
// C.
// "tune:" lists what tools/tune.py tries; it also obeys the #error lines and LOCAL_BYTES.
#ifndef TILE_M
#define TILE_M 64  // tune: 32 64 128
#endif
#ifndef TILE_N
#define TILE_N 64  // tune: 32 64 128
#endif
#ifndef TILE_K
#define TILE_K 16  // tune: 8 16 32
#endif
#ifndef WG_X
#define WG_X 16  // tune: 8 16 32
#endif
#ifndef WG_Y
#define WG_Y 16  // tune: 8 16 32
#endif
#define ITEM_M (TILE_M / WG_Y)
#define ITEM_N (TILE_N / WG_X)
#define LOCAL_BYTES (4 * TILE_K * (TILE_M + TILE_N))
#if TILE_K < 1
#error "TILE_K must be at least 1"
#endif
#if WG_X * ITEM_N != TILE_N || WG_Y * ITEM_M != TILE_M
#error "TILE_N must be a multiple of WG_X, TILE_M of WG_Y"
#endif
#if ITEM_M * ITEM_N > 64
#error "more than 64 sums of a work-item do not fit its registers beside their operands"
#endif

__attribute__((reqd_work_group_size(WG_X, WG_Y, 1))) __kernel void sgemm_tile_register(
    const int m, const int n, const int k, __global const float* a, const int lda,
    __global const float* b, const int ldb, __global float* c, const int ldc) {
  __local float tile_a[TILE_M][TILE_K], tile_b[TILE_K][TILE_N];
  const int x = get_local_id(0), y = get_local_id(1), item = y * WG_X + x;
  const int row0 = get_group_id(1) * TILE_M, col0 = get_group_id(0) * TILE_N;
  float sum[ITEM_M][ITEM_N];
  for (int i = 0; i < ITEM_M; ++i)
    for (int j = 0; j < ITEM_N; ++j) sum[i][j] = 0;

  for (int k0 = 0; k0 < k; k0 += TILE_K) {
    for (int i = item; i < TILE_M * TILE_K; i += WG_X * WG_Y) {
      const int row = row0 + i / TILE_K, col = k0 + i % TILE_K;
      tile_a[i / TILE_K][i % TILE_K] = row < m && col < k ? a[(size_t)row * lda + col] : 0;
    }
    for (int i = item; i < TILE_K * TILE_N; i += WG_X * WG_Y) {
      const int row = k0 + i / TILE_N, col = col0 + i % TILE_N;
      tile_b[i / TILE_N][i % TILE_N] = row < k && col < n ? b[(size_t)row * ldb + col] : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = 0; s < TILE_K; ++s) {
      float part_b[ITEM_N];
      for (int j = 0; j < ITEM_N; ++j) part_b[j] = tile_b[s][x + WG_X * j];
      for (int i = 0; i < ITEM_M; ++i) {
        const float part_a = tile_a[y + WG_Y * i][s];
        for (int j = 0; j < ITEM_N; ++j) sum[i][j] = fma(part_a, part_b[j], sum[i][j]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  for (int i = 0; i < ITEM_M; ++i) {
    const int row = row0 + y + WG_Y * i;
    for (int j = 0; j < ITEM_N; ++j) {
      const int col = col0 + x + WG_X * j;
      if (row < m && col < n) c[(size_t)row * ldc + col] = sum[i][j];
    }
  }
}
