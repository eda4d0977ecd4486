// y = A x at the speed of memory: many wide, independent loads in flight.
//
// Idea. A is read once and nothing can be saved there; what counts is how many bytes are on their
// way at any time. A work-group takes TILE_M rows at once, so that every load of x serves TILE_M
// rows, and every work-item has TILE_M * UNROLL loads of 16 bytes under way before it needs the
// first of them.
//
// Row-major A m x k (lda); x is b (k values, ldb apart), y is c (m values, ldc apart); n == 1. WG_X
// is a power of two. Rows past m repeat the last one and are not stored. Without 16-byte alignment
// the same loop runs on single floats.
#ifndef WG_X
#define WG_X 256
#endif
#ifndef WG_Y
#define WG_Y 1
#endif
#ifndef TILE_M
#define TILE_M 4
#endif
#ifndef UNROLL
#define UNROLL 2
#endif
#if (WG_X & (WG_X - 1)) != 0
#error "WG_X must be a power of two"
#endif
#if UNROLL < 1
#error "UNROLL must be at least 1"
#endif

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, 1))) void sgemv_stream(
    const int m, const int n, const int k, __global const float* restrict a, const int lda,
    __global const float* restrict b, const int ldb, __global float* restrict c, const int ldc) {
  __local float partial[TILE_M][WG_X];
  const int x = (int)get_local_id(0);
  const int row0 = (int)get_group_id(0) * TILE_M;
  __global const float* line[TILE_M];
  float sum[TILE_M];
#pragma unroll
  for (int r = 0; r < TILE_M; ++r) {
    line[r] = a + (size_t)min(row0 + r, m - 1) * lda;
    sum[r] = 0;
  }

  int done = 0;  // values of x that the wide loop takes
  if (ldb == 1 && lda % 4 == 0 && (((size_t)a | (size_t)b) & 15) == 0) {
    const int step = 4 * WG_X * UNROLL;
    done = k / step * step;
    for (int l = 4 * x; l < done; l += step) {
      float4 part_x[UNROLL], part_a[UNROLL][TILE_M];
#pragma unroll
      for (int u = 0; u < UNROLL; ++u) {
#pragma unroll
        for (int r = 0; r < TILE_M; ++r)
          part_a[u][r] = *(__global const float4*)(line[r] + l + 4 * WG_X * u);
        part_x[u] = *(__global const float4*)(b + l + 4 * WG_X * u);
      }
#pragma unroll
      for (int u = 0; u < UNROLL; ++u)
#pragma unroll
        for (int r = 0; r < TILE_M; ++r) sum[r] += dot(part_a[u][r], part_x[u]);
    }
  }
  for (int l = done + x; l < k; l += WG_X) {
    const float value = b[(size_t)l * ldb];
#pragma unroll
    for (int r = 0; r < TILE_M; ++r) sum[r] = fma(line[r][l], value, sum[r]);
  }

#pragma unroll
  for (int r = 0; r < TILE_M; ++r) partial[r][x] = sum[r];
  for (int width = WG_X / 2; width > 0; width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (x < width) {
#pragma unroll
      for (int r = 0; r < TILE_M; ++r) partial[r][x] += partial[r][x + width];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (x < TILE_M && row0 + x < m) c[(size_t)(row0 + x) * ldc] = partial[x][0];
}
