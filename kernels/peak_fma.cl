// The most multiply-adds a device can do: nothing but independent chains in registers, so that
// neither memory nor latency has a say. Every x = x*scale + shift with scale 0.5 and shift 1 ends
// at exactly 2, so the result can be checked: 2*CHAINS in every element.
//
// out: global size × WIDTH floats. A work-item does rounds*UNROLL multiply-adds on each of its
// CHAINS vectors of WIDTH floats (1 on GPUs; a CPU's register width, which its compiler would not
// find by itself inside the loop over rounds).
#ifndef WIDTH
#define WIDTH 1
#endif
#ifndef CHAINS
#define CHAINS 8
#endif
#ifndef UNROLL
#define UNROLL 16
#endif
#define PASTE(a, b) a##b
#define VECTOR(width) PASTE(float, width)
#if WIDTH == 1
typedef float floats;
#else
typedef VECTOR(WIDTH) floats;
#endif

__kernel void peak_fma(int rounds, float scale, float shift, __global floats* restrict out) {
  const size_t item = get_global_id(0);
  floats x[CHAINS];
  for (int c = 0; c < CHAINS; ++c) x[c] = (floats)((float)(item % 7 + c));
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int u = 0; u < UNROLL; ++u)
#pragma unroll
      for (int c = 0; c < CHAINS; ++c) x[c] = x[c] * scale + shift;
  }
  floats sum = x[0];
  for (int c = 1; c < CHAINS; ++c) sum += x[c];
  out[item] = sum;
}
