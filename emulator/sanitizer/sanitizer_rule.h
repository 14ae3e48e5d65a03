// What a rule of the verbs sanitizer is. Each rule is one file in rules/, and has one row in
// rules.cc: options, `rocemu explain`, reports and docs/sanitizer.md take its words from here.
#pragma once

#include <cstdint>
#include <string_view>

namespace rocemu::sanitizer {

class Host;
struct WantingCheck;

/// kError: wrong by the specification or a man page, or certain to lose. kWarning: legal, and a
/// known way to lose or corrupt on some NIC.
enum class Severity : uint8_t { kWarning, kError };

constexpr std::string_view name_of(Severity severity) {
  return severity == Severity::kError ? "error" : "warning";
}

struct Rule {
  std::string_view id;  // "mr-deregistered-in-use"
  Severity severity;
  std::string_view summary;  // a sentence: what the program does wrong
  std::string_view remedy;   // a sentence or two: what is right
  std::string_view clause;   // where that is written
  /// Makes the check of one program; null if the NIC checks the rule (nic.h).
  WantingCheck (*make)(Host&) = nullptr;
  /// False: only if the rule, or "all", is asked for.
  bool is_default = true;
};

}  // namespace rocemu::sanitizer
