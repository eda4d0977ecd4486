// Hopper's own instructions from OpenCL C: the driver compiles source for the plain target only,
// but the program binary it returns is PTX text, and a binary may be built again. Contract: pure
// text, no OpenCL. Kernels write such an instruction as an inline-asm comment behind kMark; text
// without a mark comes back with its target changed and is otherwise the same.
#pragma once

#include <string>
#include <string_view>

namespace gpu {

/// "//@sm_90a wgmma.fence.sync.aligned;" in a kernel's asm becomes "wgmma.fence.sync.aligned;".
inline constexpr std::string_view kMark = "//@sm_90a ";

/// Why a kernel of this source cannot run at a compute capability, 90 for 9.0: what stands behind
/// its marks is Hopper's alone, no later GPU has it. Empty if it can.
std::string obstacle(std::string_view source, int capability);

/// PTX for sm_90 → PTX for sm_90a: the target line, every marked comment, and `.minnctapersm 1`
/// after each `.reqntid`, without which the assembler ignores setmaxnreg. Bytes after a NUL, which
/// drivers append, are dropped. Throws std::invalid_argument if there is no `.target sm_90` line.
std::string retarget_ptx(std::string ptx);

}  // namespace gpu
