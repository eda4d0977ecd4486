// C = A·B over square tiles in local memory: a work-group fetches a T×T tile of A and of B once,
// and each element is then read T times from local memory instead of T times from global memory.
// Source: the tiled product of every GPU course; the OpenCL article's "tile".
//
// Row-major, A m×k (lda), B k×n (ldb), C m×n (ldc); any m, n, k ≥ 1. C is written, never read.
// T×T work-items compute T×T elements, one each (T = WG_X = WG_Y = TILE_M = TILE_N).
// A work-item outside C stores zeros into the tiles and reaches every barrier like the others.
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
#define T WG_X
#if WG_Y != T || TILE_M != T || TILE_N != T
#error "tiles are square, an element a work-item: WG_X, WG_Y, TILE_M and TILE_N must be the same"
#endif

__kernel __attribute__((reqd_work_group_size(T, T, 1))) void sgemm_tile(
    int m, int n, int k, __global const float* restrict a, int lda,
    __global const float* restrict b, int ldb, __global float* restrict c, int ldc) {
  __local float tile_a[T][T];
  __local float tile_b[T][T];
  const int x = (int)get_local_id(0);
  const int y = (int)get_local_id(1);
  const int row = (int)get_global_id(1);
  const int col = (int)get_global_id(0);
  float sum = 0.0f;
  for (int l0 = 0; l0 < k; l0 += T) {
    tile_a[y][x] = row < m && l0 + x < k ? a[(size_t)row * lda + l0 + x] : 0.0f;
    tile_b[y][x] = l0 + y < k && col < n ? b[(size_t)(l0 + y) * ldb + col] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int l = 0; l < T; ++l) sum += tile_a[y][l] * tile_b[l][x];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (row < m && col < n) c[(size_t)row * ldc + col] = sum;
}
