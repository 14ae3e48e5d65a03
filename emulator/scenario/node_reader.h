// Reads values from the nodes of a document. Collects errors, so that all errors of a file are
// reported together.
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
  /// Is thrown for an error in the document, and caught by the nearest attempt().
  struct Mistake {
    Problem problem;
  };
  struct TooManyProblems {};
  /// Is thrown for a node whose error was already reported.
  struct AlreadyTold {};

  explicit NodeReader(std::vector<Problem>& problems) : problems_(problems) {}

  [[noreturn]] void fail(const SourceLocation& location, const std::string& message) const;
  [[noreturn]] void fail(const Node& node, const std::string& message) const;
  /// Reports an error and continues.
  void complain(const Node& node, const std::string& message) const;
  void warn(const Node& node, const std::string& message) const;

  /// Calls `read` for a part of the document on which other parts do not depend. If `read` fails,
  /// adds the error to the problems and returns false.
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

  /// Describes the node in messages: "'abc'", "a list", "nothing".
  static std::string found(const Node& node);

  /// Reads a text. If the node is not a text, the error says that `what` was expected.
  std::string text(const Node& node, std::string_view what) const;
  bool boolean(const Node& node) const;
  /// Reads a decimal number, or a hexadecimal number that begins with 0x.
  static std::optional<uint64_t> parse_number(std::string_view text);
  uint64_t number(const Node& node, uint64_t least, uint64_t most) const;
  /// Reads "5", "3-7", "10-", or a list of these. All numbers must be from `least` to `most`.
  engine::faults::Ranges ranges(const Node& node, uint64_t least, uint64_t most) const;
  /// Reads "1.5ms": a number and ns, us, ms, s or min.
  engine::Duration duration(const Node& node) const;
  /// Reads "0.25" or "25%".
  double probability(const Node& node) const;
  /// Reads "10Gbit/s": a number and bit/s, kbit/s, Mbit/s or Gbit/s.
  uint64_t bandwidth(const Node& node) const;
  /// Reads "100KiB": a number and B, KB, MB, GB, KiB, MiB or GiB. A number without a unit is in
  /// bytes.
  uint64_t size(const Node& node) const;
  /// Reads one of the names, and returns its value.
  uint32_t name(const Node& node, const Names& names) const;
  /// Reads one of the names or a list of them, and returns the values.
  std::vector<uint32_t> name_list(const Node& node, const Names& names) const;
  /// Returns the items of a list, or the node itself if it is not a list.
  std::span<const Node> items(const Node& node, std::string_view what) const;
  /// Reads up to `most` bytes: a text, or "0x" and pairs of hexadecimal digits.
  std::vector<uint8_t> bytes(const Node& node, size_t most) const;

  /// Returns "; did you mean 'drop'?" with the name in `known` that is similar to the text; "" if
  /// there is none.
  static std::string suggestion(std::string_view text, std::span<const std::string_view> known);

 private:
  void add(Problem problem) const;

  std::vector<Problem>& problems_;
};

/// Returns "a, b and c".
std::string listing(std::span<const std::string_view> words);

}  // namespace rocemu::scenario
