// Parsing with positions, and the choice; see the header.
#include "gpu/tuned.hpp"

#include "gpu/sources.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <tuple>

namespace gpu {

namespace {

using nlohmann::json;
using Entry = TunedTable::Entry;

constexpr std::size_t kVersion = 1;
constexpr std::size_t kLargest = 1UL << 20U;  // of any number in the table
constexpr std::size_t kLeastSplit = 256;      // k of a product by split operands; see the header

// A value and the way to it, "entries[2].group[1]", for messages; empty for the whole document.
struct Place {
  const json& value;
  std::string path;

  [[noreturn]] void wrong(const std::string& what) const {
    throw BadTable(path.empty() ? what : fmt::format("{}: {}", path, what));
  }
  [[noreturn]] void fail(std::string_view expected) const {
    wrong(fmt::format("expected {}, found {}", expected, value.dump()));
  }
  [[nodiscard]] Place at(std::size_t index) const {
    return {value.at(index), fmt::format("{}[{}]", path, index)};
  }
  [[nodiscard]] Place at(const std::string& key) const {
    const auto found = value.find(key);
    if (found == value.end()) wrong(fmt::format("\"{}\" is missing", key));
    return {*found, path.empty() ? key : fmt::format("{}.{}", path, key)};
  }
  void expect_object(std::initializer_list<std::string_view> known) const {
    if (!value.is_object()) fail("an object {…}");
    for (const auto& [key, unused] : value.items())
      if (std::ranges::find(known, key) == known.end())
        wrong(fmt::format("unknown key \"{}\"; known are {}", key, fmt::join(known, ", ")));
  }
  void expect_pair(std::string_view meaning) const {
    if (!value.is_array() || value.size() != 2) fail(fmt::format("a pair {}", meaning));
  }
  [[nodiscard]] std::size_t number(std::size_t least = 1) const {
    const std::string expected = fmt::format("a whole number from {} to {}", least, kLargest);
    if (!value.is_number_integer() || value < least || value > kLargest) fail(expected);
    return value.get<std::size_t>();
  }
  [[nodiscard]] std::string text() const {
    if (!value.is_string()) fail("a text");
    return value.get<std::string>();
  }
};

// The library keeps the last of two equal keys and says nothing. Of a number too large for it, it
// does not say where.
json parse_json(std::string_view text) {
  std::istringstream input{std::string(text)};
  std::vector<std::set<std::string>> open;
  const auto watch = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::object_end) open.pop_back();
    if (event == json::parse_event_t::key && !open.back().insert(parsed).second)
      throw BadTable(fmt::format("the key {} stands twice in one object", parsed.dump()));
    return true;
  };
  try {
    return json::parse(input, watch);
  } catch (const json::out_of_range& error) {
    const auto read = static_cast<std::size_t>(input.tellg());
    const auto line = 1 + std::ranges::count(text.substr(0, read - 1), '\n');
    throw BadTable(fmt::format("line {}: {}", line, error.what()));
  }
}

bool tunable(const Variant& row) {
  const Geometry& g = row.geometry;
  return row.name.starts_with("SGEMM/") && row.epsilon <= kLengthenedSplitTf32Epsilon &&
         g.x_axis == Axis::kColumns && g.tile_m != Geometry::kWhole && g.tile_n != Geometry::kWhole;
}

// The kernel's row tells what it needs and how accurate it is.
Variant variant_of(const Place& kernel) {
  const std::string name = kernel.text();
  std::set<std::string_view> known;
  for (const Variant& row : variants()) {
    if (!tunable(row)) continue;
    if (row.kernel == name) return row;
    known.insert(row.kernel);
  }
  kernel.fail(fmt::format("one of {}", fmt::join(known, ", ")));
}

std::string defines_of(const Place& defines, std::string_view kernel) {
  static constexpr std::string_view kGeometry[] = {"WG_X", "WG_Y", "TILE_M", "TILE_N"};
  const auto geometry = [](std::string_view name) {
    return std::ranges::find(kGeometry, name) != std::end(kGeometry);
  };
  if (!defines.value.is_object()) defines.fail("an object {…}");
  std::vector<std::string> known = parameters(Sources().text(kernel));
  std::erase_if(known, geometry);
  std::string text;
  for (const auto& [key, unused] : defines.value.items()) {
    const Place value = defines.at(key);
    if (geometry(key)) value.wrong("belongs into \"group\" or \"tile\"");
    if (std::ranges::find(known, key) == known.end())
      value.wrong(fmt::format("no macro of {}; known are: {}", kernel,
                              known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value.number(0));
  }
  return text;
}

void take_range(const Place& n, Entry& entry) {
  n.expect_pair("[first n, last n or null]");
  entry.first = n.at(0).number();
  if (!n.at(1).value.is_null()) entry.last = n.at(1).number();
  if (entry.first > entry.last) n.fail("a range that is not empty");
}

void take_device(const Place& place, Entry& entry) {
  entry.device = place.at("device").text();
  if (place.value.contains("type")) {
    entry.type = place.at("type").text();
    if (entry.type != "CPU" && entry.type != "GPU") place.at("type").fail("\"CPU\" or \"GPU\"");
  }
  const int needed = entry.variant.nvidia_capability;
  int& least = entry.variant.nvidia_capability;
  least = 0;
  if (place.value.contains("nvidia_capability"))
    least = static_cast<int>(place.at("nvidia_capability").number(10));
  if (least < needed)
    place.wrong(fmt::format("the kernel needs \"nvidia_capability\": {} or more", needed));
}

Entry entry_of(const Place& place) {
  place.expect_object(
      {"device", "type", "nvidia_capability", "n", "kernel", "group", "tile", "defines", "note"});
  Entry entry;
  entry.variant = variant_of(place.at("kernel"));
  take_device(place, entry);
  take_range(place.at("n"), entry);
  const Place group = place.at("group");
  const Place tile = place.at("tile");
  group.expect_pair("[WG_X, WG_Y]");
  tile.expect_pair("[TILE_M, TILE_N]");
  Geometry& g = entry.variant.geometry;
  g = {group.at(0).number(), group.at(1).number(), tile.at(0).number(), tile.at(1).number()};
  if (place.value.contains("defines"))
    entry.defines = defines_of(place.at("defines"), entry.variant.kernel);
  if (place.value.contains("note")) static_cast<void>(place.at("note").text());
  return entry;
}

auto specificity(const Entry& e) {
  return std::tuple(e.device.size(), !e.type.empty(), e.variant.nvidia_capability);
}

bool same_key(const Entry& a, const Entry& b) {
  return a.device == b.device && a.type == b.type &&
         a.variant.nvidia_capability == b.variant.nvidia_capability;
}

// Index of an earlier entry with the same key and an n in common; the entry's own if there is none.
std::size_t rival(const std::vector<Entry>& entries, std::size_t index) {
  const Entry& own = entries[index];
  std::size_t at = 0;
  while (at < index && !(same_key(entries[at], own) && entries[at].first <= own.last &&
                         own.first <= entries[at].last))
    ++at;
  return at;
}

std::vector<Entry> entries_of(const Place& root) {
  root.expect_object({"version", "entries"});
  const Place version = root.at("version");
  if (version.value != kVersion) version.fail(fmt::format("{}, the version known here", kVersion));
  const Place list = root.at("entries");
  if (!list.value.is_array()) list.fail("a list […]");
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < list.value.size(); ++i) {
    entries.push_back(entry_of(list.at(i)));
    if (const std::size_t other = rival(entries, i); other != i)
      list.at(i).wrong(fmt::format(
          "its range of n overlaps with that of entries[{}] for the same device", other));
  }
  return entries;
}

}  // namespace

bool TunedTable::Entry::fits(const DeviceInfo& info, const Shape& shape) const {
  const std::size_t n = std::max({shape.m, shape.n, std::size_t{1}});
  const bool split = variant.epsilon > kFloat32Epsilon;
  const std::string label = fmt::format("{} / {}", info.platform, info.name);
  return first <= n && n <= last && (!split || shape.k >= kLeastSplit) &&
         label.find(device) != std::string::npos && (type.empty() || type == info.type) &&
         variant.nvidia_capability <= info.capability;
}

TunedTable TunedTable::parse(std::string_view text, std::string_view source) try {
  TunedTable table;
  const json document = parse_json(text);
  table.entries_ = entries_of({document, ""});
  return table;
} catch (const json::exception& error) {
  throw BadTable(fmt::format("{}: {}", source, error.what()));
} catch (const BadTable& error) {
  throw BadTable(fmt::format("{}: {}", source, error.what()));
}

TunedTable TunedTable::read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw BadTable(fmt::format("cannot read the table {}", path.string()));
  return parse(std::string{std::istreambuf_iterator<char>(file), {}}, path.filename().string());
}

TunedTable TunedTable::built_in() { return parse(embedded_tuned_table(), "gpu/tuned.json"); }

std::optional<Variant> TunedTable::choose(const DeviceInfo& device, const Shape& shape) const {
  const Entry* best = nullptr;
  for (const Entry& entry : entries_)
    if (entry.fits(device, shape) && (!best || specificity(entry) > specificity(*best)))
      best = &entry;
  if (best == nullptr) return std::nullopt;
  Variant variant = best->variant;
  variant.defines = best->defines;
  return variant;
}

}  // namespace gpu
