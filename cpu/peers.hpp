// Libraries to compare with, loaded at run time: no build dependency, no symbol clashes, any number
// of them side by side in one process.
#pragma once

#include "cpu/cpu.hpp"

#include <optional>
#include <string>

namespace cpu {

/// `library` (a name that the dynamic loader finds, or a path) as a row: SGEMM/CPU/PeerOpenBLAS,
/// PeerMKL, PeerBLIS (whatever exports cblas_sgemm with 32-bit integers) or PeerOneDNN
/// (dnnl_sgemm). The row sets the library's thread count to the Workspace's by the library's own
/// call. Nothing when the library is loadable but none of these. Throws std::invalid_argument when
/// it cannot be loaded. OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE are removed from the environment
/// first: they would make OpenBLAS another library than the machine deserves.
std::optional<Variant> find_peer(const std::string& library);

}  // namespace cpu
