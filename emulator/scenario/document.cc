#include "emulator/scenario/document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

namespace rocemu::scenario {
namespace {

constexpr size_t kDeepest = 16;  // a rule in a file has 7 levels at most
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// Is thrown to stop parsing the text.
struct Stop {};

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

/// Returns a line without its line end, which may be that of Windows. `number` counts from 1.
std::string_view line_of(std::string_view text, int number) {
  text = without_byte_order_mark(text);
  for (int line = 1; line < number; ++line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

/// Returns the number of bytes of the UTF-8 character at the beginning of the text; 0 if the text
/// does not begin with a valid character.
size_t character_size(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t size = first < 0x80   ? 1
                      : first < 0xc2 ? 0
                      : first < 0xe0 ? 2
                      : first < 0xf0 ? 3
                      : first < 0xf5 ? 4
                                     : 0;
  if (size == 0 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if (!continues_character(text[i])) return 0;
  }
  return size;
}

/// Finds a character that YAML does not allow. The only control characters that YAML allows are
/// tabs and line ends (YAML 1.2, 5.1). yaml-cpp takes some control characters for the end of the
/// text, and changes others.
std::optional<Problem> find_foreign_character(std::string_view text) {
  text = without_byte_order_mark(text);
  SourceLocation location{1, 1};
  while (!text.empty()) {
    const size_t size = character_size(text);
    const auto c = static_cast<unsigned char>(text[0]);
    if (size == 0) {
      return Problem{location,
                     fmt::format("the byte 0x{:02x} is not UTF-8 text; save the file as UTF-8", c)};
    }
    const bool ends_line = c == '\r' && text.size() > 1 && text[1] == '\n';
    if ((c < 0x20 && c != '\n' && c != '\t' && !ends_line) || c == 0x7f) {
      return Problem{location,
                     fmt::format("the control character 0x{:02x} is not allowed here", c)};
    }
    text.remove_prefix(size);
    location = c == '\n' ? SourceLocation{location.line + 1, 1}
                         : SourceLocation{location.line, location.column + 1};
  }
  return std::nullopt;
}

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, std::vector<Problem>& problems)
      : text_(text), problems_(problems) {}

  Node take_root() { return std::move(root_); }
  SourceLocation location_of(const YAML::Mark& mark) {
    // yaml-cpp gives columns in bytes, and Place has them in characters. The marks arrive in
    // ascending order, so the search continues from the line of the previous mark.
    if (mark.line < line_) line_ = 0, rest_ = without_byte_order_mark(text_);
    for (; line_ < mark.line; ++line_) {
      rest_.remove_prefix(std::min(rest_.size(), rest_.find('\n') + 1));
    }
    const std::string_view before = rest_.substr(0, static_cast<size_t>(std::max(mark.column, 0)));
    const auto inner = std::ranges::count_if(before, continues_character);
    return {mark.line + 1, mark.column + 1 - static_cast<int>(inner)};
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    problems_.push_back(
        {location_of(mark),
         "the line begins a second YAML document, but a scenario has only one; remove "
         "the line '---'"});
    throw Stop();
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(Node::of(Node::Kind::kNothing, check(mark, "", anchor)));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    const SourceLocation location = location_of(mark);
    complain(location, "aliases ('*') are not allowed: write out the value");
    add(Node::of(Node::Kind::kBroken, location));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    add(Node::of(Node::Kind::kScalar, check(mark, tag, anchor), value));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::of(Node::Kind::kList, check(mark, tag, anchor)));
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::of(Node::Kind::kMapping, check(mark, tag, anchor)));
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    std::optional<Node> key;           // of a mapping: the key whose value is next
    std::map<std::string, int> lines;  // of its keys
  };

  void complain(const SourceLocation& location, std::string message) {
    problems_.push_back({location, std::move(message)});
    if (problems_.size() >= kMaxProblems) throw Stop();
  }

  SourceLocation check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    const SourceLocation location = location_of(mark);
    if (anchor != 0) complain(location, "anchors ('&') are not allowed: write out the value");
    const bool is_tagged = !tag.empty() && tag != "?" && tag != "!";  // "!": it is quoted
    if (is_tagged) complain(location, fmt::format("tags ('{}') are not allowed", tag));
    return location;
  }

  void open(Node node) {
    if (open_.size() >= kDeepest) {
      problems_.push_back(
          {node.location, fmt::format("the values are nested more than {} levels deep", kDeepest)});
      throw Stop();
    }
    open_.push_back({std::move(node), {}, {}});
  }
  void close() {
    Node node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }
  void add(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& in = open_.back();
    if (in.node.is_list()) {
      in.node.items.push_back(std::move(node));
    } else if (!in.key) {
      in.key = std::move(node);
    } else {
      add_entry(in, std::move(node));
      in.key.reset();
    }
  }
  void add_entry(Open& in, Node value) {
    Node& key = *in.key;
    if (key.is_scalar() && key.text == "<<") {
      complain(key.location, "merge keys ('<<') are not allowed: write out the keys");
      return;
    }
    if (key.is_scalar()) {
      const auto [other, is_new] = in.lines.emplace(key.text, key.location.line);
      if (!is_new) {
        complain(key.location,
                 fmt::format("'{}' is given twice, first in line {}", key.text, other->second));
        return;
      }
    }
    in.node.entries.push_back({std::move(key), std::move(value)});
  }

  std::string_view text_;
  std::string_view rest_ = without_byte_order_mark(text_);  // from line_ on
  int line_ = 0;
  std::vector<Problem>& problems_;
  int documents_ = 0;
  std::vector<Open> open_;
  Node root_;
};

/// Finds the likely reason why a text is not YAML: a tab in its indentation.
std::optional<Problem> find_tab(std::string_view text, int line) {
  for (int number : {line, line - 1, line + 1}) {
    if (number < 1) continue;
    const std::string_view content = line_of(text, number);
    const size_t indent = std::min(content.find_first_not_of(" \t"), content.size());
    const size_t tab = content.find('\t');
    if (tab < indent) {
      return Problem{{number, static_cast<int>(tab) + 1},
                     "the indentation has a tab; YAML needs spaces"};
    }
  }
  return std::nullopt;
}

/// Returns the text with tabs and line ends replaced by the escape sequences of C.
std::string visible(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\t') {
      result += "\\t";
    } else if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace

Node Node::of(Kind kind, SourceLocation location, std::string text) {
  Node node;
  node.kind = kind;
  node.location = location;
  node.text = std::move(text);
  return node;
}

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key.is_scalar() && entry.key.text == key) return &entry.value;
  }
  return nullptr;
}

Node parse_document(std::string_view text, std::vector<Problem>& problems) {
  if (auto foreign = find_foreign_character(text)) {
    problems.push_back(std::move(*foreign));
    return Node::of(Node::Kind::kBroken, {});
  }
  TreeBuilder builder(text, problems);
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Stop&) {
    return Node::of(Node::Kind::kBroken, {});
  } catch (const YAML::Exception& error) {
    const SourceLocation location =
        error.mark.is_null() ? SourceLocation{1, 1} : builder.location_of(error.mark);
    auto tab = find_tab(text, location.line);
    problems.push_back(tab ? std::move(*tab) : Problem{location, "this is not YAML: " + error.msg});
    return Node::of(Node::Kind::kBroken, {});
  }
  return builder.take_root();
}

std::string describe(const Problem& problem, std::string_view file, std::string_view text) {
  const std::string_view kind = problem.is_warning ? "warning: " : "";
  const std::string message = visible(problem.message);
  if (problem.location.line == 0) return fmt::format("{}: {}{}", file, kind, message);
  std::string result = fmt::format("{}:{}:{}: {}{}", file, problem.location.line,
                                   problem.location.column, kind, message);
  // The numbers of characters of a long line that are shown before and after the column. No
  // character is split.
  constexpr int kBefore = 60, kAfter = 40;
  std::string source, marker;
  int column = 0;
  for (const char c : line_of(text, problem.location.line)) {
    if (!continues_character(c)) ++column;
    if (column < problem.location.column - kBefore || column > problem.location.column + kAfter)
      continue;
    source += c;
    if (column < problem.location.column && !continues_character(c))
      marker += c == '\t' ? '\t' : ' ';
  }
  if (!source.empty()) result += fmt::format("\n    {}\n    {}^", source, marker);
  return result;
}

}  // namespace rocemu::scenario
