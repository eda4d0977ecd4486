// C = A·B, one work-item a row of C: fewer, longer work-items, as one would hand rows to threads.
// On a GPU that leaves most of the device idle (m work-items in all) and every access strided.
// Source: the OpenCL article's "row".
//
// Row-major, A m×k (lda), B k×n (ldb), C m×n (ldc); any m, n, k ≥ 1. C is written, never read.
// WG_X work-items compute TILE_M = WG_X whole rows.
#ifndef WG_X
#define WG_X 64
#endif
#ifndef WG_Y
#define WG_Y 1
#endif
#ifndef TILE_M
#define TILE_M WG_X
#endif
#if TILE_M != WG_X || WG_Y != 1
#error "a work-item computes a whole row: TILE_M must be WG_X, WG_Y 1"
#endif

__kernel __attribute__((reqd_work_group_size(WG_X, 1, 1))) void sgemm_row(
    int m, int n, int k, __global const float* restrict a, int lda,
    __global const float* restrict b, int ldb, __global float* restrict c, int ldc) {
  const int i = (int)get_global_id(0);
  if (i >= m) return;
  for (int j = 0; j < n; ++j) {
    float sum = 0.0f;
    for (int l = 0; l < k; ++l) sum += a[(size_t)i * lda + l] * b[(size_t)l * ldb + j];
    c[(size_t)i * ldc + j] = sum;
  }
}
