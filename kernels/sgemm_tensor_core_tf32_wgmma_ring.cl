// C = A B, row-major float32, on Hopper's warpgroup matrix unit (wgmma): inputs read as TF32 (11
// bits), float32 sums.
//
// Idea. wgmma wants both TF32 operands with k contiguous. Row-major A has that, row-major B does
// not; so the kernel computes C' = B' A': B' is the register operand, loaded in any order we like,
// and A is the local-memory operand, in the unit's 128-byte swizzle. While the unit works on one
// tile, the fragments of the next are loaded into a second set of registers.
//
// Warpgroups (128 work-items) have roles. The first only fills the ring of STAGES tiles; each of
// the others owns 64 columns of C and all TILE_M rows of the tile, and waits for nobody but the
// ring: while one adds, another keeps the matrix unit busy. Full and empty slots are announced
// through mbarriers. setmaxnreg moves registers to where they are needed. Copies are cp.async, with
// zero fill at the edges of k and n (rows past m repeat the last one and are not stored); any
// leading dimension is right, multiples of 4 floats are fast.
// Lines marked //@sm_90a are comments to the OpenCL compiler; retarget_ptx turns them into
// instructions. WG_X = 128 + 2 * TILE_N; TILE_N = 64 * (warpgroups that multiply, 1, 2 or 4);
// STAGES >= 3.
#ifndef TILE_M
#define TILE_M 256  // 64, 128, 256
#endif
#ifndef TILE_N
#define TILE_N 128  // 64 * warpgroups
#endif
#ifndef STAGES
#define STAGES 4  // >= 3
#endif
#ifndef WG_X
#define WG_X (128 + 2 * TILE_N)
#endif
#ifndef WG_Y
#define WG_Y 1
#endif
#define TILE_K 32
#define LOADERS 128
#define HALF_M (TILE_M / 2)
#define B_STRIDE (TILE_N + 8)  // floats; 8 mod 32: fragment loads meet every bank once
#if TILE_M != 64 && TILE_M != 128 && TILE_M != 256
#error "TILE_M must be 64, 128 or 256, the matrix unit's shapes"
#endif
#if TILE_N != 64 && TILE_N != 128 && TILE_N != 256
#error "TILE_N must be 64, 128 or 256"
#endif
#if WG_X != LOADERS + 2 * TILE_N || WG_Y != 1
#error "WG_X must be 128 + 2 * TILE_N, WG_Y 1"
#endif
#if STAGES < 3
#error "STAGES must be at least 3"
#endif

// The unit's sums are PTX registers named by us, sH_ij with half H and octal number ij: 8 per 16
// rows of the half.
#define EIGHT(r) r "0," r "1," r "2," r "3," r "4," r "5," r "6," r "7"
#if HALF_M == 32
#define SHAPE "m64n32k8"
#define SUMS(r) EIGHT(r "0") "," EIGHT(r "1")
#elif HALF_M == 64
#define SHAPE "m64n64k8"
#define SUMS(r) EIGHT(r "0") "," EIGHT(r "1") "," EIGHT(r "2") "," EIGHT(r "3")
#elif HALF_M == 128
#define SHAPE "m64n128k8"
#define SUMS(r)                                                                                   \
  EIGHT(r "0")                                                                                    \
  "," EIGHT(r "1") "," EIGHT(r "2") "," EIGHT(r "3") "," EIGHT(r "4") "," EIGHT(r "5") "," EIGHT( \
      r "6") "," EIGHT(r "7")
#endif

#define HOPPER(line) __asm__ volatile("//@sm_90a " line ::: "memory")

// sums of a half += (or =, when !keep) fragment (64 columns of B by 8 k) * 8 k by HALF_M rows of A
// behind the descriptor.
#define MULTIPLY(half, f, descriptor, keep)                                                   \
  __asm__ volatile(                                                                           \
      "//@sm_90a {.reg .pred p; setp.ne.b32 p, %5, 0; wgmma.mma_async.sync.aligned." SHAPE    \
      ".f32.tf32.tf32 {" SUMS("s" #half "_") "}, {%0,%1,%2,%3}, %4, p, 1, 1;}" ::"r"((f)[0]), \
      "r"((f)[1]), "r"((f)[2]), "r"((f)[3]), "l"(descriptor), "r"(keep)                       \
      : "memory")

#if TILE_N == 128
#define LESS_REGISTERS HOPPER("setmaxnreg.dec.sync.aligned.u32 72;");
#define MORE_REGISTERS HOPPER("setmaxnreg.inc.sync.aligned.u32 216;");
#else
#define LESS_REGISTERS
#define MORE_REGISTERS
#endif

// The unit drops the bits of both operands that TF32 has not. x lengthened by 2^-11 of itself is
// then right on average, and unchanged if x is a TF32 number; rounding costs four instructions.
uint lengthened(float x) { return as_uint(x * 1.00048828125f); }

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
sgemm_tensor_core_tf32_wgmma_ring(const int m, const int n, const int k, __global const float* a,
                                  const int lda, __global const float* b, const int ldb,
                                  __global float* c, const int ldc) {
  __local float tile_a[STAGES][TILE_M * TILE_K] __attribute__((aligned(1024)));
  __local float tile_b[STAGES][TILE_K * B_STRIDE] __attribute__((aligned(1024)));

  // mbarriers of each slot: its copies have landed, it is empty.
  __local ulong landed[STAGES], empty[STAGES];
#define PHASE(barriers, tile) ((uint)(size_t)&barriers[(tile) % STAGES])
#define PARITY(tile) ((tile) / STAGES % 2)

  const int item = get_local_id(0) % LOADERS;
  const int lane = item % 32,
            warp = (int)get_local_id(0) / 32 - LOADERS / 32;  // of those that multiply
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

  // B' fragments of one tile: matrix rows lane/4 and lane/4 + 8 are the adjacent columns
  // fragment_col and + 1.
  const int fragment_col = warp * 16 + lane / 4 * 2;
  uint fragments[2][4][4];
#define LOAD_FRAGMENTS(tile, buffer)                                                            \
  _Pragma("unroll") for (int s = 0; s < 4; ++s) _Pragma("unroll") for (int h = 0; h < 2; ++h) { \
    const float2 x_ =                                                                           \
        *(__local const float2*)&tile_b[(tile) % STAGES]                                        \
                                       [(8 * s + 4 * h + lane % 4) * B_STRIDE + fragment_col];  \
    fragments[buffer][s][2 * h] = lengthened(x_.x);                                             \
    fragments[buffer][s][2 * h + 1] = lengthened(x_.y);                                         \
  }

  // Descriptors: address / 16, 8 rows of 128 bytes = 1024 bytes apart, 128-byte swizzle.
  const ulong form = ((ulong)1 << 62) | ((ulong)(1024 / 16) << 32) | ((ulong)1 << 16);
  const ulong tile_form = form | (((uint)(size_t)&tile_a[0][0] & 0x3ffff) >> 4);
#define AT(base, tile, half, s) \
  ((base) + (uint)(((tile) % STAGES * TILE_M + (half)*HALF_M) * 8 + (s)*2))

  const int tiles = (k + 2 * TILE_K - 1) / (2 * TILE_K) * 2;
  if (get_local_id(0) == 0)
    for (int s = 0; s < STAGES; ++s) {
      start_barrier(PHASE(landed, s), LOADERS);
      start_barrier(PHASE(empty, s), TILE_N / 16);
    }
  barrier(CLK_LOCAL_MEM_FENCE);

  if (get_local_id(0) < LOADERS) {
    LESS_REGISTERS
#pragma unroll 1
    for (int t = 0; t < tiles; ++t) {
      if (t >= STAGES) await(PHASE(empty, t), 1 - PARITY(t));
      LOAD(t)
      __asm__ volatile(
          "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(PHASE(landed, t))
          : "memory");
    }
    __asm__ volatile("cp.async.wait_all;" ::: "memory");
    return;
  }
  MORE_REGISTERS

  // One tile: while the matrix unit works on it, the fragments of the next one are loaded.
#define STEP(tile, buffer)                                                           \
  HOPPER("wgmma.fence.sync.aligned;");                                               \
  _Pragma("unroll") for (int s = 0; s < 4; ++s) {                                    \
    MULTIPLY(0, fragments[buffer][s], AT(tile_form, tile, 0, s), tile > 0 || s > 0); \
    MULTIPLY(1, fragments[buffer][s], AT(tile_form, tile, 1, s), tile > 0 || s > 0); \
  }                                                                                  \
  HOPPER("wgmma.commit_group.sync.aligned;");                                        \
  HOPPER("wgmma.wait_group.sync.aligned 1;");                                        \
  if (lane == 0 && (tile) > 0) arrive(PHASE(empty, (tile)-1));                       \
  if ((tile) + 1 < tiles) {                                                          \
    await(PHASE(landed, (tile) + 1), PARITY((tile) + 1));                            \
    __asm__ volatile("fence.proxy.async.shared::cta;" ::: "memory");                 \
    LOAD_FRAGMENTS((tile) + 1, 1 - buffer)                                           \
  }

  __asm__ volatile(".reg .f32 " SUMS("s0_") "," SUMS("s1_") ";");
  await(PHASE(landed, 0), 0);
  __asm__ volatile("fence.proxy.async.shared::cta;" ::: "memory");
  LOAD_FRAGMENTS(0, 0)
#pragma unroll 1
  for (int t = 0; t < tiles; t += 2) {
    STEP(t, 0)
    STEP(t + 1, 1)
  }
  HOPPER("wgmma.wait_group.sync.aligned 0;");
  float total[2][HALF_M / 2];
#define TAKE(half)                                                         \
  _Pragma("unroll") for (int i = 0; i < HALF_M / 2; ++i) __asm__ volatile( \
      "mov.f32 %0, s" #half "_%1%2;" : "=f"(total[half][i]) : "n"(i / 8), "n"(i % 8));
  TAKE(0)
  TAKE(1)

  // Sum 4 j + {0, 1, 2, 3} of a half: row 8 j + lane % 4 * 2 + {0, 1, 0, 1}, column fragment_col +
  // {0, 0, 1, 1}.
  const int col = col0 + fragment_col;
  const int pairs = ldc % 2 == 0 && ((size_t)c & 7) == 0 && col + 1 < n;
#pragma unroll
  for (int part = 0; part < 2; ++part)
#pragma unroll
    for (int i = 0; i < HALF_M / 4; ++i) {
      const int row = row0 + part * HALF_M + i / 2 * 8 + lane % 4 * 2 + i % 2;
      const float2 x = (float2)(total[part][i / 2 * 4 + i % 2], total[part][i / 2 * 4 + i % 2 + 2]);
      __global float* to = c + (size_t)row * ldc + col;
      if (row < m && pairs) {
        *(__global float2*)to = x;
      } else if (row < m) {
        if (col < n) to[0] = x.x;
        if (col + 1 < n) to[1] = x.y;
      }
    }
}
