// GPU libraries to compare with, loaded at run time: cuBLAS and CLBlast. No build dependency, no
// clash of symbols; a peer is verified and timed like any variant, over buffers of the same layout.
#pragma once

#include "gpu/session.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gpu {

/// One row: a library's product. `prepare` throws Unsupported where this session's device is none
/// that the library runs on; the library itself stays loaded.
struct Peer {
  std::string name;  // "SGEMM/GPU/PeerCuBLAS"
  double epsilon;
  std::function<std::unique_ptr<Multiplication>(const Session&, const Shape&)> prepare;
};

/// The rows of `library` (a name that the loader finds, or a path): PeerCLBlast for a CLBlast,
/// PeerCuBLAS and PeerCuBLASTf32 for a cuBLAS, none for any other library. Throws
/// std::invalid_argument when it cannot be loaded or lacks a function that is needed.
///
/// cuBLAS runs on the CUDA device that is the session's OpenCL device, for the whole process that
/// of the first session.
///
/// Timing. CLBlast may launch several kernels and returns the event of the last alone, so a marker
/// before it is where its time starts; cuBLAS is timed by CUDA events on its stream. Either way a
/// single product's time includes gaps between launches; run(batch) spreads them over the batch.
std::vector<Peer> find_peers(const std::string& library);

/// Which of CUDA's devices, `cuda` in its order, sits where the OpenCL device does. Throws
/// Unsupported if none or several do, or where that is not known.
int same_device(std::optional<PciAddress> opencl, std::span<const PciAddress> cuda);

}  // namespace gpu
