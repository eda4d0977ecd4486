// y = A·x, one work-group a row as in sgemv_reduce, with four values a load: a quarter of the load
// instructions, and more bytes in flight for each work-item.
//
// Row-major A m×k (lda); x is b (k values, ldb apart), y is c (m values, ldc apart); n == 1.
// WG_X work-items (a power of two) compute TILE_M = 1 row. y is written, never read. vload4 asks
// for no more than float alignment, so any lda will do; x must be contiguous for it (ldb == 1).
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

__kernel __attribute__((reqd_work_group_size(WG_X, 1, 1))) void sgemv_vector(
    int m, int n, int k, __global const float* restrict a, int lda,
    __global const float* restrict b, int ldb, __global float* restrict c, int ldc) {
  __local float partial[WG_X];
  const int x = (int)get_local_id(0);
  const size_t row = get_group_id(0);
  __global const float* const line = a + row * lda;
  const int whole = ldb == 1 ? k / 4 : 0;
  float4 sum4 = (float4)(0.0f);
  for (int l = x; l < whole; l += WG_X) sum4 += vload4(l, line) * vload4(l, b);
  float sum = sum4.x + sum4.y + sum4.z + sum4.w;
  for (int l = 4 * whole + x; l < k; l += WG_X) sum += line[l] * b[(size_t)l * ldb];
  partial[x] = sum;
  for (int half_size = WG_X / 2; half_size > 0; half_size /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (x < half_size) partial[x] += partial[x + half_size];
  }
  if (x == 0) c[row * ldc] = partial[0];
}
