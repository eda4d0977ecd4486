// The rows that say what the machine can do at most: Peak/CPU/Fma, Peak/CPU/Copy and Peak/CPU/Read,
// the memory rows once for each cache level.
#pragma once

#include "cpu/cpu.hpp"

namespace bench {

/// Registers them with the benchmark library; the workspace must outlive the run.
void register_peaks(cpu::Workspace& workspace);

}  // namespace bench
