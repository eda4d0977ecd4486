// C = A·B, one work-item an element, with NDRange dimension 0 along the columns of C: neighbouring
// work-items read neighbouring elements of B and write neighbouring elements of C (coalesced), and
// share the element of A. The only difference from sgemm_base is which index is which.
//
// Row-major, A m×k (lda), B k×n (ldb), C m×n (ldc); any m, n, k ≥ 1. C is written, never read.
// WG_X × WG_Y work-items compute TILE_M × TILE_N elements, one each.
#ifndef WG_X
#define WG_X 16
#endif
#ifndef WG_Y
#define WG_Y 16
#endif
#ifndef TILE_M
#define TILE_M WG_Y
#endif
#ifndef TILE_N
#define TILE_N WG_X
#endif
#if TILE_M != WG_Y || TILE_N != WG_X
#error "a work-item computes one element: TILE_M must be WG_Y, TILE_N WG_X"
#endif

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, 1))) void sgemm_naive(
    int m, int n, int k, __global const float* restrict a, int lda,
    __global const float* restrict b, int ldb, __global float* restrict c, int ldc) {
  const int col = (int)get_global_id(0);
  const int row = (int)get_global_id(1);
  if (row >= m || col >= n) return;
  float sum = 0.0f;
  for (int l = 0; l < k; ++l) sum += a[(size_t)row * lda + l] * b[(size_t)l * ldb + col];
  c[(size_t)row * ldc + col] = sum;
}
