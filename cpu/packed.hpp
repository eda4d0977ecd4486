// What packed.cpp offers besides its table: which instruction set was chosen at run time, and a way
// to make do with less (for tests, and for seeing what an older machine would do).
#pragma once

#include <string>
#include <vector>

namespace cpu {

/// The instruction set that the SIMD variants run with, as Google Highway names it: "AVX3", "AVX2",
/// "SSE4", "NEON", ...
std::string isa();

/// Every instruction set that is both in this binary and in this machine, best first.
std::vector<std::string> available_isas();

/// Makes all SIMD variants use this instruction set from now on; "" goes back to the best one.
/// Throws std::invalid_argument that lists the choices when the machine or the binary lacks it.
void force_isa(const std::string& name);

}  // namespace cpu
