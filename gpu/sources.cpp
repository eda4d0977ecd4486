// Kernel sources by name; see the header.
#include "gpu/sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace gpu {

namespace {

// What follows `word` on every line that begins with it.
std::vector<std::string> lines_after(std::string_view word, std::string_view text) {
  std::vector<std::string> rests;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(word)) rests.push_back(line.substr(word.size()));
  return rests;
}

}  // namespace

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

std::vector<std::string> parameters(std::string_view text) { return lines_after("#ifndef ", text); }

std::string readable_log(std::string log, std::string_view name, std::string_view text) {
  const auto refusals = lines_after("#error ", text);
  if (refusals.empty() || log.find(fmt::format("{}.cl:", name)) != std::string::npos) return log;
  return fmt::format("{}\nThe log names no line; these are the file's own conditions:\n{}", log,
                     fmt::join(refusals, "\n"));
}

}  // namespace gpu
