// All rules, and the selection of some of them by a user
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "emulator/sanitizer/sanitizer_rule.h"

namespace rocemu::sanitizer {

extern const Rule kAhDestroyedInUse, kCmEventKept, kCqOverrun, kCqTooSmall, kDestroyFailed,
    kEventWithoutRearm, kEventsUnacknowledged, kForkUnprotected, kListPostedAgain, kLostWakeup,
    kMrDeregisteredInUse, kMrMemoryUnmapped, kNotPolledAfterArm, kObjectLeaked, kPostedAfterError,
    kProtectionExplained, kQpDestroyedInUse, kQpNeverErrorDrained, kReceiveBufferOverlap,
    kReceiveQueueEmpty, kRefusedLimit, kRefusedState, kRemoteWriteRace, kRkeyStale,
    kSendBufferModified, kSendQueueNeverSignaled, kSendQueueOverflow, kUdGrhIgnored;

/// Returns all rules: errors before warnings, and each severity sorted by name.
std::span<const Rule* const> rules();

/// Returns the rule with that name; null if there is none.
const Rule* find_rule(std::string_view id);

/// A set of rules that are checked
using Selection = std::set<const Rule*>;

struct SelectionResult {
  Selection rules;
  std::string unknown;  // the first unknown name; then there is no selection
};

/// Parses a value of the form "RULE,...|all|-RULE". An empty text selects the default rules. A list
/// that begins with "-RULE" starts with the default rules, and any other list starts with none.
/// Then each RULE is added, "all" adds all rules, and each -RULE is removed.
SelectionResult select_rules(std::string_view text);

}  // namespace rocemu::sanitizer
