// Kernel sources by name; see the header.
#include "gpu/sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace gpu {

Sources::Sources(std::filesystem::path folder) : folder_(std::move(folder)) {
  if (!std::filesystem::is_directory(folder_))
    throw std::runtime_error(fmt::format("{} is not a folder of kernels", folder_.string()));
}

std::string Sources::text(std::string_view name) const {
  if (folder_.empty()) {
    const auto all = embedded_kernels();
    const auto found = std::ranges::find(all, name, &EmbeddedKernel::name);
    if (found == all.end())
      throw std::runtime_error(fmt::format("no kernel file {}.cl was built in", name));
    return std::string(found->text);
  }
  const auto path = folder_ / fmt::format("{}.cl", name);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(fmt::format("cannot read the kernel {}", path.string()));
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace gpu
