// The most bytes a device can load from local memory: every work-item reads vectors side by side
// with its neighbours (no bank conflicts) and adds them up. The tile holds ones, so the result can
// be checked: rounds*LOADS in every element. Register-blocked products live below this roof: their
// loads per multiply-add come from here.
//
// out: global size × WIDTH floats. The work-group may have any size up to SPAN.
#ifndef WIDTH
#define WIDTH 4
#endif
#define PASTE(a, b) a##b
#define VECTOR(width) PASTE(float, width)
typedef VECTOR(WIDTH) floats;
#define SPAN 256
#define LOADS 16
#define SUMS 4

__kernel void peak_local_memory(int rounds, __global floats* restrict out) {
  __local floats tile[2 * SPAN];
  const int x = (int)get_local_id(0);
  for (int i = x; i < 2 * SPAN; i += (int)get_local_size(0)) tile[i] = (floats)(1.0f);
  barrier(CLK_LOCAL_MEM_FENCE);
  floats sum[SUMS];
  for (int s = 0; s < SUMS; ++s) sum[s] = (floats)(0.0f);
  // The start moves every round, so that no load can be taken out of the loop.
  int start = x;
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int i = 0; i < LOADS; ++i) sum[i % SUMS] += tile[start + i * (SPAN / LOADS)];
    start = (start + 1) % SPAN;
  }
  out[get_global_id(0)] = sum[0] + sum[1] + sum[2] + sum[3];
}
