// Values out of YAML nodes, and errors that name the place.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/engine/faults/rule.h"
#include "emulator/engine/time.h"
#include "emulator/scenario/names.h"

namespace rocemu::scenario {

class NodeReader {
 public:
  explicit NodeReader(std::string_view file) : file_(file) {}

  /// Throws ScenarioError: FILE:LINE:COLUMN: `message`.
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) const;
  [[noreturn]] void fail(const YAML::Node& node, const std::string& message) const {
    fail(node.Mark(), message);
  }

  /// What the node is, for messages: "'abc'", "a list", "nothing".
  static std::string found(const YAML::Node& node);

  /// A text of one word or line; `what` says in an error what it should have been.
  std::string text(const YAML::Node& node, std::string_view what) const;
  bool boolean(const YAML::Node& node) const;
  /// Decimal or 0x.
  uint64_t number(const YAML::Node& node, uint64_t least, uint64_t most) const;
  /// "5", "3-7", "10-", or a list of these, all in [least, most].
  engine::faults::Ranges ranges(const YAML::Node& node, uint64_t least, uint64_t most) const;
  /// "1.5ms": a number and ns, us, ms, s or min.
  engine::Duration duration(const YAML::Node& node) const;
  /// "0.25" or "25%".
  double probability(const YAML::Node& node) const;
  /// "10Gbit/s": a number and bit/s, kbit/s, Mbit/s or Gbit/s.
  uint64_t bandwidth(const YAML::Node& node) const;
  /// One of the names.
  uint32_t name(const YAML::Node& node, const Names& names) const;
  /// One or a list of the names, or numbers below `limit`.
  std::vector<uint32_t> name_list(const YAML::Node& node, const Names& names) const;
  /// The node itself, or what is in it if it is a list.
  std::vector<YAML::Node> items(const YAML::Node& node, std::string_view what) const;
  /// Text as it is, or "0x" and pairs of hexadecimal digits.
  std::vector<uint8_t> bytes(const YAML::Node& node, size_t most) const;

  /// "; did you mean 'drop'?", or "" if nothing is near.
  static std::string suggestion(std::string_view text, std::span<const std::string_view> known);

 private:
  std::string file_;
};

/// "a, b and c".
std::string listing(std::span<const std::string_view> words);

}  // namespace rocemu::scenario
