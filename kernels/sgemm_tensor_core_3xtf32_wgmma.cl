// C = A B, row-major float32, on Hopper's warpgroup matrix unit (wgmma, TF32 inputs) with float32
// accuracy.
//
// Idea. Each float is split into a TF32 head and a TF32 rest, and three products are summed:
// rest*head + head*rest + head*head (Ootomo and Yokota, "Recovering single precision accuracy from
// Tensor Cores", 2022). wgmma wants both TF32 operands with k contiguous. Row-major A has that,
// row-major B does not; so the kernel computes C' = B' A': B' is the register operand, loaded in
// any order we like and split for free, and A is the local-memory operand, whose rest gets a second
// tile. The unit's accumulator truncates, so every TILE_K = 32 steps of k its sums, which started
// from zero with the small products first, are added outside to float32 sums. The tile is worked on
// in two halves of rows, so that one half's additions run while the matrix unit is busy with the
// other.
//
// A warpgroup is 128 work-items; it owns 64 columns of C and all TILE_M rows of the tile. Copies
// are cp.async, STAGES deep, with zero fill at the edges of k and n (rows past m repeat the last
// one and are not stored); any leading dimension is right, multiples of 4 floats are fast. Lines
// marked //@sm_90a are comments to the OpenCL compiler; retarget_ptx turns them into instructions.
#ifndef TILE_M
#define TILE_M 128  // 32, 64, 128
#endif
#ifndef TILE_N
#define TILE_N 128  // 64 * warpgroups
#endif
#ifndef STAGES
#define STAGES 3  // >= 3
#endif
#ifndef GROUP_ROWS
#define GROUP_ROWS 1  // work-groups walk down this many tile rows before moving right (L2 reuse)
#endif
#ifndef WG_X
#define WG_X (2 * TILE_N)
#endif
#ifndef WG_Y
#define WG_Y 1
#endif
#define TILE_K 32
#define HALF_M (TILE_M / 2)
#define B_STRIDE (TILE_N + 8)  // floats; 8 mod 32: fragment loads meet every bank once
#if TILE_M != 32 && TILE_M != 64 && TILE_M != 128
#error "TILE_M must be 32, 64 or 128, the matrix unit's shapes"
#endif
#if TILE_N % 64 != 0 || WG_X != 2 * TILE_N || WG_Y != 1
#error "TILE_N must be a multiple of 64, WG_X 2 * TILE_N, WG_Y 1"
#endif
#if 8 * TILE_M % WG_X != 0
#error "8 * TILE_M must be a multiple of WG_X, so that every work-item copies as much of A"
#endif
#if STAGES < 3 || GROUP_ROWS < 1
#error "STAGES must be at least 3, GROUP_ROWS at least 1"
#endif

// The unit's sums are PTX registers named by us, sH_ij with half H and octal number ij: 8 per 16
// rows of the half.
#define EIGHT(r) r "0," r "1," r "2," r "3," r "4," r "5," r "6," r "7"
#if HALF_M == 16
#define SHAPE "m64n16k8"
#define SUMS(r) EIGHT(r "0")
#elif HALF_M == 32
#define SHAPE "m64n32k8"
#define SUMS(r) EIGHT(r "0") "," EIGHT(r "1")
#elif HALF_M == 64
#define SHAPE "m64n64k8"
#define SUMS(r) EIGHT(r "0") "," EIGHT(r "1") "," EIGHT(r "2") "," EIGHT(r "3")
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

uint to_tf32(float x) {
  uint y;
  __asm__("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
}

// The part of x that the matrix unit drops when it reads x as TF32.
float rest_of(float x) { return as_float(to_tf32(x - as_float(as_uint(x) & 0xffffe000u))); }

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

__attribute__((reqd_work_group_size(WG_X, WG_Y, 1))) __kernel void sgemm_tensor_core_3xtf32_wgmma(
    const int m, const int n, const int k, __global const float* a, const int lda,
    __global const float* b, const int ldb, __global float* c, const int ldc) {
  __local float tile_a[STAGES][TILE_M * TILE_K] __attribute__((aligned(1024)));
  __local float rest_a[STAGES][TILE_M * TILE_K] __attribute__((aligned(1024)));
  __local float tile_b[STAGES][TILE_K * B_STRIDE] __attribute__((aligned(1024)));

  const int item = get_local_id(0);
  const int lane = item % 32, warp = item / 32;
  const int aligned = ((lda | ldb) % 4 == 0) && ((((size_t)a | (size_t)b) & 15) == 0);

  // Tiles in bands of GROUP_ROWS tile rows.
  const int tiles_n = get_num_groups(0), tiles_m = get_num_groups(1);
  const int id = get_group_id(1) * tiles_n + get_group_id(0);
  const int band = id / (GROUP_ROWS * tiles_n);
  const int band_rows = min(GROUP_ROWS, tiles_m - band * GROUP_ROWS);
  const int in_band = id - band * GROUP_ROWS * tiles_n;
  const int row0 = (band * GROUP_ROWS + in_band % band_rows) * TILE_M;
  const int col0 = (in_band / band_rows) * TILE_N;

  // This item's chunks of 4 floats: A rows a_row + i * (WG_X / 8), B rows b_row + i * (4 * WG_X /
  // TILE_N).
  const int a_row = item / 8, a_k = item % 8 * 4;
  const int b_row = item / (TILE_N / 4), b_col = item % (TILE_N / 4) * 4;
#define A_CHUNKS (TILE_M * 8 / WG_X)
#define A_STEP (WG_X / 8)
#define B_CHUNKS (TILE_K * TILE_N / 4 / WG_X)
#define B_STEP (4 * WG_X / TILE_N)
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
#define COMMIT() __asm__ volatile("cp.async.commit_group;" ::: "memory")
#define ARRIVED(pending) __asm__ volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory")

  // Each item writes the rests of the chunks of A that it copied itself.
#define SPLIT_A(tile)                                                                   \
  _Pragma("unroll") for (int i = 0; i < A_CHUNKS; ++i) {                                \
    const float4 x_ =                                                                   \
        *(__local const float4*)&tile_a[(tile) % STAGES][a_slot + i * A_STEP * TILE_K]; \
    *(__local float4*)&rest_a[(tile) % STAGES][a_slot + i * A_STEP * TILE_K] =          \
        (float4)(rest_of(x_.x), rest_of(x_.y), rest_of(x_.z), rest_of(x_.w));           \
  }                                                                                     \
  __asm__ volatile("fence.proxy.async.shared::cta;" ::: "memory");

  // B' fragments of one tile: matrix rows lane/4 and lane/4 + 8 are the adjacent columns
  // fragment_col and + 1.
  const int fragment_col = warp * 16 + lane / 4 * 2;
  uint head[2][4][4], rest[2][4][4];
#define SPLIT_B(tile, buffer)                                                                   \
  _Pragma("unroll") for (int s = 0; s < 4; ++s) _Pragma("unroll") for (int h = 0; h < 2; ++h) { \
    const float2 x_ =                                                                           \
        *(__local const float2*)&tile_b[(tile) % STAGES]                                        \
                                       [(8 * s + 4 * h + lane % 4) * B_STRIDE + fragment_col];  \
    head[buffer][s][2 * h] = to_tf32(x_.x);                                                     \
    head[buffer][s][2 * h + 1] = to_tf32(x_.y);                                                 \
    rest[buffer][s][2 * h] = to_tf32(x_.x - as_float(head[buffer][s][2 * h]));                  \
    rest[buffer][s][2 * h + 1] = to_tf32(x_.y - as_float(head[buffer][s][2 * h + 1]));          \
  }

  // Descriptors: address / 16, 8 rows of 128 bytes = 1024 bytes apart, 128-byte swizzle.
  const ulong form = ((ulong)1 << 62) | ((ulong)(1024 / 16) << 32) | ((ulong)1 << 16);
  const ulong tile_form = form | (((uint)(size_t)&tile_a[0][0] & 0x3ffff) >> 4);
  const ulong rest_form = form | (((uint)(size_t)&rest_a[0][0] & 0x3ffff) >> 4);
#define AT(base, tile, half, s) \
  ((base) + (uint)(((tile) % STAGES * TILE_M + (half)*HALF_M) * 8 + (s)*2))

#define HALF_PRODUCT(tile, half, buffer)                                  \
  HOPPER("wgmma.fence.sync.aligned;");                                    \
  _Pragma("unroll") for (int s = 0; s < 4; ++s) {                         \
    MULTIPLY(half, rest[buffer][s], AT(tile_form, tile, half, s), s > 0); \
    MULTIPLY(half, head[buffer][s], AT(rest_form, tile, half, s), 1);     \
  }                                                                       \
  _Pragma("unroll") for (int s = 0; s < 4; ++s)                           \
      MULTIPLY(half, head[buffer][s], AT(tile_form, tile, half, s), 1);   \
  HOPPER("wgmma.commit_group.sync.aligned;");

  __asm__ volatile(".reg .f32 " SUMS("s0_") "," SUMS("s1_") ";");
  float total[2][HALF_M / 2];
#pragma unroll
  for (int i = 0; i < HALF_M / 2; ++i) total[0][i] = total[1][i] = 0;
#define ADD(half)                                                          \
  _Pragma("unroll") for (int i = 0; i < HALF_M / 2; ++i) __asm__ volatile( \
      "add.f32 %0, %0, s" #half "_%1%2;" : "+f"(total[half][i]) : "n"(i / 8), "n"(i % 8));

    // One tile: while the matrix unit works on its halves, the next tile is made ready.
#define STEP(tile, buffer)                    \
  HALF_PRODUCT(tile, 0, buffer)               \
  HALF_PRODUCT(tile, 1, buffer)               \
  ARRIVED(STAGES - 3);                        \
  SPLIT_A((tile) + 1)                         \
  barrier(CLK_LOCAL_MEM_FENCE);               \
  LOAD((tile) + STAGES - 1)                   \
  COMMIT();                                   \
  SPLIT_B((tile) + 1, 1 - buffer)             \
  HOPPER("wgmma.wait_group.sync.aligned 1;"); \
  ADD(0)                                      \
  HOPPER("wgmma.wait_group.sync.aligned 0;"); \
  ADD(1)

  const int tiles = (k + 2 * TILE_K - 1) / (2 * TILE_K) * 2;
  for (int t = 0; t < STAGES - 1; ++t) {
    LOAD(t)
    COMMIT();
  }
  ARRIVED(STAGES - 2);
  SPLIT_A(0)
  barrier(CLK_LOCAL_MEM_FENCE);
  SPLIT_B(0, 0)
#pragma unroll 1
  for (int t = 0; t < tiles; t += 2) {
    STEP(t, 0)
    STEP(t + 1, 1)
  }
  ARRIVED(0);

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
