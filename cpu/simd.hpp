// What the files that are compiled once per instruction set have in common. Included before
// Highway's own headers, because it decides for which instruction sets there is code.
#pragma once

// Accumulators are arrays of vectors, which vectors of unknown size (SVE, RVV) cannot form; these
// machines run the NEON code, or the scalar code.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
