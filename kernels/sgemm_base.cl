// C = A·B, one work-item an element, with NDRange dimension 0 along the rows of C.
// That is the first thing everybody writes, and the wrong way round for a GPU: neighbouring
// work-items then read and write addresses a whole row apart. Source: the OpenCL article's "base".
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
#define TILE_M WG_X
#endif
#ifndef TILE_N
#define TILE_N WG_Y
#endif
#if TILE_M != WG_X || TILE_N != WG_Y
#error "a work-item computes one element: TILE_M must be WG_X, TILE_N WG_Y"
#endif

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, 1))) void sgemm_base(
    int m, int n, int k, __global const float* restrict a, int lda,
    __global const float* restrict b, int ldb, __global float* restrict c, int ldc) {
  const int i = (int)get_global_id(0);
  const int j = (int)get_global_id(1);
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int l = 0; l < k; ++l) sum += a[(size_t)i * lda + l] * b[(size_t)l * ldb + j];
  c[(size_t)i * ldc + j] = sum;
}
