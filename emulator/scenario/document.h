// Reads a YAML text as a tree whose nodes have their places in the text. Only the part of YAML is
// allowed that all readers of scenarios understand: no anchors, aliases, tags, merge keys, second
// documents, or repeated keys.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rocemu::scenario {

/// A location in a text. The line and the column count from 1, and the column counts characters.
/// Line 0 means no particular location.
struct SourceLocation {
  int line = 0;
  int column = 0;
};

struct Entry;

struct Node {
  enum class Kind : uint8_t {
    kNothing,  // an empty value, ~ or null
    kScalar,
    kList,
    kMapping,
    kBroken,  // its problem was already reported
  };
  Kind kind = Kind::kNothing;
  SourceLocation location;
  std::string text;            // of a scalar
  std::vector<Node> items;     // of a list
  std::vector<Entry> entries;  // of a mapping, in the text's order

  static Node of(Kind kind, SourceLocation location, std::string text = "");

  bool is_nothing() const { return kind == Kind::kNothing; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_mapping() const { return kind == Kind::kMapping; }
  /// Returns the value of that key; null if there is none.
  const Node* find(std::string_view key) const;
};

struct Entry {
  Node key;
  Node value;
};

/// An error or, if `is_warning` is true, something that is probably not intended
struct Problem {
  SourceLocation location;
  std::string message;
  bool is_warning = false;
};

/// The number of problems after which reading of a file stops, since a longer list would not help
/// its author.
inline constexpr size_t kMaxProblems = 100;

/// Parses the only YAML document of the text. Adds problems to `problems`; the tree then has only
/// the valid parts. Never throws, whatever the text is.
Node parse_document(std::string_view text, std::vector<Problem>& problems);

/// Returns "FILE:LINE:COLUMN: message", and below it the line of the text with a caret under the
/// column.
std::string describe(const Problem& problem, std::string_view file, std::string_view text);

}  // namespace rocemu::scenario
