#include "emulator/scenario/node_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace rocemu::scenario {
namespace {

using engine::Duration;
using engine::faults::Range;
using engine::faults::Ranges;

constexpr size_t kMaxQuote = 60;

std::string in_quotes(std::string_view text) {
  if (text.size() <= kMaxQuote) return fmt::format("'{}'", text);
  return fmt::format("'{}...'", text.substr(0, kMaxQuote));
}

struct Quantity {
  double value;
  std::string_view unit;
};

/// Reads a number that is not negative, and returns it with the text after it.
std::optional<Quantity> parse_quantity(std::string_view text) {
  Quantity quantity{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), quantity.value,
                                            std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(quantity.value) || quantity.value < 0 ||
      std::signbit(quantity.value)) {
    return {};
  }
  quantity.unit = text.substr(static_cast<size_t>(end - text.data()));
  while (quantity.unit.starts_with(' ')) quantity.unit.remove_prefix(1);
  return quantity;
}

std::optional<Range> parse_range(std::string_view text, uint64_t most) {
  const size_t dash = text.find('-');
  const auto first = NodeReader::parse_number(text.substr(0, dash));
  if (!first) return {};
  if (dash == std::string_view::npos) return Range{*first, *first};
  if (dash + 1 == text.size()) return Range{*first, most};
  const auto last = NodeReader::parse_number(text.substr(dash + 1));
  if (!last) return {};
  return Range{*first, *last};
}

}  // namespace

std::string listing(std::span<const std::string_view> words) {
  std::string result;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i != 0) result += i + 1 == words.size() ? " and " : ", ";
    result += words[i];
  }
  return result;
}

void NodeReader::add(Problem problem) const {
  problems_.push_back(std::move(problem));
  if (problems_.size() >= kMaxProblems) throw TooManyProblems();
}

void NodeReader::fail(const SourceLocation& location, const std::string& message) const {
  throw Mistake{{location, message}};
}

void NodeReader::fail(const Node& node, const std::string& message) const {
  if (node.kind == Node::Kind::kBroken) throw AlreadyTold();
  fail(node.location, message);
}

void NodeReader::complain(const Node& node, const std::string& message) const {
  add({node.location, message});
}

void NodeReader::warn(const Node& node, const std::string& message) const {
  if (problems_.size() >= kMaxProblems) return;
  problems_.push_back({.location = node.location, .message = message, .is_warning = true});
}

std::string NodeReader::found(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMapping:
      return "a mapping";
    case Node::Kind::kScalar:
      return in_quotes(node.text);
    case Node::Kind::kNothing:
    case Node::Kind::kBroken:
      break;
  }
  return "nothing";
}

// Parses a number. Numbers that begin with 0 are octal in YAML 1.1 but not in 1.2, so they are not
// accepted.
std::optional<uint64_t> NodeReader::parse_number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text[0] == '0') {
    return {};
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

std::string NodeReader::suggestion(std::string_view text, std::span<const std::string_view> known) {
  const std::string_view near = nearest(text, known);
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
}

std::string NodeReader::text(const Node& node, std::string_view what) const {
  if (!node.is_scalar()) fail(node, fmt::format("expected {}, found {}", what, found(node)));
  return node.text;
}

bool NodeReader::boolean(const Node& node) const {
  const std::string word = node.is_scalar() ? normalized(node.text) : "";
  if (word == "TRUE" || word == "YES" || word == "ON") return true;
  if (word == "FALSE" || word == "NO" || word == "OFF") return false;
  fail(node, fmt::format("expected true or false, found {}", found(node)));
}

uint64_t NodeReader::number(const Node& node, uint64_t least, uint64_t most) const {
  const auto value = node.is_scalar() ? parse_number(node.text) : std::nullopt;
  if (!value || *value < least || *value > most) {
    fail(node, fmt::format("expected a number from {} to {}, found {}", least, most, found(node)));
  }
  return *value;
}

Ranges NodeReader::ranges(const Node& node, uint64_t least, uint64_t most) const {
  const std::string what = fmt::format(
      "a number from {} to {}, a range such as 3-7 or 3-, or a list of these", least, most);
  Ranges ranges;
  for (const Node& item : items(node, what)) {
    attempt([&] {
      const auto range = parse_range(text(item, what), most);
      if (!range || range->first < least || range->last > most) {
        fail(item, fmt::format("expected {}, found {}", what, found(item)));
      }
      if (range->first > range->last) {
        fail(item, fmt::format("the range {} ends before it begins", found(item)));
      }
      ranges.push_back(*range);
    });
  }
  return ranges;
}

Duration NodeReader::duration(const Node& node) const {
  constexpr double kMaxNs = 3600e9 * 24 * 365;
  const auto quantity = node.is_scalar() ? parse_quantity(node.text) : std::nullopt;
  double scale = 0;
  if (quantity) {
    if (quantity->unit == "ns") scale = 1;
    if (quantity->unit == "us") scale = 1e3;
    if (quantity->unit == "ms") scale = 1e6;
    if (quantity->unit == "s") scale = 1e9;
    if (quantity->unit == "min") scale = 60e9;
  }
  if (scale == 0) {
    fail(node, fmt::format("expected a time such as 250us or 1.5ms (units: ns, us, ms, s, min), "
                           "found {}",
                           found(node)));
  }
  const double ns = quantity->value * scale;
  if (ns > kMaxNs) fail(node, fmt::format("{} is longer than a year", found(node)));
  if (ns != 0 && ns < 0.5) fail(node, fmt::format("{} is shorter than 1ns", found(node)));
  return Duration(std::llround(ns));
}

double NodeReader::probability(const Node& node) const {
  const auto quantity = node.is_scalar() ? parse_quantity(node.text) : std::nullopt;
  if (quantity && (quantity->unit.empty() || quantity->unit == "%")) {
    const double value = quantity->unit.empty() ? quantity->value : quantity->value / 100;
    if (value <= 1) return value;
  }
  fail(node,
       fmt::format("expected a probability from 0 to 1, or 0% to 100%, found {}", found(node)));
}

uint64_t NodeReader::bandwidth(const Node& node) const {
  struct Unit {
    std::string_view text;
    double bits;
  };
  // Units such as Gbps, which perftest and ethtool print, are allowed for network files
  // (emulator/network/file).
  constexpr Unit kUnits[] = {{"bit/s", 1}, {"kbit/s", 1e3}, {"Mbit/s", 1e6}, {"Gbit/s", 1e9},
                             {"bps", 1},   {"kbps", 1e3},   {"Mbps", 1e6},   {"Gbps", 1e9}};
  const auto quantity = node.is_scalar() ? parse_quantity(node.text) : std::nullopt;
  double bits = 0;
  for (const Unit& unit : kUnits) {
    if (quantity && quantity->unit == unit.text) bits = quantity->value * unit.bits;
  }
  if (bits < 1000 || bits > 1e13) {
    fail(node,
         fmt::format("expected a bandwidth from 1kbit/s to 10000Gbit/s (units: bit/s, kbit/s, "
                     "Mbit/s, Gbit/s, bps, kbps, Mbps, Gbps), found {}",
                     found(node)));
  }
  return static_cast<uint64_t>(bits);
}

uint64_t NodeReader::size(const Node& node) const {
  struct Unit {
    std::string_view text;
    double bytes;
  };
  constexpr Unit kUnits[] = {
      {"", 1},     {"B", 1},        {"KB", 1e3},        {"MB", 1e6},
      {"GB", 1e9}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
  constexpr double kMost = 1099511627776.0;
  const auto quantity = node.is_scalar() ? parse_quantity(node.text) : std::nullopt;
  const auto* const unit =
      quantity ? std::ranges::find(kUnits, quantity->unit, &Unit::text) : std::end(kUnits);
  if (unit == std::end(kUnits) || quantity->value * unit->bytes > kMost) {
    fail(node, fmt::format("expected a size such as 100KiB (units: B, KB, MB, GB, KiB, MiB, GiB), "
                           "found {}",
                           found(node)));
  }
  return static_cast<uint64_t>(std::llround(quantity->value * unit->bytes));
}

uint32_t NodeReader::name(const Node& node, const Names& names) const {
  const std::string word = text(node, names.what);
  if (const auto value = names.find(word)) return *value;
  const std::vector<std::string_view> known = names.texts();
  const std::string near = suggestion(word, known);
  fail(node, fmt::format("there is no {} {}{}", names.what, in_quotes(word),
                         near.empty() ? "; there are " + listing(known) : near));
}

std::vector<uint32_t> NodeReader::name_list(const Node& node, const Names& names) const {
  std::vector<uint32_t> values;
  for (const Node& item : items(node, names.what)) {
    attempt([&] { values.push_back(name(item, names)); });
  }
  return values;
}

std::span<const Node> NodeReader::items(const Node& node, std::string_view what) const {
  if (!node.is_list()) return {&node, 1};
  if (node.items.empty()) fail(node, fmt::format("expected {}, found an empty list", what));
  return node.items;
}

std::vector<uint8_t> NodeReader::bytes(const Node& node, size_t most) const {
  const std::string given = text(node, "a text, or 0x and hexadecimal digits");
  std::vector<uint8_t> result(given.begin(), given.end());
  if (given.starts_with("0x")) {
    result.clear();
    const std::string_view digits = std::string_view(given).substr(2);
    for (size_t i = 0; i < digits.size(); i += 2) {
      const std::string_view pair = digits.substr(i, 2);
      uint8_t byte = 0;
      const auto [end, error] = std::from_chars(pair.data(), pair.data() + pair.size(), byte, 16);
      if (pair.size() != 2 || error != std::errc() || end != pair.data() + 2) {
        fail(node,
             fmt::format("expected pairs of hexadecimal digits after 0x, found {}", found(node)));
      }
      result.push_back(byte);
    }
  }
  if (result.size() > most) {
    fail(node, fmt::format("the value may have at most {} bytes, but has {}", most, result.size()));
  }
  return result;
}

}  // namespace rocemu::scenario
