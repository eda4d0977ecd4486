// Which instruction set the SIMD variants run with, chosen at run time by Google Highway, and a way
// to make do with less: for tests, and to see what an older machine would do.
#pragma once

#include <string>
#include <vector>

namespace cpu {

/// The instruction set in use, by Highway's name: "AVX3" (AVX-512), "AVX2", "SSE4", "NEON", ...
std::string isa();

/// Every instruction set that is both in this binary and in this machine, best first.
std::vector<std::string> available_isas();

/// All SIMD variants use this instruction set from now on; "" goes back to the best one. Not to be
/// called while a variant runs. Throws std::invalid_argument, listing the choices, if there is none
/// of this name.
void force_isa(const std::string& name);

}  // namespace cpu
