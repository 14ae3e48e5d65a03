// Applies the rules that are in force to what happens in the fabric. What asks first sees to it
// that any rule is there at all (watches()); so nothing of this runs for a fabric without rules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "emulator/engine/faults/completion_faults.h"
#include "emulator/engine/faults/device_faults.h"
#include "emulator/engine/faults/event_faults.h"
#include "emulator/engine/faults/frame_faults.h"
#include "emulator/engine/faults/rule_matcher.h"

namespace rocemu::engine {

class Fabric;
struct QueuePair;

namespace faults {

class FaultInjector {
 public:
  /// `fabric` outlives this; `device_names` by DeviceIndex.
  FaultInjector(Fabric& fabric, uint64_t seed, std::vector<std::string> device_names);

  bool watches(Where where) const { return rules.watches(where); }
  bool watches_frames() const { return rules.watches_frames(); }

  /// Adds rules, and applies those for what is there now.
  void add(const RuleSet& set);
  /// Says that a rule acts on `subject`, and does what the rule wants done besides: an event, a
  /// port, a GID, a device pulled out. Without a device, the event only.
  void note(const RuleMatcher::Acting& acting, std::string subject,
            std::optional<DeviceIndex> device, const QueuePair* qp);

  /// Lets go of what rules kept until now.
  void release_due();
  /// When something else that they keep is due.
  std::optional<Instant> next_deadline() const;

  RuleMatcher rules;
  FrameFaults frames;
  CompletionFaults completions;
  EventFaults events;
  DeviceFaults devices;

 private:
  Fabric& fabric_;
};

}  // namespace faults
}  // namespace rocemu::engine
