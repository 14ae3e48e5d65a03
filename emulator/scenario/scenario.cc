#include "emulator/scenario/scenario.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "emulator/scenario/node_reader.h"
#include "emulator/scenario/rule_keys.h"

namespace rocemu::scenario {
namespace {

using engine::faults::Effects;
using engine::faults::Rule;
using engine::faults::RuleSet;
using engine::faults::Where;
using YAML::Node;

constexpr size_t kLongestText = 1 << 20;
constexpr size_t kMostRules = 10000;
constexpr size_t kLongestName = 200;

constexpr std::array<std::string_view, 3> kRuleKeys = {"on", "name", "do"};
constexpr std::array<std::string_view, 3> kFileKeys = {"name", "description", "rules"};

/// Effects that cannot be had together.
void check_consistency(const NodeReader& reader, const Node& node, const Rule& rule) {
  const Effects& effects = rule.effects;
  const bool moves =
      effects.delay != engine::Duration{} || effects.duplicate != 0 || effects.reorder != 0;
  if (effects.drop && (moves || effects.corrupt || !effects.rewrite.empty() ||
                       effects.latency != engine::Duration{} || effects.bits_per_second != 0)) {
    reader.fail(node, "what is dropped can not be delayed, doubled, reordered or changed as well");
  }
  if (effects.reject && moves) {
    reader.fail(node, "what is rejected does not arrive: no delay, duplicate or reorder");
  }
  const int answers = (effects.rnr ? 1 : 0) + (effects.answer ? 1 : 0) + (effects.silent ? 1 : 0);
  if (answers > 1) reader.fail(node, "a request gets one of rnr, nak and silent");
  if (effects.drop && (effects.status || effects.overrun || effects.hold != 0 || effects.event ||
                       effects.cm_event)) {
    reader.fail(node, "what is dropped can not be changed or held as well");
  }
  if (effects.vendor_error != 0 && !effects.status) {
    reader.fail(node, "vendor_err is for a status: say which");
  }
  const bool delivers_cm = effects.cm_event || effects.raise_cm;
  if (rule.where == Where::kNow && effects.cm_status && !delivers_cm) {
    reader.fail(node, "status is for raise_cm: say which event");
  }
  if (rule.which.kinds && rule.which.kinds->none()) {
    reader.fail(node, "this transport has no such opcode");
  }
}

void read_effects(Reading in, const Node& node, const Node& rule_node) {
  if (!node.IsDefined() || node.IsNull()) {
    in.reader.fail(rule_node, "a rule says what to do: do: drop, for example");
  }
  if (node.IsScalar()) {
    read_flag(in, node);
  } else if (node.IsSequence()) {
    for (const Node& item : node) {
      if (item.IsMap()) {
        read_keys(in, item, effect_keys(), {});
      } else {
        read_flag(in, item);
      }
    }
    if (node.size() == 0) in.reader.fail(node, "nothing is to be done; for example do: drop");
  } else {
    if (node.size() == 0) in.reader.fail(node, "nothing is to be done; for example do: drop");
    read_keys(in, node, effect_keys(), {});
  }
  check_consistency(in.reader, node, in.rule);
}

Rule read_rule(const NodeReader& reader, const Node& node) {
  if (!node.IsMap()) {
    reader.fail(node, fmt::format("expected a rule such as {{on: frame, opcode: ACK, do: drop}}, "
                                  "found {}",
                                  NodeReader::found(node)));
  }
  const Node on = node["on"];
  if (!on.IsDefined()) {
    reader.fail(node,
                fmt::format("a rule says where it looks: on: {}", listing(kPlaceNames.texts())));
  }
  Rule rule;
  rule.where = static_cast<Where>(reader.name(on, kPlaceNames));
  if (const Node name = node["name"]) {
    rule.name = reader.text(name, "a name");
    if (rule.name.empty() || rule.name.size() > kLongestName) {
      reader.fail(name, fmt::format("a name has 1 to {} characters", kLongestName));
    }
  }
  const Reading reading{reader, rule};
  read_keys(reading, node, selection_keys(), kRuleKeys);
  read_effects(reading, node["do"], node);
  return rule;
}

Node load(const NodeReader& reader, std::string_view text) {
  if (text.size() > kLongestText) {
    reader.fail(YAML::Mark::null_mark(), fmt::format("a scenario has at most {} bytes, here are {}",
                                                     kLongestText, text.size()));
  }
  try {
    return YAML::Load(std::string(text));
  } catch (const YAML::Exception& error) {
    reader.fail(error.mark, "this is no YAML: " + error.msg);
  }
}

/// yaml-cpp throws of its own what it does not like on the way.
template <class Read>
auto with_places(const NodeReader& reader, Read read) {
  try {
    return read();
  } catch (const YAML::Exception& error) {
    reader.fail(error.mark, error.msg);
  }
}

void read_file(const NodeReader& reader, const Node& root, Scenario& scenario, RuleSet& rules) {
  if (!root.IsMap()) {
    reader.fail(root, fmt::format("a scenario is a mapping with the key rules, and perhaps name "
                                  "and description; found {}",
                                  NodeReader::found(root)));
  }
  for (const auto& entry : root) {
    const Node& key = entry.first;
    const std::string word = reader.text(key, "a key");
    if (std::ranges::find(kFileKeys, word) != kFileKeys.end()) continue;
    std::string near = NodeReader::suggestion(word, kFileKeys);
    if (near.empty()) near = "; there are " + listing(kFileKeys);
    reader.fail(key, fmt::format("a scenario has no key {}{}", NodeReader::found(key), near));
  }
  if (root["name"]) scenario.name = reader.text(root["name"], "a name");
  if (root["description"]) scenario.description = reader.text(root["description"], "a text");
  const Node list = root["rules"];
  if (!list.IsDefined()) reader.fail(root, "the scenario has no rules: rules: [...]");
  if (!list.IsSequence() && !list.IsNull()) {
    reader.fail(list, fmt::format("expected a list of rules, found {}", NodeReader::found(list)));
  }
  if (list.size() > kMostRules) {
    reader.fail(list, fmt::format("a scenario has at most {} rules", kMostRules));
  }
  std::map<std::string, int> lines;
  for (const Node& node : list) {
    Rule rule = read_rule(reader, node);
    if (rule.name.empty()) rule.name = fmt::format("rule {}", rules.rules.size() + 1);
    const auto [other, is_new] = lines.emplace(rule.name, node.Mark().line + 1);
    if (!is_new) {
      reader.fail(node,
                  fmt::format("the rule in line {} is named '{}' too", other->second, rule.name));
    }
    rules.rules.push_back(std::move(rule));
  }
}

}  // namespace

std::string_view name_of(Where where) {
  return kPlaceNames.names[static_cast<size_t>(where)].text;
}

Scenario parse_scenario(std::string_view text, std::string_view file) {
  const NodeReader reader(file);
  return with_places(reader, [&] {
    Scenario scenario;
    auto rules = std::make_shared<RuleSet>();
    rules->text = text;
    read_file(reader, load(reader, text), scenario, *rules);
    scenario.rules = std::move(rules);
    return scenario;
  });
}

std::shared_ptr<const RuleSet> parse_rule(std::string_view text) {
  const NodeReader reader("rule");
  return with_places(reader, [&] {
    auto rules = std::make_shared<RuleSet>();
    rules->text = text;
    Rule rule = read_rule(reader, load(reader, text));
    if (rule.name.empty()) rule.name = std::string(text.substr(0, kLongestName));
    rules->rules.push_back(std::move(rule));
    return std::shared_ptr<const RuleSet>(std::move(rules));
  });
}

std::shared_ptr<const RuleSet> parse_rules(std::string_view text) {
  try {
    return parse_scenario(text, "scenario").rules;
  } catch (const ScenarioError&) {
    return parse_rule(text);  // a rule has keys that no scenario has
  }
}

void check_devices(const RuleSet& rules, std::span<const std::string> devices,
                   std::string_view file) {
  std::vector<std::string_view> known(devices.begin(), devices.end());
  const auto check = [&](const Rule& rule, const std::optional<std::string>& name) {
    if (!name || std::ranges::find(known, *name) != known.end() || *name == "outside") return;
    throw ScenarioError(fmt::format("{}: rule '{}': there is no device '{}', but {}", file,
                                    rule.name, *name, listing(known)));
  };
  for (const Rule& rule : rules.rules) {
    check(rule, rule.which.device);
    check(rule, rule.which.to);
  }
}

Scenario load_scenario(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char buffer[65536];
  while (file && text.size() <= kLongestText) {
    file.read(buffer, sizeof buffer);
    text.append(buffer, static_cast<size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad() || (text.empty() && errno == EISDIR)) {
    throw ScenarioError(fmt::format("cannot read the scenario {}: {}", path,
                                    std::strerror(errno != 0 ? errno : EIO)));
  }
  return parse_scenario(text, path);
}

}  // namespace rocemu::scenario
