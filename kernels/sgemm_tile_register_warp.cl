// C = A B, row-major float32, on the vector lanes (FMA), shaped after the 32 items that run in
// step.
//
// Idea. 32 neighbouring items (a warp) own a compact WARP_M x WARP_N block of C, so that together
// they read only WARP_M + WARP_N floats of the tiles per step of k: the same words go to many lanes
// at once. The words for the next step are read while the current one is multiplied, over the end
// of a tile too: the next tile's first step is read before the last step of the current one is
// multiplied, right after the tile's only barrier.
//
// Plain OpenCL C: nothing depends on the items really running in step.
// WG_X = 32 * (TILE_M / WARP_M) * (TILE_N / WARP_N); WARP_M % (4 * LANES_M) == WARP_N % (128 /
// LANES_M) == 0; TILE_M * TILE_K and TILE_K * TILE_N multiples of 4 * WG_X; TILE_K % 4 == 0.
// "tune:" lists what tools/tune.py tries; it also obeys the #error lines and LOCAL_BYTES.
#ifndef TILE_M
#define TILE_M 128  // tune: 32 64 128 256
#endif
#ifndef TILE_N
#define TILE_N 128  // tune: 64 128 256
#endif
#ifndef TILE_K
#define TILE_K 8  // tune: 8 16
#endif
#ifndef WARP_M
#define WARP_M 64  // tune: 32 64 128
#endif
#ifndef WARP_N
#define WARP_N 32  // tune: 32 64 128
#endif
#ifndef LANES_M
#define LANES_M 8  // tune: 4 8
#endif
#define LANES_N (32 / LANES_M)
#define WARPS_N (TILE_N / WARP_N)
#define WARPS_M (TILE_M / WARP_M)
#ifndef WG_X
#define WG_X (32 * WARPS_M * WARPS_N)  // tune: 64 128 256 512
#endif
#ifndef WG_Y
#define WG_Y 1
#endif
#define ITEM_M (WARP_M / LANES_M)
#define ITEM_N (WARP_N / LANES_N)
#define A_STRIDE (TILE_M + 4)  // floats; the four words of a load go to rows 4 banks apart
#define A_LOADS (TILE_M * TILE_K / 4 / WG_X)
#define B_LOADS (TILE_K * TILE_N / 4 / WG_X)
#define LOCAL_BYTES (8 * TILE_K * (A_STRIDE + TILE_N))
#if TILE_K < 1 || WARP_M < 1 || WARP_N < 1
#error "TILE_K, WARP_M and WARP_N must be at least 1"
#endif
#if LANES_M < 1 || 32 % LANES_M != 0
#error "LANES_M must divide the 32 lanes of a warp"
#endif
#if TILE_M % WARP_M != 0 || TILE_N % WARP_N != 0 || WG_X != 32 * WARPS_M * WARPS_N || WG_Y != 1
#error "WG_X must be 32 for each WARP_M x WARP_N block of the tile, WG_Y 1"
#endif
#if WARP_M % (4 * LANES_M) != 0 || WARP_N % (128 / LANES_M) != 0
#error "WARP_M must be a multiple of 4 * LANES_M, WARP_N of 128 / LANES_M"
#endif
#if TILE_M * TILE_K % (4 * WG_X) != 0 || TILE_K * TILE_N % (4 * WG_X) != 0 || TILE_K % 4 != 0
#error "TILE_M * TILE_K and TILE_K * TILE_N must be multiples of 4 * WG_X, TILE_K of 4"
#endif
#if ITEM_M * ITEM_N > 128
#error "more than 128 sums of a work-item do not fit its registers beside their operands"
#endif

// Four neighbours in a row, of which `valid` exist; the others are 0.
float4 load4(__global const float* from, int valid) {
  return (float4)(valid > 0 ? from[0] : 0, valid > 1 ? from[1] : 0, valid > 2 ? from[2] : 0,
                  valid > 3 ? from[3] : 0);
}

void store4(__global float* to, float4 x, int valid, int wide) {
  if (wide && valid >= 4) {
    *(__global float4*)to = x;
  } else {
    if (valid > 0) to[0] = x.x;
    if (valid > 1) to[1] = x.y;
    if (valid > 2) to[2] = x.z;
    if (valid > 3) to[3] = x.w;
  }
}

__attribute__((reqd_work_group_size(WG_X, WG_Y, 1))) __kernel void sgemm_tile_register_warp(
    const int m, const int n, const int k, __global const float* a, const int lda,
    __global const float* b, const int ldb, __global float* c, const int ldc) {
  __local float tile_a[2][TILE_K * A_STRIDE]
      __attribute__((aligned(16)));  // k rows of m: transposed
  __local float tile_b[2][TILE_K * TILE_N] __attribute__((aligned(16)));

  const int item = get_local_id(0);
  const int lane = item % 32, warp = item / 32;
  const int item_m = warp / WARPS_N * WARP_M + lane / LANES_N * 4;
  const int item_n = warp % WARPS_N * WARP_N + lane % LANES_N * 4;
  const int row0 = get_group_id(1) * TILE_M, col0 = get_group_id(0) * TILE_N;
  const int wide = ((lda | ldb) % 4 == 0) && ((((size_t)a | (size_t)b) & 15) == 0);
  const int inside = wide && row0 + TILE_M <= m && col0 + TILE_N <= n;

  // Item i loads A rows i / (TILE_K / 4) + q * (4 * WG_X / TILE_K) and B rows i / (TILE_N / 4) + q
  // * (4 * WG_X / TILE_N).
  const int a_row = item / (TILE_K / 4), a_k = item % (TILE_K / 4) * 4;
  const int b_row = item / (TILE_N / 4), b_col = item % (TILE_N / 4) * 4;
  float4 next_a[A_LOADS], next_b[B_LOADS];
#define A_ROW(q) (a_row + (q) * (4 * WG_X / TILE_K))
#define B_ROW(q) (b_row + (q) * (4 * WG_X / TILE_N))
#define LOAD(k0)                                                                                 \
  if (inside && (k0) + TILE_K <= k) {                                                            \
    for (int q = 0; q < A_LOADS; ++q)                                                            \
      next_a[q] = *(__global const float4*)(a + (size_t)(row0 + A_ROW(q)) * lda + (k0) + a_k);   \
    for (int q = 0; q < B_LOADS; ++q)                                                            \
      next_b[q] = *(__global const float4*)(b + (size_t)((k0) + B_ROW(q)) * ldb + col0 + b_col); \
  } else {                                                                                       \
    for (int q = 0; q < A_LOADS; ++q)                                                            \
      next_a[q] = load4(a + (size_t)(row0 + A_ROW(q)) * lda + (k0) + a_k,                        \
                        row0 + A_ROW(q) < m ? k - (k0)-a_k : 0);                                 \
    for (int q = 0; q < B_LOADS; ++q)                                                            \
      next_b[q] = load4(b + (size_t)((k0) + B_ROW(q)) * ldb + col0 + b_col,                      \
                        (k0) + B_ROW(q) < k ? n - col0 - b_col : 0);                             \
  }
#define STORE(buffer)                                              \
  for (int q = 0; q < A_LOADS; ++q) {                              \
    tile_a[buffer][(a_k + 0) * A_STRIDE + A_ROW(q)] = next_a[q].x; \
    tile_a[buffer][(a_k + 1) * A_STRIDE + A_ROW(q)] = next_a[q].y; \
    tile_a[buffer][(a_k + 2) * A_STRIDE + A_ROW(q)] = next_a[q].z; \
    tile_a[buffer][(a_k + 3) * A_STRIDE + A_ROW(q)] = next_a[q].w; \
  }                                                                \
  for (int q = 0; q < B_LOADS; ++q)                                \
    *(__local float4*)&tile_b[buffer][B_ROW(q) * TILE_N + b_col] = next_b[q];

  float4 part_a[2][ITEM_M / 4], part_b[2][ITEM_N / 4];
#define READ(part, buffer, s)                                                                     \
  for (int i = 0; i < ITEM_M / 4; ++i)                                                            \
    part_a[part][i] = *(__local float4*)&tile_a[buffer][(s)*A_STRIDE + item_m + i * 4 * LANES_M]; \
  for (int j = 0; j < ITEM_N / 4; ++j)                                                            \
    part_b[part][j] = *(__local float4*)&tile_b[buffer][(s)*TILE_N + item_n + j * 4 * LANES_N];

  float4 sum[ITEM_M][ITEM_N / 4];
#pragma unroll
  for (int i = 0; i < ITEM_M; ++i)
#pragma unroll
    for (int j = 0; j < ITEM_N / 4; ++j) sum[i][j] = 0;

  LOAD(0)
  STORE(0)
  barrier(CLK_LOCAL_MEM_FENCE);
  READ(0, 0, 0)
  const int tiles = (k + TILE_K - 1) / TILE_K;
#pragma unroll 1
  for (int t = 0; t < tiles; ++t) {
#pragma unroll
    for (int s = 0; s < TILE_K; ++s) {
      if (s == TILE_K - 1) {
        STORE((t + 1) % 2)
        barrier(CLK_LOCAL_MEM_FENCE);
      }
      READ((s + 1) % 2, (s + 1 < TILE_K ? t : t + 1) % 2, (s + 1) % TILE_K)
      if (s == 0) {
        LOAD((t + 1) * TILE_K)
      }
#pragma unroll
      for (int i = 0; i < ITEM_M / 4; ++i)
#pragma unroll
        for (int j = 0; j < ITEM_N / 4; ++j) {
          sum[4 * i + 0][j] =
              fma((float4)(part_a[s % 2][i].x), part_b[s % 2][j], sum[4 * i + 0][j]);
          sum[4 * i + 1][j] =
              fma((float4)(part_a[s % 2][i].y), part_b[s % 2][j], sum[4 * i + 1][j]);
          sum[4 * i + 2][j] =
              fma((float4)(part_a[s % 2][i].z), part_b[s % 2][j], sum[4 * i + 2][j]);
          sum[4 * i + 3][j] =
              fma((float4)(part_a[s % 2][i].w), part_b[s % 2][j], sum[4 * i + 3][j]);
        }
    }
  }

  const int wide_c = ldc % 4 == 0 && ((size_t)c & 15) == 0;
#pragma unroll
  for (int i = 0; i < ITEM_M; ++i) {
    const int row = row0 + item_m + i / 4 * 4 * LANES_M + i % 4;
#pragma unroll
    for (int j = 0; j < ITEM_N / 4; ++j) {
      const int col = col0 + item_n + j * 4 * LANES_N;
      if (row < m) store4(c + (size_t)row * ldc + col, sum[i][j], n - col, wide_c);
    }
  }
}
