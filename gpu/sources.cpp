// Kernel sources by name; see the header.
#include "gpu/sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace gpu {

Sources::Sources(const std::filesystem::path& folder) : folder_(folder) {
  if (!std::filesystem::is_directory(folder))
    throw std::runtime_error(fmt::format("{} is not a folder of kernels", folder.string()));
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".cl") continue;
    if (std::ifstream file(entry.path(), std::ios::binary); file)
      texts_[entry.path().stem().string()] = {std::istreambuf_iterator<char>(file), {}};
  }
}

std::string Sources::text(std::string_view name) const {
  if (folder_.empty()) {
    const auto all = embedded_kernels();
    const auto found = std::ranges::find(all, name, &EmbeddedKernel::name);
    if (found == all.end())
      throw std::runtime_error(fmt::format("no kernel file {}.cl was built in", name));
    return std::string(found->text);
  }
  const auto found = texts_.find(name);
  if (found == texts_.end())
    throw std::runtime_error(
        fmt::format("cannot read the kernel {}", (folder_ / fmt::format("{}.cl", name)).string()));
  return found->second;
}

}  // namespace gpu
