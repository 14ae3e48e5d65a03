#include "emulator/scenario/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "emulator/os/text_file.h"
#include "emulator/scenario/node_reader.h"
#include "emulator/scenario/rule_keys.h"

namespace rocemu::scenario {
namespace {

using engine::faults::Rule;
using engine::faults::RuleSet;
using engine::faults::Where;

constexpr size_t kMaxText = 1 << 20;
constexpr size_t kMaxRules = 10000;
constexpr size_t kMaxName = 200;
/// The first line of RuleSet::text if the rules come from several files. Then, for each file, a
/// line "LENGTH LABEL\n" and the text of the file follow.
constexpr std::string_view kSeveral = "#!rocemu several scenarios\n";

constexpr std::array<std::string_view, 3> kRuleKeys = {"on", "name", "do"};
constexpr std::array<std::string_view, 4> kFileKeys = {"name", "description", "group", "rules"};

/// Excludes flushed completions from a rule that makes completions fail, unless the rule selects a
/// status, such as WR_FLUSH_ERR. Such a rule puts the QP into the error state, and the flushed
/// completions are only a consequence (IBTA vol 1, 10.3.1.5).
void leave_out_flushes(Rule& rule) {
  const bool fails =
      rule.effects.status || (rule.effects.raise && engine::faults::fails_qp(*rule.effects.raise));
  if (rule.where != Where::kCompletion || !fails || rule.which.statuses) return;
  rule.which.statuses =
      std::bitset<32>().set().reset(static_cast<size_t>(abi::WcStatus::kWrFlushErr));
}

void read_effects(Reading in, const Node* node, const Node& rule_node) {
  if (node == nullptr || node->is_nothing()) {
    in.reader.fail(rule_node, "a rule needs an effect; for example do: drop");
  }
  std::set<std::string> seen;
  const auto read = [&](const Node& item) {
    if (item.is_mapping() && !item.entries.empty()) {
      read_keys(in, item, effect_keys(), {}, seen);
    } else if (item.is_scalar()) {
      read_flag(in, item, seen);
    } else {
      in.reader.fail(item, "'do' is empty; for example do: drop");
    }
  };
  if (!node->is_list() || node->items.empty()) return read(*node);
  for (const Node& item : node->items) in.reader.attempt([&] { read(item); });
}

/// Returns whether the text has a control character (C0, DEL or C1), which a terminal may
/// interpret. Such characters come from escapes: find_foreign_character() refuses raw ones.
/// yaml-cpp converts
/// "\N", U+0085, to a byte that is not UTF-8, so such bytes count as control characters, too.
bool has_control_character(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    const bool is_continuation = (c & 0xc0) == 0x80;
    if (c < 0x20 || c == 0x7f || is_continuation || (c == 0xc2 && next < 0xa0)) return true;
    i += c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
  }
  return false;
}

/// Returns whether the text can be a rule's name: one line, which can be printed and given to
/// `rocemu inject --clear`.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && !has_control_character(text);
}

/// Returns a name that is made from a rule's text. Long texts are shortened between two characters,
/// and line ends become spaces.
std::string name_from(std::string_view text) {
  size_t size = std::min(text.size(), kMaxName);
  while (size > 0 && size < text.size() &&
         (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) {
    --size;
  }
  std::string name(text.substr(0, size));
  std::ranges::replace_if(
      name, [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
  return name;
}

Rule read_rule(const NodeReader& reader, const std::vector<Problem>& problems, const Node& node) {
  if (!node.is_mapping()) {
    reader.fail(node, fmt::format("expected a rule such as {{on: frame, opcode: ACK, do: drop}}, "
                                  "found {}",
                                  NodeReader::found(node)));
  }
  Rule rule;
  if (const Node* name = node.find("name")) {
    reader.attempt([&] {
      rule.name = reader.text(*name, "a name");
      if (!is_name(rule.name)) {
        reader.fail(*name, fmt::format("a name must be one line of 1 to {} characters, without "
                                       "control characters",
                                       kMaxName));
      }
    });
  }
  const Node* on = node.find("on");
  if (on == nullptr) {
    reader.fail(node, fmt::format("a rule needs a place: on: {}", listing(kPlaceNames.texts())));
  }
  rule.where = static_cast<Where>(reader.name(*on, kPlaceNames));
  const Reading reading{reader, rule};
  const size_t before = problems.size();
  std::set<std::string> seen;
  read_keys(reading, node, selection_keys(), kRuleKeys, seen);
  if (seen.contains("between") && (seen.contains("from") || seen.contains("to"))) {
    reader.complain(node, "'between' names both devices; leave out 'from' and 'to'");
  }
  const Node* effects = node.find("do");
  reader.attempt([&] { read_effects(reading, effects, node); });
  if (problems.size() == before) check_consistency(reading, *effects);
  leave_out_flushes(rule);
  return rule;
}

void read_rules(const NodeReader& reader, const std::vector<Problem>& problems, const Node& list,
                RuleSet& rules) {
  if (!list.is_list() && !list.is_nothing()) {
    reader.fail(list, fmt::format("expected a list of rules, found {}", NodeReader::found(list)));
  }
  if (list.items.size() > kMaxRules) {
    reader.fail(list, fmt::format("a scenario has at most {} rules", kMaxRules));
  }
  std::map<std::string, int> lines;
  size_t number = 0;
  for (const Node& node : list.items) {
    ++number;
    reader.attempt([&] {
      Rule rule = read_rule(reader, problems, node);
      if (rule.name.empty()) rule.name = fmt::format("rule {}", number);
      const auto [other, is_new] = lines.emplace(rule.name, node.location.line);
      if (!is_new) {
        reader.fail(node,
                    fmt::format("the rule in line {} is named '{}' too", other->second, rule.name));
      }
      rules.rules.push_back(std::move(rule));
    });
  }
}

void read_file(const NodeReader& reader, const std::vector<Problem>& problems, const Node& root,
               Scenario& scenario, RuleSet& rules) {
  if (!root.is_mapping()) {
    reader.fail(
        root,
        fmt::format("a scenario must be a mapping with the key rules, and optionally name and "
                    "description; found {}",
                    NodeReader::found(root)));
  }
  const auto check_key = [&](const Node& key) {
    const std::string word = reader.text(key, "a key");
    if (std::ranges::find(kFileKeys, word) != kFileKeys.end()) return;
    std::string near = NodeReader::suggestion(word, kFileKeys);
    if (near.empty()) near = "; there are " + listing(kFileKeys);
    reader.fail(key, fmt::format("a scenario has no key {}{}", NodeReader::found(key), near));
  };
  bool has_strange_keys = false;
  for (const Entry& entry : root.entries) {
    has_strange_keys |= !reader.attempt([&] { check_key(entry.key); });
  }
  const auto read_text = [&](const char* key, std::string& text) {
    const Node* node = root.find(key);
    if (node == nullptr) return;
    reader.attempt([&] { text = reader.text(*node, "a text"); });
  };
  read_text("name", scenario.name);
  read_text("description", scenario.description);
  std::string group;  // for the list of the library, which reads it elsewhere
  read_text("group", group);
  const Node* list = root.find("rules");
  if (list != nullptr) {
    reader.attempt([&] { read_rules(reader, problems, *list, rules); });
  } else if (!has_strange_keys) {  // one of them may have meant 'rules'
    reader.fail(root, "the scenario has no rules; write them as rules: [...]");
  }
}

bool is_all_warnings(const std::vector<Problem>& problems) {
  return std::ranges::all_of(problems, &Problem::is_warning);
}

/// Parses the text as a YAML document, and calls `read(reader, problems, root, scenario, rules)` to
/// read it.
template <class Read>
Scenario parse(std::string_view text, std::string_view file, Read read) {
  Scenario scenario;
  auto rules = std::make_shared<RuleSet>();
  std::vector<Problem> problems;
  if (text.size() > kMaxText) {
    problems.push_back({{},
                        fmt::format("a scenario has at most {} bytes, but this one has {}",
                                    kMaxText, text.size())});
  } else {
    rules->text = text;
    const Node root = parse_document(text, problems);
    const NodeReader reader(problems);
    try {
      reader.attempt([&] { read(reader, problems, root, scenario, *rules); });
    } catch (const NodeReader::TooManyProblems&) {
    }
  }
  std::string rest;
  if (problems.size() >= kMaxProblems && !is_all_warnings(problems)) {
    rest = fmt::format("\n{}: there may be more errors", file);
  }
  std::ranges::stable_sort(problems, {}, [](const Problem& problem) {
    return std::pair(problem.location.line, problem.location.column);
  });
  std::string mistakes;
  for (const Problem& problem : problems) {
    std::string description = describe(problem, file, text);
    if (problem.is_warning) {
      scenario.warnings.push_back(std::move(description));
    } else {
      mistakes += (mistakes.empty() ? "" : "\n") + description;
    }
  }
  if (!mistakes.empty()) throw ScenarioError(mistakes + rest, std::move(problems));
  scenario.rules = std::move(rules);
  return scenario;
}

/// The text of a scenario, its file for messages, and its label for the names of rules
struct Source {
  std::string file;
  std::string label;
  std::string_view text;
};

Scenario combine(std::span<const Source> sources) {
  Scenario all;
  auto rules = std::make_shared<RuleSet>();
  rules->text = kSeveral;
  std::map<std::string, std::string> files;  // by the scenarios' names
  std::set<std::string> names;
  for (const Source& source : sources) {
    Scenario one = parse_scenario(source.text, source.file);
    if (!one.name.empty()) {
      const auto [other, is_new] = files.emplace(one.name, source.file);
      if (!is_new) {
        throw ScenarioError(fmt::format("{} and {} are both named '{}'; name them differently",
                                        other->second, source.file, one.name));
      }
      all.name += (all.name.empty() ? "" : " + ") + one.name;
    }
    if (!one.description.empty()) {
      all.description += (all.description.empty() ? "" : " ") + one.description;
    }
    std::ranges::move(one.warnings, std::back_inserter(all.warnings));
    std::set<std::string> own;
    for (Rule rule : one.rules->rules) {
      if (names.contains(rule.name)) rule.name += " (" + source.label + ")";
      if (names.contains(rule.name) || !own.insert(rule.name).second) {
        throw ScenarioError(fmt::format(
            "{}: a rule named '{}' already exists; give it another name", source.file, rule.name));
      }
      rules->rules.push_back(std::move(rule));
    }
    names.merge(own);
    rules->text += fmt::format("{} {}\n{}", source.text.size(), source.label, source.text);
  }
  if (rules->rules.size() > kMaxRules) {
    throw ScenarioError(fmt::format("the scenarios together have more than {} rules", kMaxRules));
  }
  all.rules = std::move(rules);
  return all;
}

/// Parses the rules from the text that combine() created.
std::shared_ptr<const RuleSet> parse_several(std::string_view text) {
  std::vector<Source> sources;
  for (std::string_view rest = text.substr(kSeveral.size()); !rest.empty();) {
    size_t length = 0;
    const size_t line_end = rest.find('\n');
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    const auto digits = static_cast<size_t>(end - rest.data());
    if (error != std::errc() || line_end == std::string_view::npos || digits >= line_end ||
        rest[digits] != ' ' || length > rest.size() - line_end - 1) {
      throw ScenarioError("the text of several scenarios is truncated");
    }
    const std::string label(rest.substr(digits + 1, line_end - digits - 1));
    sources.push_back({label, label, rest.substr(line_end + 1, length)});
    rest.remove_prefix(line_end + 1 + length);
  }
  return combine(sources).rules;
}

/// The rules that load_scenarios() has read last, until parse_rules() needs the same. The NIC of a
/// run is a fork of the process that has read the scenario.
thread_local std::shared_ptr<const RuleSet> read_last;

}  // namespace

std::string_view name_of(Where where) {
  return kPlaceNames.names[static_cast<size_t>(where)].text;
}

Scenario parse_scenario(std::string_view text, std::string_view file) {
  return parse(text, file, read_file);
}

std::shared_ptr<const RuleSet> parse_rule(std::string_view text,
                                          std::vector<std::string>* warnings) {
  Scenario scenario = parse(text, "rule",
                            [&](const NodeReader& reader, const std::vector<Problem>& problems,
                                const Node& root, Scenario&, RuleSet& rules) {
                              Rule rule = read_rule(reader, problems, root);
                              if (rule.name.empty()) rule.name = name_from(text);
                              rules.rules.push_back(std::move(rule));
                            });
  if (warnings != nullptr) std::ranges::move(scenario.warnings, std::back_inserter(*warnings));
  return std::move(scenario.rules);
}

std::shared_ptr<const RuleSet> parse_rules(std::string_view text) {
  if (auto rules = std::exchange(read_last, nullptr); rules != nullptr && rules->text == text)
    return rules;
  if (text.starts_with(kSeveral)) return parse_several(text);
  try {
    return parse_scenario(text, "scenario").rules;
  } catch (const ScenarioError&) {
    return parse_rule(text);  // the keys of a rule differ from those of a scenario
  }
}

void check_devices(const RuleSet& rules, std::span<const std::string> devices,
                   std::string_view file) {
  std::vector<std::string_view> known(devices.begin(), devices.end());
  std::string mistakes;
  const auto check = [&](const Rule& rule, const std::optional<std::string>& name) {
    if (!name || std::ranges::find(known, *name) != known.end() || *name == "outside") return;
    mistakes += fmt::format("{}{}: rule '{}': there is no device '{}'; the devices are {}",
                            mistakes.empty() ? "" : "\n", file, rule.name, *name, listing(known));
  };
  for (const Rule& rule : rules.rules) {
    check(rule, rule.which.device);
    check(rule, rule.which.to);
  }
  if (!mistakes.empty()) throw ScenarioError(mistakes);
}

void check_network(const RuleSet& rules, const engine::NetworkPlan* network,
                   std::string_view file) {
  std::string mistakes;
  for (const Rule& rule : rules.rules) {
    if (rule.where != Where::kNetwork) continue;
    const std::string problem =
        network == nullptr ? "on: network needs a simulated network; give one with --fabric"
                           : network->problem_of(*rule.which.network, rule.effects.network);
    if (problem.empty()) continue;
    mistakes +=
        fmt::format("{}{}: rule '{}': {}", mistakes.empty() ? "" : "\n", file, rule.name, problem);
  }
  if (!mistakes.empty()) throw ScenarioError(mistakes);
}

std::string read_scenario(const std::string& path) {
  try {
    return read_text_file(path, {.noun = "scenario", .most_bytes = kMaxText});
  } catch (const TextFileError& error) {
    throw ScenarioError(error.what());
  }
}

Scenario load_scenario(const std::string& path) {
  return parse_scenario(read_scenario(path), path);
}

namespace {

Scenario load_several(std::span<const std::string> paths) {
  std::set<std::filesystem::path> files;
  for (const std::string& path : paths) {
    std::error_code pathless;  // for example for a pipe, which /dev/fd/N names
    std::filesystem::path file = std::filesystem::weakly_canonical(path, pathless);
    if (pathless) file = path;
    if (!files.insert(std::move(file)).second) {
      throw ScenarioError(path + " is given twice");
    }
  }
  std::vector<std::string> texts;
  for (const std::string& path : paths) texts.push_back(read_scenario(path));
  std::vector<Source> sources;
  for (size_t i = 0; i < paths.size(); ++i) {
    sources.push_back(
        {paths[i], name_from(std::filesystem::path(paths[i]).stem().string()), texts[i]});
  }
  return combine(sources);
}

}  // namespace

Scenario load_scenarios(std::span<const std::string> paths) {
  Scenario scenario = paths.size() == 1 ? load_scenario(paths.front()) : load_several(paths);
  read_last = scenario.rules;
  return scenario;
}

}  // namespace rocemu::scenario
