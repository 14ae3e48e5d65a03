// All rules, and how a user selects some of them.
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

/// Errors first, each severity by name.
std::span<const Rule* const> rules();

/// Null if there is none of that name.
const Rule* find_rule(std::string_view id);

/// Rules that are looked for.
using Selection = std::set<const Rule*>;

struct SelectionResult {
  Selection rules;
  std::string unknown;  // the first name that is no rule's; then there is no selection
};

/// Reads "RULE,...|all|-RULE": nothing is the default; a list that begins with "-RULE" takes from
/// the default, and one that begins otherwise from nothing.
SelectionResult select_rules(std::string_view text);

}  // namespace rocemu::sanitizer
