// A YAML text as a tree, every node with its place. Scenarios are read by people, so only the part
// of YAML is allowed that says what it seems to say: no anchors, aliases, tags, merge keys, second
// documents, or keys that are there twice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rocemu::scenario {

/// In characters from 1; line 0 is no place in particular.
struct Place {
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
    kBroken,  // something that was complained about already
  };
  Kind kind = Kind::kNothing;
  Place place;
  std::string text;            // of a scalar
  std::vector<Node> items;     // of a list
  std::vector<Entry> entries;  // of a mapping, in the text's order

  static Node of(Kind kind, Place place, std::string text = "");

  bool is_nothing() const { return kind == Kind::kNothing; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_mapping() const { return kind == Kind::kMapping; }
  /// The value of that key; null if there is none.
  const Node* find(std::string_view key) const;
};

struct Entry {
  Node key;
  Node value;
};

/// Something that is wrong, or (`is_warning`) probably not meant.
struct Problem {
  Place place;
  std::string message;
  bool is_warning = false;
};

/// The number of problems after which a file is not read further; people read fewer at once.
inline constexpr size_t kMaxProblems = 100;

/// The text's only document. What is wrong is added to `problems`; the tree is of what could be
/// read then. It never throws, whatever the text.
Node parse_document(std::string_view text, std::vector<Problem>& problems);

/// "FILE:LINE:COLUMN: message", and below it the line of the text with a caret under the column.
std::string describe(const Problem& problem, std::string_view file, std::string_view text);

}  // namespace rocemu::scenario
