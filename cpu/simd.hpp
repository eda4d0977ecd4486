// What the files that are compiled once per instruction set have in common. Included before
// Highway's own headers, because it decides for which instruction sets there is code.
#pragma once

// Accumulators are arrays of vectors, which vectors of unknown size (SVE, RVV) cannot form; these
// machines run the NEON code, or the scalar code. What has SSSE3 but not SSE4 is older than 2008.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

// Unrolls the loop that follows; only then do arrays of vectors live in registers. Not under the
// sanitizers: they check every access, and a hundred copies of each take minutes to compile.
#if defined(__has_feature)  // Clang
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define CPU_SANITIZED
#endif
#endif
#if defined(CPU_SANITIZED) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CPU_UNROLL(count)
#elif defined(__clang__)
#define CPU_UNROLL(count) _Pragma("unroll")
#else
#define CPU_PRAGMA(text) _Pragma(#text)
#define CPU_UNROLL(count) CPU_PRAGMA(GCC unroll count)
#endif
