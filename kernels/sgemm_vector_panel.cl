// C = A B, row-major float32, for devices whose work-items are CPU threads: one work-item, wide
// vectors, packed panels.
//
// Idea. On a CPU a work-group runs on one thread, so many work-items only cost loops and barriers.
// Here a work-group is one work-item that computes TILE_M x TILE_N of C like a BLAS library's inner
// kernel: a panel of B, TILE_K x TILE_N, is packed into local memory (contiguous, cache-sized), and
// blocks of ROWS rows by two vectors of 16 stay in registers while k runs along it. The block's
// sums rest in local memory between panels; C is written once.
//
// TILE_N == 32; TILE_M % ROWS == 0. Local memory: 4 * TILE_N * (TILE_M + TILE_K) bytes.
// "tune:" lists what tools/tune.py tries; it also obeys the #error lines and LOCAL_BYTES.
#ifndef TILE_M
#define TILE_M 128  // tune: 32 48 64 96 120 128 192 240 256
#endif
#ifndef TILE_N
#define TILE_N 32
#endif
#ifndef TILE_K
#define TILE_K 256  // tune: 64 128 256 512
#endif
#ifndef ROWS
#define ROWS 8  // tune: 4 6 8 10 12
#endif
#ifndef WG_X
#define WG_X 1
#endif
#ifndef WG_Y
#define WG_Y 1
#endif
#define LOCAL_BYTES (4 * TILE_N * (TILE_M + TILE_K))
#if TILE_K < 1 || ROWS < 1
#error "TILE_K and ROWS must be at least 1"
#endif
#if TILE_N != 32 || WG_X != 1 || WG_Y != 1
#error "a work-group is one work-item with rows of two vectors of 16: TILE_N must be 32"
#endif
#if TILE_M % ROWS != 0
#error "TILE_M must be a multiple of ROWS"
#endif

__attribute__((reqd_work_group_size(WG_X, WG_Y, 1))) __kernel void sgemm_vector_panel(
    const int m, const int n, const int k, __global const float* restrict a, const int lda,
    __global const float* restrict b, const int ldb, __global float* restrict c, const int ldc) {
  __local float16 panel[TILE_K][2];
  __local float16 sums[TILE_M][2];
  const int row0 = (int)get_group_id(1) * TILE_M, col0 = (int)get_group_id(0) * TILE_N;
  const int rows = min(TILE_M, m - row0), cols = min(TILE_N, n - col0);

  for (int i = 0; i < TILE_M; ++i) sums[i][0] = sums[i][1] = 0;
  for (int k0 = 0; k0 < k; k0 += TILE_K) {
    const int depth = min(TILE_K, k - k0);
    for (int s = 0; s < depth; ++s) {
      __global const float* from = b + (size_t)(k0 + s) * ldb + col0;
      if (cols == TILE_N) {
        panel[s][0] = vload16(0, from);
        panel[s][1] = vload16(1, from);
      } else {
        __local float* to = (__local float*)panel[s];
        for (int j = 0; j < TILE_N; ++j) to[j] = j < cols ? from[j] : 0;
      }
    }
    for (int i0 = 0; i0 < rows; i0 += ROWS) {
      __global const float* line[ROWS];
      float16 sum[ROWS][2];
#pragma unroll
      for (int i = 0; i < ROWS; ++i) {
        line[i] = a + (size_t)min(row0 + i0 + i, m - 1) * lda + k0;
        sum[i][0] = sums[i0 + i][0];
        sum[i][1] = sums[i0 + i][1];
      }
      for (int s = 0; s < depth; ++s) {
        const float16 b0 = panel[s][0], b1 = panel[s][1];
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
          const float16 value = (float16)(line[i][s]);
          sum[i][0] = fma(value, b0, sum[i][0]);
          sum[i][1] = fma(value, b1, sum[i][1]);
        }
      }
#pragma unroll
      for (int i = 0; i < ROWS; ++i) {
        sums[i0 + i][0] = sum[i][0];
        sums[i0 + i][1] = sum[i][1];
      }
    }
  }

  for (int i = 0; i < rows; ++i) {
    __global float* to = c + (size_t)(row0 + i) * ldc + col0;
    if (cols == TILE_N) {
      vstore16(sums[i][0], 0, to);
      vstore16(sums[i][1], 1, to);
    } else {
      __local const float* from = (__local const float*)sums[i];
      for (int j = 0; j < cols; ++j) to[j] = from[j];
    }
  }
}
