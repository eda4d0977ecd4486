// y = A·x, one work-item a row. Simple, and strided: neighbouring work-items read A a row apart.
//
// Row-major A m×k (lda); x is b (k values, ldb apart), y is c (m values, ldc apart); n == 1.
// WG_X work-items compute TILE_M = WG_X rows. y is written, never read.
#ifndef WG_X
#define WG_X 64
#endif
#ifndef TILE_M
#define TILE_M WG_X
#endif
#if TILE_M != WG_X
#error "a work-item computes one row: TILE_M must be WG_X"
#endif

__kernel __attribute__((reqd_work_group_size(WG_X, 1, 1))) void sgemv_naive(
    int m, int n, int k, __global const float* restrict a, int lda,
    __global const float* restrict b, int ldb, __global float* restrict c, int ldc) {
  const int i = (int)get_global_id(0);
  if (i >= m) return;
  float sum = 0.0f;
  for (int l = 0; l < k; ++l) sum += a[(size_t)i * lda + l] * b[(size_t)l * ldb];
  c[(size_t)i * ldc] = sum;
}
