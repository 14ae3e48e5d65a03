// Reads scenario files, which docs/scenarios.md describes, from YAML, and converts them to rules.
#pragma once

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/engine/base/simulated_network.h"
#include "emulator/engine/faults/rule.h"
#include "emulator/scenario/document.h"

namespace rocemu::scenario {

/// All mistakes in a text. For each one there is "FILE:LINE:COLUMN: what was found, and what is
/// allowed", and the line with a caret.
class ScenarioError : public std::runtime_error {
 public:
  explicit ScenarioError(const std::string& text, std::vector<Problem> problems = {})
      : std::runtime_error(text), problems_(std::move(problems)) {}
  /// Returns the problems; none if the file could not be read at all.
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

struct Scenario {
  std::string name;
  std::string description;
  /// The rules; never null. Their text is that of the file, and parse_rules() makes the same rules
  /// from it again.
  std::shared_ptr<const engine::faults::RuleSet> rules;
  /// Warnings about rules that are valid but probably not intended, in the form of errors.
  std::vector<std::string> warnings;
};

/// Reads a scenario. `file` is only for messages. Throws ScenarioError.
Scenario parse_scenario(std::string_view text, std::string_view file);

/// Reads one rule in YAML, such as "{on: frame, opcode: ACK, do: drop}". If it has no name, its
/// text becomes the name. Adds to `warnings` what is probably not intended. Throws ScenarioError.
std::shared_ptr<const engine::faults::RuleSet> parse_rule(
    std::string_view text, std::vector<std::string>* warnings = nullptr);

/// Reads the rules of any text that RuleSet::text can have. Throws ScenarioError.
std::shared_ptr<const engine::faults::RuleSet> parse_rules(std::string_view text);

/// Throws ScenarioError if a rule names a device that does not exist.
void check_devices(const engine::faults::RuleSet& rules, std::span<const std::string> devices,
                   std::string_view file);

/// Throws ScenarioError if rules are for a simulated network and `network` is null, or if they name
/// a part that it does not have.
void check_network(const engine::faults::RuleSet& rules, const engine::NetworkPlan* network,
                   std::string_view file);

/// Reads, checks and parses the file. Throws ScenarioError.
Scenario load_scenario(const std::string& path);

/// Returns the rules of all files, in their order. If a rule has the same name as a rule of an
/// earlier file, the name of its file is appended: "lost (rep-lost)". Throws ScenarioError.
Scenario load_scenarios(std::span<const std::string> paths);

/// Returns the text that load_scenario() would parse. Throws ScenarioError.
std::string read_scenario(const std::string& path);

/// Returns, for example, "frame" or "completion".
std::string_view name_of(engine::faults::Where where);

}  // namespace rocemu::scenario
