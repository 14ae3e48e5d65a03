#include "emulator/sanitizer/rules.h"

#include <algorithm>

namespace rocemu::sanitizer {
namespace {

const Rule* const kRules[] = {
    // Errors
    &kCmEventKept,
    &kCqOverrun,
    &kEventWithoutRearm,
    &kEventsUnacknowledged,
    &kListPostedAgain,
    &kLostWakeup,
    &kMrDeregisteredInUse,
    &kMrMemoryUnmapped,
    &kPostedAfterError,
    &kProtectionExplained,
    &kReceiveBufferOverlap,
    &kRemoteWriteRace,
    &kRkeyStale,
    &kSendBufferModified,
    &kSendQueueNeverSignaled,
    &kSendQueueOverflow,
    // Warnings
    &kAhDestroyedInUse,
    &kCqTooSmall,
    &kDestroyFailed,
    &kForkUnprotected,
    &kNotPolledAfterArm,
    &kObjectLeaked,
    &kQpDestroyedInUse,
    &kQpNeverErrorDrained,
    &kReceiveQueueEmpty,
    &kRefusedLimit,
    &kRefusedState,
    &kUdGrhIgnored,
};

Selection default_rules() {
  Selection selection;
  for (const Rule* rule : kRules)
    if (rule->is_default) selection.insert(rule);
  return selection;
}

}  // namespace

std::span<const Rule* const> rules() {
  return kRules;
}

const Rule* find_rule(std::string_view id) {
  const auto found = std::ranges::find(kRules, id, [](const Rule* rule) { return rule->id; });
  return found == std::end(kRules) ? nullptr : *found;
}

SelectionResult select_rules(std::string_view text) {
  if (text.empty()) return {default_rules(), ""};
  SelectionResult result;
  if (text.starts_with('-')) result.rules = default_rules();
  while (true) {
    const size_t comma = text.find(',');
    std::string_view name = text.substr(0, comma);
    const bool is_taken_away = name.starts_with('-');
    if (is_taken_away) name.remove_prefix(1);
    if (name == "all" && !is_taken_away) {
      result.rules = {std::begin(kRules), std::end(kRules)};
    } else if (const Rule* rule = find_rule(name)) {
      is_taken_away ? (void)result.rules.erase(rule) : (void)result.rules.insert(rule);
    } else {
      return {{}, name.empty() ? "(empty)" : std::string(name)};
    }
    if (comma == std::string_view::npos) return result;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace rocemu::sanitizer
