// C = A B, row-major float32, on the vector lanes (FMA), with asynchronous copies.
//
// Idea. As sgemm_tile_register_warp, but tiles go from global to local memory by cp.async: no
// registers hold them in transit, no instructions store them, and STAGES tiles are under way, not
// one. A is transposed on its way, a float a copy; B needs not be, four floats a copy.
//
// What is left is the order of the multiply-adds. A scheduler of NVIDIA's reads one register from
// each of two banks a cycle, a multiply-add needs three, and what the one before it has read too is
// free. So the block is walked to and fro: every multiply-add shares an operand with the last.
//
// Needs compute capability 8.0. WG_X = 32 * (TILE_M / WARP_M) * (TILE_N / WARP_N); WARP_M % (4 *
// LANES_M) == WARP_N % (128 / LANES_M) == 0; TILE_M * TILE_K and TILE_K * TILE_N / 4 multiples of
// WG_X; STAGES * TILE_K 16, 32 or 64, STAGES >= 2.
// "tune:" lists what tools/tune.py tries; it also obeys the #error lines and LOCAL_BYTES.
#ifndef TILE_M
#define TILE_M 128  // tune: 64 128 256
#endif
#ifndef TILE_N
#define TILE_N 256  // tune: 64 128 256
#endif
#ifndef TILE_K
#define TILE_K 8  // tune: 8 16
#endif
#ifndef WARP_M
#define WARP_M 64  // tune: 32 64
#endif
#ifndef WARP_N
#define WARP_N 64  // tune: 32 64
#endif
#ifndef LANES_M
#define LANES_M 4  // tune: 4 8
#endif
#ifndef STAGES
#define STAGES 4  // tune: 2 4
#endif
#define LANES_N (32 / LANES_M)
#define WARPS_N (TILE_N / WARP_N)
#define WARPS_M (TILE_M / WARP_M)
#ifndef WG_X
#define WG_X (32 * WARPS_M * WARPS_N)  // tune: 64 128 256
#endif
#ifndef WG_Y
#define WG_Y 1
#endif
#define ITEM_M (WARP_M / LANES_M)
#define ITEM_N (WARP_N / LANES_N)
// In floats. The items of a warp store 32 words of A, TILE_K rows of the tile one below the other:
// 4 banks apart.
#define A_STRIDE (TILE_M + 4)
#define B_STRIDE TILE_N
#define RING (STAGES * TILE_K)  // rows of k
#define A_COPIES (TILE_M * TILE_K / WG_X)
#define B_COPIES (TILE_K * TILE_N / 4 / WG_X)
#define A_STEP (WG_X / TILE_K)      // rows of A from one copy of an item to its next
#define B_STEP (4 * WG_X / TILE_N)  // rows of B
#define LOCAL_BYTES (4 * RING * (A_STRIDE + B_STRIDE))
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
#if TILE_M * TILE_K % WG_X != 0 || TILE_K * TILE_N % (4 * WG_X) != 0 || 4 * WG_X % TILE_N != 0
#error "WG_X must divide TILE_M * TILE_K and TILE_K * TILE_N / 4, TILE_N 4 * WG_X"
#endif
#if STAGES < 2 || TILE_K % 2 != 0 || (RING != 16 && RING != 32 && RING != 64)
#error "STAGES * TILE_K must be 16, 32 or 64, STAGES at least 2, TILE_K even"
#endif
#if ITEM_M * ITEM_N > 128
#error "more than 128 sums of a work-item do not fit its registers beside their operands"
#endif

// Starts the copy of one float to local memory, or writes 0 there; of 4 floats at a multiple of 16
// bytes.
#define COPY(to, from, exists)                                                          \
  __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), \
                   "r"((exists) ? 4 : 0)                                                \
                   : "memory")
#define COPY_WIDE(to, from) \
  __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory")

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

__attribute__((reqd_work_group_size(WG_X, WG_Y, 1))) __kernel void sgemm_tile_register_async(
    const int m, const int n, const int k, __global const float* a, const int lda,
    __global const float* b, const int ldb, __global float* c, const int ldc) {
  __local float tile_a[RING * A_STRIDE] __attribute__((aligned(16)));
  __local float tile_b[RING * B_STRIDE] __attribute__((aligned(16)));

  const int item = get_local_id(0);
  const int lane = item % 32, warp = item / 32;
  const int item_m = warp / WARPS_N * WARP_M + lane / LANES_N * 4;
  const int item_n = warp % WARPS_N * WARP_N + lane % LANES_N * 4;
  const int row0 = get_group_id(1) * TILE_M, col0 = get_group_id(0) * TILE_N;
  const int inside =
      ldb % 4 == 0 && ((size_t)b & 15) == 0 && row0 + TILE_M <= m && col0 + TILE_N <= n;

  // Item i copies A at a_row + q * A_STEP, a_k and B at b_row + q * B_STEP, b_col and on.
  const int a_k = item % TILE_K, a_row = item / TILE_K;
  const int b_col = item % (TILE_N / 4) * 4, b_row = item / (TILE_N / 4);
  __global const float* a_from = a + (size_t)(row0 + a_row) * lda + a_k;
  __global const float* b_from = b + (size_t)b_row * ldb + col0 + b_col;
  const size_t a_step = (size_t)A_STEP * lda, b_step = (size_t)B_STEP * ldb;
  const int a_rows = m - row0 - a_row, b_cols = n - col0 - b_col;
  const uint a_ring = (uint)(size_t)&tile_a[0], b_ring = (uint)(size_t)&tile_b[0];
  const uint a_local = a_ring + 4 * (a_k * A_STRIDE + a_row);
  const uint b_local = b_ring + 4 * (b_row * B_STRIDE + b_col);
  int into = 0;  // row of the ring that the next tile begins at
  int left = k;  // of k, no copies of which have been started
#define LOAD                                                                                   \
  {                                                                                            \
    const uint a_to = a_local + 4 * A_STRIDE * into, b_to = b_local + 4 * B_STRIDE * into;     \
    if (inside && left >= TILE_K) {                                                            \
      _Pragma("unroll") for (int q = 0; q < A_COPIES; ++q)                                     \
          COPY(a_to + 4 * q * A_STEP, a_from + q * a_step, 1);                                 \
      _Pragma("unroll") for (int q = 0; q < B_COPIES; ++q)                                     \
          COPY_WIDE(b_to + 4 * q * B_STEP * B_STRIDE, b_from + q * b_step);                    \
    } else {                                                                                   \
      _Pragma("unroll") for (int q = 0; q < A_COPIES; ++q)                                     \
          COPY(a_to + 4 * q * A_STEP, a_from + q * a_step, a_k < left && q * A_STEP < a_rows); \
      _Pragma("unroll") for (int q = 0; q < B_COPIES; ++q)                                     \
          _Pragma("unroll") for (int j = 0; j < 4; ++j)                                        \
              COPY(b_to + 4 * (q * B_STEP * B_STRIDE + j), b_from + q * b_step + j,            \
                   b_row + q * B_STEP < left && j < b_cols);                                   \
    }                                                                                          \
    __asm__ volatile("cp.async.commit_group;" ::: "memory");                                   \
    a_from += TILE_K;                                                                          \
    b_from += (size_t)TILE_K * ldb;                                                            \
    left -= TILE_K;                                                                            \
    into = (into + TILE_K) & (RING - 1);                                                       \
  }
  // All tiles but the STAGES - 2 that were started last are in local memory.
#define WAIT                                                                \
  __asm__ volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory"); \
  barrier(CLK_LOCAL_MEM_FENCE);

  float part_a[2][ITEM_M], part_b[2][ITEM_N];
#define READ4(to, from)                                                         \
  __asm__ volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];"                      \
                   : "=f"((to)[0]), "=f"((to)[1]), "=f"((to)[2]), "=f"((to)[3]) \
                   : "r"(from))
#define READ(part, s)                                                   \
  _Pragma("unroll") for (int i = 0; i < ITEM_M; i += 4)                 \
      READ4(&part_a[part][i], a_at + 4 * ((s)*A_STRIDE + i * LANES_M)); \
  _Pragma("unroll") for (int j = 0; j < ITEM_N; j += 4)                 \
      READ4(&part_b[part][j], b_at + 4 * ((s)*B_STRIDE + j * LANES_N));

  float sum[ITEM_M][ITEM_N];
#pragma unroll
  for (int i = 0; i < ITEM_M; ++i)
#pragma unroll
    for (int j = 0; j < ITEM_N; ++j) sum[i][j] = 0;
#define MULTIPLY(part)                                              \
  _Pragma("unroll") for (int i = 0; i < ITEM_M; ++i)                \
      _Pragma("unroll") for (int step = 0; step < ITEM_N; ++step) { \
    const int j = i % 2 ? ITEM_N - 1 - step : step;                 \
    sum[i][j] = fma(part_a[part][i], part_b[part][j], sum[i][j]);   \
  }

#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s)
    LOAD WAIT int row = 0;  // of the ring: the tile that is multiplied begins there
  uint a_at = a_ring + 4 * item_m, b_at = b_ring + 4 * item_n;
  READ(0, 0)
  const int tiles = (k + TILE_K - 1) / TILE_K;
#pragma unroll 1
  for (int t = 0; t < tiles; ++t) {
    LOAD
#pragma unroll
        for (int s = 0; s < TILE_K - 1; ++s){READ((s + 1) % 2, s + 1) MULTIPLY(s % 2)} WAIT row =
            (row + TILE_K) & (RING - 1);
    a_at = a_ring + 4 * (row * A_STRIDE + item_m);
    b_at = b_ring + 4 * (row * B_STRIDE + item_n);
    READ(0, 0)
    MULTIPLY(1)
  }

  const int wide_c = ldc % 4 == 0 && ((size_t)c & 15) == 0;
#pragma unroll
  for (int i = 0; i < ITEM_M; ++i) {
    const int out = row0 + item_m + i / 4 * 4 * LANES_M + i % 4;
#pragma unroll
    for (int j = 0; j < ITEM_N / 4; ++j) {
      const int col = col0 + item_n + j * 4 * LANES_N;
      if (out < m) store4(c + (size_t)out * ldc + col, vload4(j, sum[i]), n - col, wide_c);
    }
  }
}
