// The definition of a rule of the verbs sanitizer. Each rule is one file in rules/, and has one row
// in rules.cc: options, `rocemu explain`, reports and docs/sanitizer.md take their texts from this
// definition.
#pragma once

#include <cstdint>
#include <string_view>

namespace rocemu::sanitizer {

class Host;
struct WantingCheck;

/// kError: wrong by the specification or a man page, or certain to lose data. kWarning: legal, and
/// known to lose or corrupt data on some NIC.
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
  /// Creates the check of one program; null if the NIC checks the rule (nic.h).
  WantingCheck (*make)(Host&) = nullptr;
  /// False if the rule is checked only when it, or "all", is requested.
  bool is_default = true;
};

}  // namespace rocemu::sanitizer
