// C = A·B with a register block of OUT×OUT elements a work-item and no local memory: OUT values of
// A and OUT of B feed OUT² multiply-adds, so loads per multiply-add fall from 2 to 2/OUT. Source:
// the CPU/GPU chapter's 4×4 block.
//
// Row-major, A m×k (lda), B k×n (ldb), C m×n (ldc); any m, n, k ≥ 1. C is written, never read.
// WG_X × WG_Y work-items compute TILE_M × TILE_N elements; TILE_M / WG_Y == TILE_N / WG_X == OUT.
// "tune:" lists what tools/tune.py tries; it also obeys the #error lines and LOCAL_BYTES.
#ifndef WG_X
#define WG_X 8  // tune: 4 8 16 32
#endif
#ifndef WG_Y
#define WG_Y 8  // tune: 4 8 16 32
#endif
#ifndef TILE_M
#define TILE_M 32  // tune: 16 32 64 128
#endif
#ifndef TILE_N
#define TILE_N 32  // tune: 16 32 64 128
#endif
#define OUT (TILE_N / WG_X)
#if OUT * WG_X != TILE_N || OUT * WG_Y != TILE_M
#error "TILE_N / WG_X and TILE_M / WG_Y must be the same whole number"
#endif
#if OUT > 16
#error "more than 256 sums of a work-item fit no device's registers"
#endif

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, 1))) void sgemm_block(
    int m, int n, int k, __global const float* restrict a, int lda,
    __global const float* restrict b, int ldb, __global float* restrict c, int ldc) {
  const int row0 = (int)get_global_id(1) * OUT;
  const int col0 = (int)get_global_id(0) * OUT;
  float sum[OUT][OUT];
  for (int i = 0; i < OUT; ++i)
    for (int j = 0; j < OUT; ++j) sum[i][j] = 0.0f;
  // Rows and columns outside C are read at the last valid index instead: no branch in the loop,
  // and the surplus sums are never stored.
  for (int l = 0; l < k; ++l) {
    float va[OUT], vb[OUT];
    for (int i = 0; i < OUT; ++i) va[i] = a[(size_t)min(row0 + i, m - 1) * lda + l];
    for (int j = 0; j < OUT; ++j) vb[j] = b[(size_t)l * ldb + min(col0 + j, n - 1)];
    for (int i = 0; i < OUT; ++i)
      for (int j = 0; j < OUT; ++j) sum[i][j] += va[i] * vb[j];
  }
  for (int i = 0; i < OUT; ++i)
    for (int j = 0; j < OUT; ++j)
      if (row0 + i < m && col0 + j < n) c[(size_t)(row0 + i) * ldc + col0 + j] = sum[i][j];
}
