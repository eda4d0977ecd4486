// y = A·x, one work-group a row: its work-items read the row side by side (coalesced), and their
// partial sums meet in a tree in local memory.
//
// Row-major A m×k (lda); x is b (k values, ldb apart), y is c (m values, ldc apart); n == 1.
// WG_X work-items (a power of two) compute TILE_M = 1 row. y is written, never read.
#ifndef WG_X
#define WG_X 128
#endif
#ifndef TILE_M
#define TILE_M 1
#endif
#if (WG_X & (WG_X - 1)) != 0
#error "WG_X must be a power of two"
#endif
#if TILE_M != 1
#error "a work-group computes one row: TILE_M must be 1"
#endif

__kernel __attribute__((reqd_work_group_size(WG_X, 1, 1))) void sgemv_reduce(
    int m, int n, int k, __global const float* restrict a, int lda,
    __global const float* restrict b, int ldb, __global float* restrict c, int ldc) {
  __local float partial[WG_X];
  const int x = (int)get_local_id(0);
  const size_t row = get_group_id(0);
  float sum = 0.0f;
  for (int l = x; l < k; l += WG_X) sum += a[row * lda + l] * b[(size_t)l * ldb];
  partial[x] = sum;
  for (int half_size = WG_X / 2; half_size > 0; half_size /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (x < half_size) partial[x] += partial[x + half_size];
  }
  if (x == 0) c[row * ldc] = partial[0];
}
