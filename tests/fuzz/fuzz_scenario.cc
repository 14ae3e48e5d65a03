// Fuzzes the scenario parser with text of any contents: the result is rules, or an error that names
// the place. If the rules are written and read again, they must be equal.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "emulator/scenario/scenario.h"

using namespace rocemu;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const scenario::Scenario scenario = scenario::parse_scenario(text, "f");
    const scenario::Scenario again = scenario::parse_scenario(scenario.rules->text, "f");
    if (again.rules->rules.size() != scenario.rules->rules.size()) std::abort();
    for (size_t i = 0; i < again.rules->rules.size(); ++i) {
      if (again.rules->rules[i].name != scenario.rules->rules[i].name) std::abort();
    }
  } catch (const scenario::ScenarioError& error) {
    if (std::string_view(error.what()).substr(0, 2) != "f:") std::abort();
  }
  try {
    scenario::parse_rule(text);
  } catch (const scenario::ScenarioError&) {
  }
  try {  // text of one file, of several files, or of a rule in a journal
    const auto rules = scenario::parse_rules(text);
    if (scenario::parse_rules(rules->text)->rules.size() != rules->rules.size()) std::abort();
  } catch (const scenario::ScenarioError&) {
  }
  return 0;
}
