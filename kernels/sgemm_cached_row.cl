// C = A·B, one work-item a row of C, with the row of A copied into a private array first, in the
// hope that "private" means registers. It cannot: k floats are far more than a work-item has, so
// the array goes to the device's slow memory (a GPU's spill space, a CPU thread's stack).
// Source: the OpenCL article's "l1l2"; whether the hope holds is measured in results/.
//
// Row-major, A m×k (lda), B k×n (ldb), C m×n (ldc); any m, n ≥ 1, k == ROW_LENGTH ≥ 1. C is
// written, never read. WG_X work-items compute TILE_M = WG_X whole rows.
#ifndef WG_X
#define WG_X 64
#endif
#ifndef WG_Y
#define WG_Y 1
#endif
#ifndef TILE_M
#define TILE_M WG_X
#endif
#ifndef ROW_LENGTH
#define ROW_LENGTH 1024
#endif
#if TILE_M != WG_X || WG_Y != 1
#error "a work-item computes a whole row: TILE_M must be WG_X, WG_Y 1"
#endif
#if ROW_LENGTH < 1
#error "ROW_LENGTH must be at least 1"
#endif

__kernel __attribute__((reqd_work_group_size(WG_X, 1, 1))) void sgemm_cached_row(
    int m, int n, int k, __global const float* restrict a, int lda,
    __global const float* restrict b, int ldb, __global float* restrict c, int ldc) {
  const int i = (int)get_global_id(0);
  if (i >= m) return;
  float row[ROW_LENGTH];
  for (int l = 0; l < k; ++l) row[l] = a[(size_t)i * lda + l];
  for (int j = 0; j < n; ++j) {
    float sum = 0.0f;
    for (int l = 0; l < k; ++l) sum += row[l] * b[(size_t)l * ldb + j];
    c[(size_t)i * ldc + j] = sum;
  }
}
