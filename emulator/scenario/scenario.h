// Scenario files: what docs/scenarios.md describes, read from YAML into rules.
#pragma once

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/engine/faults/rule.h"
#include "emulator/scenario/document.h"

namespace rocemu::scenario {

/// All that is wrong with a text: of each mistake "FILE:LINE:COLUMN: what was found, and what is
/// allowed", and its line with a caret.
class ScenarioError : public std::runtime_error {
 public:
  explicit ScenarioError(const std::string& text, std::vector<Problem> problems = {})
      : std::runtime_error(text), problems_(std::move(problems)) {}
  /// Empty if the file could not be read at all.
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

struct Scenario {
  std::string name;
  std::string description;
  /// Never null. Its text is that of the file, from which parse_rules() makes the same again.
  std::shared_ptr<const engine::faults::RuleSet> rules;
  /// Warnings about rules that are valid but probably not intended, in the form of errors.
  std::vector<std::string> warnings;
};

/// `file` is only for messages. Throws ScenarioError.
Scenario parse_scenario(std::string_view text, std::string_view file);

/// One rule in YAML, "{on: frame, opcode: ACK, do: drop}". If it has no name, its text is its name.
/// What is probably not meant is added to `warnings`. Throws ScenarioError.
std::shared_ptr<const engine::faults::RuleSet> parse_rule(
    std::string_view text, std::vector<std::string>* warnings = nullptr);

/// The rules of any text that RuleSet::text has. Throws ScenarioError.
std::shared_ptr<const engine::faults::RuleSet> parse_rules(std::string_view text);

/// Throws ScenarioError if rules name devices that there are not.
void check_devices(const engine::faults::RuleSet& rules, std::span<const std::string> devices,
                   std::string_view file);

/// Reads the file, checks and parses it. Throws ScenarioError.
Scenario load_scenario(const std::string& path);

/// The rules of all files, in their order. A rule that has the name of one in a file before gets
/// the file's own behind it: "lost (rep-lost)". Throws ScenarioError.
Scenario load_scenarios(std::span<const std::string> paths);

/// The text that load_scenario() would parse. Throws ScenarioError.
std::string read_scenario(const std::string& path);

/// "frame", "completion" ...
std::string_view name_of(engine::faults::Where where);

}  // namespace rocemu::scenario
