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

/// All errors in a text. what() has for each error "FILE:LINE:COLUMN: what was found, and what is
/// allowed", and the line with a caret.
class ScenarioError : public std::runtime_error {
 public:
  explicit ScenarioError(const std::string& text, std::vector<Problem> problems = {})
      : std::runtime_error(text), problems_(std::move(problems)) {}
  /// Returns the errors; none if the file could not be read at all.
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

struct Scenario {
  std::string name;
  std::string description;
  /// The rules; never null. RuleSet::text is the text of the file, from which parse_rules() creates
  /// the same rules again.
  std::shared_ptr<const engine::faults::RuleSet> rules;
  /// Warnings about rules that are valid but probably not intended, in the same format as errors.
  std::vector<std::string> warnings;
};

/// Reads a scenario from its text. `file` is the file name in messages. Throws ScenarioError.
Scenario parse_scenario(std::string_view text, std::string_view file);

/// Reads one rule in YAML, such as "{on: frame, opcode: ACK, do: drop}". If the rule has no name,
/// its text becomes the name. Adds warnings to `warnings`, unless it is null. Throws ScenarioError.
std::shared_ptr<const engine::faults::RuleSet> parse_rule(
    std::string_view text, std::vector<std::string>* warnings = nullptr);

/// Reads the rules from a text in any format that RuleSet::text can have. Throws ScenarioError.
std::shared_ptr<const engine::faults::RuleSet> parse_rules(std::string_view text);

/// Throws ScenarioError if a rule names a device that does not exist.
void check_devices(const engine::faults::RuleSet& rules, std::span<const std::string> devices,
                   std::string_view file);

/// Throws ScenarioError if there are rules for a simulated network and `network` is null, or if a
/// rule names a part that the network does not have.
void check_network(const engine::faults::RuleSet& rules, const engine::NetworkPlan* network,
                   std::string_view file);

/// Reads and parses the file. Throws ScenarioError.
Scenario load_scenario(const std::string& path);

/// Returns the rules of all files, in the order of the files. If an earlier file has a rule with
/// the same name, the name of the file is appended to the rule's name: "lost (rep-lost)". Throws
/// ScenarioError.
Scenario load_scenarios(std::span<const std::string> paths);

/// Returns the text of the scenario file. Throws ScenarioError.
std::string read_scenario(const std::string& path);

/// Returns the name of a place, such as "frame" or "completion".
std::string_view name_of(engine::faults::Where where);

}  // namespace rocemu::scenario
