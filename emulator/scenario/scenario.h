// Scenario files: what docs/scenarios.md describes, read from YAML into rules.
#pragma once

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "emulator/engine/faults/rule.h"

namespace rocemu::scenario {

/// "FILE:LINE:COLUMN: what was found, and what is allowed".
class ScenarioError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Scenario {
  std::string name;
  std::string description;
  /// Never null. Its text is that of the file, from which parse_scenario() makes the same again.
  std::shared_ptr<const engine::faults::RuleSet> rules;
};

/// `file` is only for messages. Throws ScenarioError.
Scenario parse_scenario(std::string_view text, std::string_view file);

/// One rule in YAML, "{on: frame, opcode: ACK, do: drop}". If it has no name, its text is its name.
/// Throws ScenarioError.
std::shared_ptr<const engine::faults::RuleSet> parse_rule(std::string_view text);

/// The rules of either kind of text, as RuleSet::text has it. Throws ScenarioError.
std::shared_ptr<const engine::faults::RuleSet> parse_rules(std::string_view text);

/// Throws ScenarioError if a rule names a device that there is not.
void check_devices(const engine::faults::RuleSet& rules, std::span<const std::string> devices,
                   std::string_view file);

/// Reads the file, checks and parses it. Throws ScenarioError.
Scenario load_scenario(const std::string& path);

/// "frame", "completion" ...
std::string_view name_of(engine::faults::Where where);

}  // namespace rocemu::scenario
