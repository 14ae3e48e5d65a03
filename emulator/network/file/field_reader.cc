#include "emulator/network/file/field_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>

namespace rocemu::network {
namespace {

using scenario::Node;
using scenario::NodeReader;

struct Unit {
  std::string_view text;
  double factor;
};

constexpr Unit kRates[] = {{"bps", 1},      {"Kbps", 1e3},   {"Mbps", 1e6},   {"Gbps", 1e9},
                           {"Tbps", 1e12},  {"bit/s", 1},    {"kbit/s", 1e3}, {"Mbit/s", 1e6},
                           {"Gbit/s", 1e9}, {"Tbit/s", 1e12}};
constexpr double kMostBitsPerSecond = 1e13;

std::optional<double> quantity(const Node& node, std::span<const Unit> units) {
  if (!node.is_scalar()) return std::nullopt;
  const char* const begin = node.text.data();
  const char* const end = begin + node.text.size();
  double value = 0;
  const auto [rest, error] = std::from_chars(begin, end, value, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(value) || std::signbit(value)) return std::nullopt;
  std::string_view unit(rest, static_cast<size_t>(end - rest));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const Unit& one : units)
    if (one.text == unit) return value * one.factor;
  return std::nullopt;
}

}  // namespace

uint64_t FieldReader::size(const Node& node) const {
  return reader_.size(node);
}

uint64_t FieldReader::rate(const Node& node) const {
  const auto bits = quantity(node, kRates);
  if (!bits || *bits > kMostBitsPerSecond) {
    reader_.fail(
        node,
        fmt::format("expected a rate such as 100Gbps (units: bps, Kbps, Mbps, Gbps, Tbps, bit/s, "
                    "kbit/s, Mbit/s, Gbit/s, Tbit/s), found {}",
                    NodeReader::found(node)));
  }
  if (*bits < 1)
    reader_.fail(node, "a rate of 0 is not allowed; to take a link down, use a rule of a scenario");
  return static_cast<uint64_t>(std::llround(*bits));
}

engine::Duration FieldReader::delay(const Node& node) const {
  if (node.is_scalar() && node.text == "0") return engine::Duration(0);
  return reader_.duration(node);
}

void FieldReader::fields(const Node& node, std::string_view what,
                         std::initializer_list<Field> fields) const {
  if (!node.is_mapping()) {
    std::vector<std::string_view> keys;
    for (const Field& field : fields) keys.push_back(field.key);
    reader_.complain(node, fmt::format("expected a mapping with {}, found {}",
                                       scenario::listing(keys), NodeReader::found(node)));
    return;
  }
  for (const scenario::Entry& entry : node.entries) {
    const auto* const field = std::ranges::find(fields, entry.key.text, &Field::key);
    if (field != fields.end()) {
      reader_.attempt([&] { field->read(entry.value); });
      continue;
    }
    std::vector<std::string_view> keys;
    for (const Field& one : fields) keys.push_back(one.key);
    const std::string near = NodeReader::suggestion(entry.key.text, keys);
    reader_.complain(entry.key,
                     fmt::format("{} has no '{}'{}", what, entry.key.text,
                                 near.empty() ? "; it has " + scenario::listing(keys) : near));
  }
}

}  // namespace rocemu::network
