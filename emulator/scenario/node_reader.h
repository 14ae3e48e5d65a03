// Reads values from nodes. Collects errors, so that all errors of a file are reported at once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/engine/base/time.h"
#include "emulator/engine/faults/rule.h"
#include "emulator/scenario/document.h"
#include "emulator/scenario/rule_names.h"

namespace rocemu::scenario {

class NodeReader {
 public:
  /// A mistake, on its way to the nearest attempt().
  struct Mistake {
    Problem problem;
  };
  struct TooManyProblems {};
  /// Thrown for a node whose error was already reported.
  struct AlreadyTold {};

  explicit NodeReader(std::vector<Problem>& problems) : problems_(problems) {}

  [[noreturn]] void fail(const Place& place, const std::string& message) const;
  [[noreturn]] void fail(const Node& node, const std::string& message) const;
  /// Reports an error and continues.
  void complain(const Node& node, const std::string& message) const;
  void warn(const Node& node, const std::string& message) const;

  /// Reads a part of which the rest does not depend; false if there is a mistake in it, which is
  /// added to the problems.
  template <class Read>
  bool attempt(Read read) const {
    try {
      read();
      return true;
    } catch (const Mistake& mistake) {
      add(mistake.problem);
    } catch (const AlreadyTold&) {
    }
    return false;
  }

  /// Describes the node for messages: "'abc'", "a list", "nothing".
  static std::string found(const Node& node);

  /// A text of one word or line; `what` says in an error what it should have been.
  std::string text(const Node& node, std::string_view what) const;
  bool boolean(const Node& node) const;
  /// Decimal or 0x.
  static std::optional<uint64_t> parse_number(std::string_view text);
  uint64_t number(const Node& node, uint64_t least, uint64_t most) const;
  /// "5", "3-7", "10-", or a list of these, all in [least, most].
  engine::faults::Ranges ranges(const Node& node, uint64_t least, uint64_t most) const;
  /// "1.5ms": a number and ns, us, ms, s or min.
  engine::Duration duration(const Node& node) const;
  /// "0.25" or "25%".
  double probability(const Node& node) const;
  /// "10Gbit/s": a number and bit/s, kbit/s, Mbit/s or Gbit/s.
  uint64_t bandwidth(const Node& node) const;
  /// One of the names.
  uint32_t name(const Node& node, const Names& names) const;
  /// One or a list of the names, or numbers below `limit`.
  std::vector<uint32_t> name_list(const Node& node, const Names& names) const;
  /// The node itself, or what is in it if it is a list.
  std::span<const Node> items(const Node& node, std::string_view what) const;
  /// Text as it is, or "0x" and pairs of hexadecimal digits.
  std::vector<uint8_t> bytes(const Node& node, size_t most) const;

  /// "; did you mean 'drop'?", or "" if nothing is near.
  static std::string suggestion(std::string_view text, std::span<const std::string_view> known);

 private:
  void add(Problem problem) const;

  std::vector<Problem>& problems_;
};

/// "a, b and c".
std::string listing(std::span<const std::string_view> words);

}  // namespace rocemu::scenario
