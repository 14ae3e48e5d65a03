// Defines what a rule of the verbs sanitizer consists of. Each rule is a file in rules/ and a row
// in rules.cc. Options, `rocemu explain`, reports and docs/sanitizer.md take their texts from the
// rule.
#pragma once

#include <cstdint>
#include <string_view>

namespace rocemu::sanitizer {

class Host;
struct WantingCheck;

/// kError: the specification or a man page forbids it, or it is certain to lose data. kWarning: it
/// is allowed, but is known to lose or corrupt data on some NIC.
enum class Severity : uint8_t { kWarning, kError };

constexpr std::string_view name_of(Severity severity) {
  return severity == Severity::kError ? "error" : "warning";
}

struct Rule {
  std::string_view id;  // "mr-deregistered-in-use"
  Severity severity;
  std::string_view summary;  // a sentence: the mistake of the program
  std::string_view remedy;   // one or two sentences: the correct way
  std::string_view clause;   // the source
  /// Creates the check of this rule for one program. Null if the NIC checks the rule (nic.h).
  WantingCheck (*make)(Host&) = nullptr;
  /// If false, the rule is checked only if the user selects it, or "all".
  bool is_default = true;
};

}  // namespace rocemu::sanitizer
