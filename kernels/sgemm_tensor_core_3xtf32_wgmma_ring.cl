// C = A B, row-major float32, on Hopper's warpgroup matrix unit (wgmma, TF32 inputs) with float32
// accuracy, by warpgroups with roles.
//
// Idea. As in sgemm_tensor_core_3xtf32_wgmma, three products of TF32 heads and rests, C' = B' A',
// sums restarted every TILE_K steps of k. There, everybody waits for everybody once per tile. Here
// a warpgroup (128 work-items) does one thing: the first fills a ring of STAGES tiles, the second
// writes the rests of A, and each of the others multiplies 64 columns of C by all TILE_M rows and
// waits for nobody but the ring: while one adds, another keeps the matrix unit busy. mbarriers say
// that a slot's copies have landed, that it is full, that it is empty; setmaxnreg moves registers
// to those who multiply. Where tiles are few, SLICES groups of them share a tile of C: each takes
// every SLICES-th tile of k, and their sums meet in local memory.
//
// Splitting costs as much as loading, so it is cheap: the unit itself drops the bits that TF32 has
// not, hence the head of x is x, and the rest, x less its upper bits, is lengthened by 2^-11 of
// itself instead of being rounded: what the unit then drops is no longer all on one side.
//
// Copies are cp.async, with zero fill at the edges of k and n (rows past m repeat the last one and
// are not stored); any leading dimension is right, multiples of 4 floats are fast. Lines marked
// //@sm_90a are comments to the OpenCL compiler; retarget_ptx turns them into instructions. WG_X =
// 256 + 2 * TILE_N * SLICES <= 1024; TILE_N = 64 or 128; TILE_M = 32, 64 or 128; STAGES >= 3;
// (SLICES - 1) * TILE_N <= 32 * STAGES; LOCAL_BYTES <= 227 KiB.
// "tune:" lists what tools/tune.py tries; it also obeys the #error lines and LOCAL_BYTES.
#ifndef TILE_M
#define TILE_M 128  // tune: 32 64 128
#endif
#ifndef TILE_N
#define TILE_N 128  // tune: 64 128
#endif
#ifndef STAGES
#define STAGES 4  // tune: 3 4 5 6 7 8
#endif
#ifndef SLICES
#define SLICES 1  // tune: 1 2 3 4
#endif
#ifndef WG_X
#define WG_X (256 + 2 * TILE_N * SLICES)  // tune: 384 512 640 768
#endif
#ifndef WG_Y
#define WG_Y 1
#endif
#define TILE_K 32
#define PRODUCERS 256  // work-items that load and, after them, those that split
#define LOADERS 128
#define B_STRIDE (TILE_N + 8)  // floats; 8 mod 32: fragment loads meet every bank once
// A's tile and its rests, B's tile, three mbarriers.
#define LOCAL_BYTES (STAGES * (8 * TILE_M * TILE_K + 4 * TILE_K * B_STRIDE + 24))
#if TILE_M != 32 && TILE_M != 64 && TILE_M != 128
#error "TILE_M must be 32, 64 or 128, the matrix unit's shapes"
#endif
#if TILE_N != 64 && TILE_N != 128
#error "TILE_N must be 64 or 128"
#endif
#if SLICES < 1 || STAGES < 3
#error "SLICES must be at least 1, STAGES at least 3"
#endif
#if WG_X != PRODUCERS + 2 * TILE_N * SLICES || WG_X > 1024 || WG_Y != 1
#error "WG_X must be 256 + 2 * TILE_N * SLICES and at most 1024, WG_Y 1"
#endif
#if (SLICES - 1) * TILE_N > 32 * STAGES
#error "(SLICES - 1) * TILE_N must be at most 32 * STAGES, where the slices' sums meet"
#endif
#if LOCAL_BYTES > 227 * 1024
#error "a work-group of Hopper has no more than 227 KiB of local memory"
#endif

// The unit's sums are PTX registers named by us, s_ij with octal number ij: 8 per 16 rows.
#define EIGHT(r) r "0," r "1," r "2," r "3," r "4," r "5," r "6," r "7"
#if TILE_M == 32
#define SHAPE "m64n32k8"
#define SUMS EIGHT("s_0") "," EIGHT("s_1")
#elif TILE_M == 64
#define SHAPE "m64n64k8"
#define SUMS EIGHT("s_0") "," EIGHT("s_1") "," EIGHT("s_2") "," EIGHT("s_3")
#elif TILE_M == 128
#define SHAPE "m64n128k8"
#define SUMS                                                                                      \
  EIGHT("s_0")                                                                                    \
  "," EIGHT("s_1") "," EIGHT("s_2") "," EIGHT("s_3") "," EIGHT("s_4") "," EIGHT("s_5") "," EIGHT( \
      "s_6") "," EIGHT("s_7")
#endif

#define HOPPER(line) __asm__ volatile("//@sm_90a " line ::: "memory")

// sums += (or =, when !keep) fragment (64 columns of B by 8 k) * 8 k by TILE_M rows of A behind the
// descriptor.
#define MULTIPLY(f, descriptor, keep)                                                      \
  __asm__ volatile(                                                                        \
      "//@sm_90a {.reg .pred p; setp.ne.b32 p, %5, 0; wgmma.mma_async.sync.aligned." SHAPE \
      ".f32.tf32.tf32 {" SUMS "}, {%0,%1,%2,%3}, %4, p, 1, 1;}" ::"r"((f)[0]),             \
      "r"((f)[1]), "r"((f)[2]), "r"((f)[3]), "l"(descriptor), "r"(keep)                    \
      : "memory")

#if TILE_N * SLICES == 128
#define LESS_REGISTERS HOPPER("setmaxnreg.dec.sync.aligned.u32 56;");
#define MORE_REGISTERS HOPPER("setmaxnreg.inc.sync.aligned.u32 200;");
#else
#define LESS_REGISTERS
#define MORE_REGISTERS
#endif

// What the matrix unit drops when it reads x as TF32, biased against its being dropped from again.
float rest_of(float x) { return (x - as_float(as_uint(x) & 0xffffe000u)) * 1.00048828125f; }

// Starts the copy of 4 floats to local memory, of which the first `valid` exist; the others become
// 0. WIDE: the source lies at a multiple of 16 bytes.
#define COPY_WIDE(to, from, valid)                                                       \
  __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), \
                   "r"(4 * (valid))                                                      \
                   : "memory")
#define COPY_NARROW(to, from, valid)                                                    \
  for (int j_ = 0; j_ < 4; ++j_)                                                        \
  __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((to) + 4 * j_), \
                   "l"((from) + (j_ < (valid) ? j_ : 0)), "r"(j_ < (valid) ? 4 : 0)     \
                   : "memory")

// Waits until the phase of that parity of the mbarrier at this local address is over.
void await(uint barrier_address, uint parity) {
  uint over;
  do
    __asm__ volatile(
        "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, "
        "p;}"
        : "=r"(over)
        : "r"(barrier_address), "r"(parity)
        : "memory");
  while (!over);
}

void arrive(uint barrier_address) {
  __asm__ volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier_address) : "memory");
}

void start_barrier(uint barrier_address, uint arrivals) {
  __asm__ volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier_address), "r"(arrivals)
                   : "memory");
}

__attribute__((reqd_work_group_size(WG_X, WG_Y, 1))) __kernel void
sgemm_tensor_core_3xtf32_wgmma_ring(const int m, const int n, const int k, __global const float* a,
                                    const int lda, __global const float* b, const int ldb,
                                    __global float* c, const int ldc) {
  __local float tile_a[STAGES][TILE_M * TILE_K] __attribute__((aligned(1024)));
  __local float rest_a[STAGES][TILE_M * TILE_K] __attribute__((aligned(1024)));
  __local float tile_b[STAGES][TILE_K * B_STRIDE] __attribute__((aligned(1024)));

  // mbarriers of each slot: its copies have landed, it is full (split too), it is empty.
  __local ulong landed[STAGES], full[STAGES], empty[STAGES];
#define PHASE(barriers, tile) ((uint)(size_t)&barriers[(tile) % STAGES])
#define PARITY(tile) ((tile) / STAGES % 2)

  const int item = get_local_id(0) % LOADERS;
  const int lane = get_local_id(0) % 32;
  // Of the warps that multiply: which 16 columns of the tile, and which slice of k.
  const int multiplier = (int)get_local_id(0) / 32 - PRODUCERS / 32;
  const int warp = multiplier % (TILE_N / 16), slice = multiplier / (TILE_N / 16);
  const int aligned = ((lda | ldb) % 4 == 0) && ((((size_t)a | (size_t)b) & 15) == 0);

  const int row0 = get_group_id(1) * TILE_M, col0 = get_group_id(0) * TILE_N;

  // This item's chunks of 4 floats: A rows a_row + i * A_STEP, B rows b_row + i * B_STEP.
  const int a_row = item / 8, a_k = item % 8 * 4;
  const int b_row = item / (TILE_N / 4), b_col = item % (TILE_N / 4) * 4;
#define A_CHUNKS (TILE_M * 8 / LOADERS)
#define A_STEP (LOADERS / 8)
#define B_CHUNKS (TILE_K * TILE_N / 4 / LOADERS)
#define B_STEP (4 * LOADERS / TILE_N)
  const int a_slot = a_row * TILE_K + (a_k ^ (a_row % 8 * 4));  // 128-byte swizzle
  const int b_slot = b_row * B_STRIDE + b_col;
  const int b_valid = clamp(n - col0 - b_col, 0, 4);
  __global const float* b_from = b + (b_valid > 0 ? col0 + b_col : 0);
  const uint a_local = (uint)(size_t)&tile_a[0][0] + 4 * a_slot;
  const uint b_local = (uint)(size_t)&tile_b[0][0] + 4 * b_slot;

#define LOAD_WITH(COPY, tile)                                                        \
  {                                                                                  \
    const int slot_ = (tile) % STAGES, k0_ = (tile)*TILE_K;                          \
    const int a_valid_ = clamp(k - k0_ - a_k, 0, 4);                                 \
    __global const float* from_ = a + (a_valid_ > 0 ? k0_ + a_k : 0);                \
    _Pragma("unroll") for (int i = 0; i < A_CHUNKS; ++i)                             \
        COPY(a_local + 4 * (slot_ * TILE_M * TILE_K + i * A_STEP * TILE_K),          \
             from_ + (size_t)min(row0 + a_row + i * A_STEP, m - 1) * lda, a_valid_); \
    _Pragma("unroll") for (int i = 0; i < B_CHUNKS; ++i) {                           \
      const int row_ = k0_ + b_row + i * B_STEP;                                     \
      COPY(b_local + 4 * (slot_ * TILE_K * B_STRIDE + i * B_STEP * B_STRIDE),        \
           b_from + (size_t)min(row_, k - 1) * ldb, row_ < k ? b_valid : 0);         \
    }                                                                                \
  }
#define LOAD(tile) \
  if (aligned) LOAD_WITH(COPY_WIDE, tile) else LOAD_WITH(COPY_NARROW, tile)

  // The rests of A, in the order of the copies.
#define SPLIT_A(tile)                                                                   \
  _Pragma("unroll") for (int i = 0; i < A_CHUNKS; ++i) {                                \
    const float4 x_ =                                                                   \
        *(__local const float4*)&tile_a[(tile) % STAGES][a_slot + i * A_STEP * TILE_K]; \
    *(__local float4*)&rest_a[(tile) % STAGES][a_slot + i * A_STEP * TILE_K] =          \
        (float4)(rest_of(x_.x), rest_of(x_.y), rest_of(x_.z), rest_of(x_.w));           \
  }

  // B' fragments of one tile: matrix rows lane/4 and lane/4 + 8 are the adjacent columns
  // fragment_col and + 1.
  const int fragment_col = warp * 16 + lane / 4 * 2;
  uint head[2][4][4], rest[2][4][4];
#define SPLIT_B(tile, buffer)                                                                   \
  _Pragma("unroll") for (int s = 0; s < 4; ++s) _Pragma("unroll") for (int h = 0; h < 2; ++h) { \
    const float2 x_ =                                                                           \
        *(__local const float2*)&tile_b[(tile) % STAGES]                                        \
                                       [(8 * s + 4 * h + lane % 4) * B_STRIDE + fragment_col];  \
    head[buffer][s][2 * h] = as_uint(x_.x);                                                     \
    head[buffer][s][2 * h + 1] = as_uint(x_.y);                                                 \
    rest[buffer][s][2 * h] = as_uint(rest_of(x_.x));                                            \
    rest[buffer][s][2 * h + 1] = as_uint(rest_of(x_.y));                                        \
  }

  // Descriptors: address / 16, 8 rows of 128 bytes = 1024 bytes apart, 128-byte swizzle.
  const ulong form = ((ulong)1 << 62) | ((ulong)(1024 / 16) << 32) | ((ulong)1 << 16);
  const ulong tile_form = form | (((uint)(size_t)&tile_a[0][0] & 0x3ffff) >> 4);
  const ulong rest_form = form | (((uint)(size_t)&rest_a[0][0] & 0x3ffff) >> 4);
#define AT(base, tile, s) ((base) + (uint)((tile) % STAGES * TILE_M * 8 + (s)*2))

#define PRODUCT(tile, buffer)                                 \
  HOPPER("wgmma.fence.sync.aligned;");                        \
  _Pragma("unroll") for (int s = 0; s < 4; ++s) {             \
    MULTIPLY(rest[buffer][s], AT(tile_form, tile, s), s > 0); \
    MULTIPLY(head[buffer][s], AT(rest_form, tile, s), 1);     \
  }                                                           \
  _Pragma("unroll") for (int s = 0; s < 4; ++s)               \
      MULTIPLY(head[buffer][s], AT(tile_form, tile, s), 1);   \
  HOPPER("wgmma.commit_group.sync.aligned;");

  // Tiles past k are zero; each slice takes an even number, so that its buffers alternate.
  const int tiles = (k + 2 * TILE_K * SLICES - 1) / (2 * TILE_K * SLICES) * 2 * SLICES;
  if (get_local_id(0) == 0)
    for (int s = 0; s < STAGES; ++s) {
      start_barrier(PHASE(landed, s), LOADERS);
      start_barrier(PHASE(full, s), PRODUCERS - LOADERS);
      start_barrier(PHASE(empty, s), TILE_N / 16);
    }
  barrier(CLK_LOCAL_MEM_FENCE);

  if (get_local_id(0) < PRODUCERS) {
    LESS_REGISTERS
    if (get_local_id(0) < LOADERS) {
#pragma unroll 1
      for (int t = 0; t < tiles; ++t) {
        if (t >= STAGES) await(PHASE(empty, t), 1 - PARITY(t));
        LOAD(t)
        __asm__ volatile(
            "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(PHASE(landed, t))
            : "memory");
      }
      __asm__ volatile("cp.async.wait_all;" ::: "memory");
    } else {
#pragma unroll 1
      for (int t = 0; t < tiles; ++t) {
        await(PHASE(landed, t), PARITY(t));
        SPLIT_A(t)
        __asm__ volatile("fence.proxy.async.shared::cta;" ::: "memory");
        arrive(PHASE(full, t));
      }
    }
    return;
  }
  MORE_REGISTERS
  __asm__ volatile(".reg .f32 " SUMS ";");
  float total[TILE_M / 2];
#pragma unroll
  for (int i = 0; i < TILE_M / 2; ++i) total[i] = 0;

    // One tile: while the matrix unit works on it, the fragments of this slice's next one are made
    // ready.
#define STEP(tile, buffer)                                                 \
  PRODUCT(tile, buffer)                                                    \
  if ((tile) + SLICES < tiles) {                                           \
    await(PHASE(full, (tile) + SLICES), PARITY((tile) + SLICES));          \
    SPLIT_B((tile) + SLICES, 1 - buffer)                                   \
  }                                                                        \
  HOPPER("wgmma.wait_group.sync.aligned 0;");                              \
  if (lane == 0) arrive(PHASE(empty, tile));                               \
  _Pragma("unroll") for (int i = 0; i < TILE_M / 2; ++i) __asm__ volatile( \
      "add.f32 %0, %0, s_%1%2;" : "+f"(total[i]) : "n"(i / 8), "n"(i % 8));

  await(PHASE(full, slice), 0);
  SPLIT_B(slice, 0)
#pragma unroll 1
  for (int t = slice; t < tiles; t += 2 * SLICES) {
    STEP(t, 0)
    STEP(t + SLICES, 1)
  }

#if SLICES > 1
  // The slices' sums meet where A was: (SLICES - 1) * TILE_N <= 32 * STAGES.
  __local float* meeting = &tile_a[0][0] + (int)get_local_id(0) % (2 * TILE_N);
  __asm__ volatile("bar.sync 1, %0;" ::"n"(2 * TILE_N * SLICES) : "memory");
  if (slice > 0) {
#pragma unroll
    for (int i = 0; i < TILE_M / 2; ++i)
      meeting[((slice - 1) * (TILE_M / 2) + i) * (2 * TILE_N)] = total[i];
  }
  __asm__ volatile("bar.sync 1, %0;" ::"n"(2 * TILE_N * SLICES) : "memory");
  if (slice > 0) return;
#pragma unroll
  for (int s = 0; s < SLICES - 1; ++s)
#pragma unroll
    for (int i = 0; i < TILE_M / 2; ++i) total[i] += meeting[(s * (TILE_M / 2) + i) * (2 * TILE_N)];
#endif

  // Sum 4 j + {0, 1, 2, 3}: row 8 j + lane % 4 * 2 + {0, 1, 0, 1}, column fragment_col + {0, 0, 1,
  // 1}.
  const int col = col0 + fragment_col;
  const int pairs = ldc % 2 == 0 && ((size_t)c & 7) == 0 && col + 1 < n;
#pragma unroll
  for (int i = 0; i < TILE_M / 4; ++i) {
    const int row = row0 + i / 2 * 8 + lane % 4 * 2 + i % 2;
    const float2 x = (float2)(total[i / 2 * 4 + i % 2], total[i / 2 * 4 + i % 2 + 2]);
    __global float* to = c + (size_t)row * ldc + col;
    if (row < m && pairs) {
      *(__global float2*)to = x;
    } else if (row < m) {
      if (col < n) to[0] = x.x;
      if (col + 1 < n) to[1] = x.y;
    }
  }
}
