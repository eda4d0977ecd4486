// The most bytes a device can move: a plain copy. Every work-item has LOADS loads of 16 bytes in
// flight before its first store, neighbours read neighbouring addresses, and there are as many
// work-groups as there is data, so that no unit waits for a last one.
//
// from, to: global size × LOADS float4, no remainder.
#ifndef LOADS
#define LOADS 4
#endif

__kernel void peak_copy(__global const float4* restrict from, __global float4* restrict to) {
  const size_t step = get_local_size(0);
  const size_t first = get_group_id(0) * step * LOADS + get_local_id(0);
  float4 value[LOADS];
#pragma unroll
  for (int i = 0; i < LOADS; ++i) value[i] = from[first + i * step];
#pragma unroll
  for (int i = 0; i < LOADS; ++i) to[first + i * step] = value[i];
}
