// C = A B, row-major float32: the register block of sgemm_tile_register with four floats at a time.
//
// Idea. Three rungs in one file, each a macro more:
// - Vectors alone: an item's rows and columns of C are neighbours by fours, so that tiles are
//   loaded, B's tile is read, and C is stored by float4: a quarter of the memory instructions. A's
//   tile is still read a float at a time, down a column.
// - TRANSPOSED: A's tile is stored with k outside, so that it is read by float4, too; its rows are
//   padded by four floats, so that the stores of neighbouring items meet different banks.
// - BUFFERS 2: the next tile is on its way from global memory, in registers, while the current one
//   is multiplied, and goes to the other of two buffers: one barrier a tile, not two.
//
// WG_X * ITEM_N == TILE_N, WG_Y * ITEM_M == TILE_M, both blocks multiples of 4; TILE_M * TILE_K and
// TILE_K * TILE_N multiples of 4 * WG_X * WG_Y; TILE_K % 4 == 0. Item (x, y) owns the rows 4 * (y +
// WG_Y * i) + 0..3 and the columns 4 * (x + WG_X * j) + 0..3.
// "tune:" lists what tools/tune.py tries; it also obeys the #error lines and LOCAL_BYTES.
#ifndef TILE_M
#define TILE_M 128  // tune: 32 64 128
#endif
#ifndef TILE_N
#define TILE_N 128  // tune: 32 64 128
#endif
#ifndef TILE_K
#define TILE_K 8  // tune: 8 16
#endif
#ifndef WG_X
#define WG_X 16  // tune: 8 16
#endif
#ifndef WG_Y
#define WG_Y 16  // tune: 8 16
#endif
#ifndef TRANSPOSED
#define TRANSPOSED 0  // tune: 0 1
#endif
#ifndef BUFFERS
#define BUFFERS 1  // tune: 1 2
#endif
#define ITEMS (WG_X * WG_Y)
#define ITEM_M (TILE_M / WG_Y)
#define ITEM_N (TILE_N / WG_X)
#define A_LOADS (TILE_M * TILE_K / 4 / ITEMS)
#define B_LOADS (TILE_K * TILE_N / 4 / ITEMS)
#if TRANSPOSED
#define A_WORD(row, s) ((s) * (TILE_M + 4) + (row))
#define A_WORDS (TILE_K * (TILE_M + 4))
#else
#define A_WORD(row, s) ((row)*TILE_K + (s))
#define A_WORDS (TILE_M * TILE_K)
#endif
#define LOCAL_BYTES (4 * BUFFERS * (A_WORDS + TILE_K * TILE_N))
#if TILE_K < 1 || TRANSPOSED > 1 || BUFFERS < 1 || BUFFERS > 2
#error "TILE_K must be at least 1, TRANSPOSED 0 or 1, BUFFERS 1 or 2"
#endif
#if WG_X * ITEM_N != TILE_N || WG_Y * ITEM_M != TILE_M || ITEM_M % 4 != 0 || ITEM_N % 4 != 0
#error "TILE_N must be a multiple of 4 * WG_X, TILE_M of 4 * WG_Y"
#endif
#if TILE_M * TILE_K % (4 * ITEMS) != 0 || TILE_K * TILE_N % (4 * ITEMS) != 0 || TILE_K % 4 != 0
#error "TILE_M * TILE_K and TILE_K * TILE_N must be multiples of 4 * WG_X * WG_Y, TILE_K of 4"
#endif
#if ITEM_M * ITEM_N > 64
#error "more than 64 sums of a work-item do not fit its registers beside their operands"
#endif

// Four neighbours in a row, of which `valid` exist; the others are 0.
float4 load4(__global const float* from, int valid, int wide) {
  if (wide && valid >= 4) return *(__global const float4*)from;
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

__attribute__((reqd_work_group_size(WG_X, WG_Y, 1))) __kernel void sgemm_tile_register_vector(
    const int m, const int n, const int k, __global const float* a, const int lda,
    __global const float* b, const int ldb, __global float* c, const int ldc) {
  __local float tile_a[BUFFERS][A_WORDS] __attribute__((aligned(16)));
  __local float tile_b[BUFFERS][TILE_K * TILE_N] __attribute__((aligned(16)));
  const int x = get_local_id(0), y = get_local_id(1), item = y * WG_X + x;
  const int row0 = get_group_id(1) * TILE_M, col0 = get_group_id(0) * TILE_N;
  const int wide_a = lda % 4 == 0 && ((size_t)a & 15) == 0;
  const int wide_b = ldb % 4 == 0 && ((size_t)b & 15) == 0;
  const int wide_c = ldc % 4 == 0 && ((size_t)c & 15) == 0;

  float4 next_a[A_LOADS], next_b[B_LOADS];
#define A_ROW(q) ((item + (q)*ITEMS) / (TILE_K / 4))
#define A_K(q) ((item + (q)*ITEMS) % (TILE_K / 4) * 4)
#define B_ROW(q) ((item + (q)*ITEMS) / (TILE_N / 4))
#define B_COL(q) ((item + (q)*ITEMS) % (TILE_N / 4) * 4)
#define LOAD(k0)                                                             \
  for (int q = 0; q < A_LOADS; ++q)                                          \
    next_a[q] = load4(a + (size_t)(row0 + A_ROW(q)) * lda + (k0) + A_K(q),   \
                      row0 + A_ROW(q) < m ? k - (k0)-A_K(q) : 0, wide_a);    \
  for (int q = 0; q < B_LOADS; ++q)                                          \
    next_b[q] = load4(b + (size_t)((k0) + B_ROW(q)) * ldb + col0 + B_COL(q), \
                      (k0) + B_ROW(q) < k ? n - col0 - B_COL(q) : 0, wide_b);
#define STORE(buffer)                                \
  for (int q = 0; q < A_LOADS; ++q) {                \
    __local float* to_ = tile_a[buffer];             \
    to_[A_WORD(A_ROW(q), A_K(q) + 0)] = next_a[q].x; \
    to_[A_WORD(A_ROW(q), A_K(q) + 1)] = next_a[q].y; \
    to_[A_WORD(A_ROW(q), A_K(q) + 2)] = next_a[q].z; \
    to_[A_WORD(A_ROW(q), A_K(q) + 3)] = next_a[q].w; \
  }                                                  \
  for (int q = 0; q < B_LOADS; ++q)                  \
    *(__local float4*)&tile_b[buffer][B_ROW(q) * TILE_N + B_COL(q)] = next_b[q];

  float sum[ITEM_M][ITEM_N];
  for (int i = 0; i < ITEM_M; ++i)
    for (int j = 0; j < ITEM_N; ++j) sum[i][j] = 0;

  LOAD(0)
  STORE(0)
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k0 = 0; k0 < k; k0 += TILE_K) {
    const int buffer = k0 / TILE_K % BUFFERS;
    if (BUFFERS == 2 && k0 + TILE_K < k) {
      LOAD(k0 + TILE_K)
    }
#pragma unroll
    for (int s = 0; s < TILE_K; ++s) {
      float part_a[ITEM_M], part_b[ITEM_N];
#if TRANSPOSED
      for (int i = 0; i < ITEM_M; i += 4)
        vstore4(*(__local const float4*)&tile_a[buffer][A_WORD(4 * y + WG_Y * i, s)], 0,
                &part_a[i]);
#else
      for (int i = 0; i < ITEM_M; ++i)
        part_a[i] = tile_a[buffer][A_WORD(4 * (y + WG_Y * (i / 4)) + i % 4, s)];
#endif
      for (int j = 0; j < ITEM_N; j += 4)
        vstore4(*(__local const float4*)&tile_b[buffer][s * TILE_N + 4 * x + WG_X * j], 0,
                &part_b[j]);
      for (int i = 0; i < ITEM_M; ++i)
        for (int j = 0; j < ITEM_N; ++j) sum[i][j] = fma(part_a[i], part_b[j], sum[i][j]);
    }
    if (k0 + TILE_K < k) {
      if (BUFFERS == 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        LOAD(k0 + TILE_K)
      }
      STORE((buffer + 1) % BUFFERS)
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }

  for (int i = 0; i < ITEM_M; ++i) {
    const int row = row0 + 4 * (y + WG_Y * (i / 4)) + i % 4;
    for (int j = 0; j < ITEM_N; j += 4) {
      const int col = col0 + 4 * x + WG_X * j;
      if (row < m) store4(c + (size_t)row * ldc + col, vload4(j / 4, sum[i]), n - col, wide_c);
    }
  }
}
