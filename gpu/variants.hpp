// The table of OpenCL variants: one row each, and nothing else to touch. A new idea is a .cl file
// and a row; a new configuration of a kernel is a row.
#pragma once

#include "gpu/limits.hpp"

#include <span>
#include <string_view>

namespace gpu {

inline constexpr double kFloat32Epsilon = 1.1920929e-7;  // 2^-23
// An operand split into two TF32 numbers keeps 22 bits, and the product of the two low parts is
// left out.
inline constexpr double kSplitTf32Epsilon = 2.3841858e-7;  // 2^-22
inline constexpr double kTf32Epsilon = 9.765625e-4;        // 2^-10, operands rounded to nearest
// The same through wgmma, which drops the bits of both parts that TF32 has not.
inline constexpr double kTruncatedSplitTf32Epsilon = 4.7683716e-7;  // 2^-21
// The rests not rounded either, but lengthened and then dropped from by the unit: 2^-20 of each
// operand, and 2^-20 for the product of the rests.
inline constexpr double kLengthenedSplitTf32Epsilon = 2.8610229e-6;  // 3 * 2^-20
// wgmma reads float32 words from local memory and drops the bits that TF32 has not.
inline constexpr double kTruncatedTf32Epsilon = 1.953125e-3;  // 2^-9

struct Variant {
  std::string_view name;    // the whole benchmark family name: what is printed can be grepped
  std::string_view kernel;  // file stem of kernels/<kernel>.cl == name of its kernel function
  Geometry geometry;        // becomes the macros WG_X, WG_Y, TILE_M, TILE_N (tiles only if fixed)
  std::string_view defines{};  // further tunables, "TILE_K=16 STAGES=3"
  /// The kernel keeps a row of k floats of A in private memory, as an array of ROW_LENGTH = k.
  bool private_row = false;
  int nvidia_capability = 0;         // least compute capability, 80 for 8.0; 0: any device
  double epsilon = kFloat32Epsilon;  // relative accuracy of one product and sum
};

std::span<const Variant> variants();

}  // namespace gpu
