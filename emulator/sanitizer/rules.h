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

/// The rules that are checked
using Selection = std::set<const Rule*>;

struct SelectionResult {
  Selection rules;
  std::string unknown;  // the first unknown name; then there is no selection
};

/// Parses "RULE,...|all|-RULE". An empty text means the default; a list that starts with "-RULE"
/// removes rules from the default, and any other list starts empty.
SelectionResult select_rules(std::string_view text);

}  // namespace rocemu::sanitizer
