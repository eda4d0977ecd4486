// What a result file says of the build, the machine and the device it was measured on.
#pragma once

#include "bench/options.hpp"
#include "gpu/session.hpp"

namespace bench {

/// Adds the keys of the JSON contract to the library's context; `session` may be null. Flat
/// strings, and never a key that the library writes itself.
void add_context(const Options& options, const gpu::Session* session);

}  // namespace bench
