// Applies the rules that are in force. Its parts stand before what they disturb: frames before the
// switch, completions before the CQ, events before the program. They ask whether any rule is there
// at all (watches()), so that nothing of this runs for a fabric without rules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "emulator/engine/faults/completion_faults.h"
#include "emulator/engine/faults/device_faults.h"
#include "emulator/engine/faults/event_faults.h"
#include "emulator/engine/faults/frame_faults.h"
#include "emulator/engine/faults/made_up_events.h"
#include "emulator/engine/faults/rule_matcher.h"
#include "emulator/engine/link/link.h"

namespace rocemu::engine::faults {

class FaultInjector {
 public:
  /// All of them outlive this; `device_names` by DeviceIndex.
  FaultInjector(Objects& objects, FramePool& pool, Switch& network, Link& link,
                CompletionDelivery& delivery, EventDelivery& event_delivery, Step& step,
                uint64_t seed, std::vector<std::string> device_names);

  bool watches(Where where) const { return rules.watches(where); }
  bool watches_frames() const { return rules.watches_frames(); }
  /// The rules that act on it, in their order. Valid until the next call.
  const std::vector<RuleMatcher::Acting>& act(const Occurrence& occurrence);

  /// Adds rules, and applies those for what is there now.
  void add(const RuleSet& set);
  /// The packet that a rule acts on, if it acts on one.
  struct ActedOn {
    FrameFault frame = {};
    std::optional<uint32_t> psn = {};  // of a request that has arrived at the QP
  };
  /// Reports that a rule acts on `subject`, and does what the rule wants done besides: an event, a
  /// port, a GID, a device pulled out. Without a device, the event only.
  void note(const RuleMatcher::Acting& acting, std::string subject,
            std::optional<DeviceIndex> device, const QueuePair* qp, const ActedOn& on);
  void note(const RuleMatcher::Acting& acting, std::string subject,
            std::optional<DeviceIndex> device, const QueuePair* qp) {
    note(acting, std::move(subject), device, qp, {});
  }

  /// Lets go of what rules kept until now.
  void release_due() {
    if (keep_anything()) release_kept();
  }
  /// When something else that they keep is due.
  std::optional<Instant> next_deadline() const {
    return keep_anything() ? next_of_kept() : std::nullopt;
  }

  RuleMatcher rules;
  FrameFaults frames;
  CompletionFaults completions;
  EventFaults events;
  MadeUpEvents made_up_events;
  DeviceFaults devices;
  ProcessNames processes;

 private:
  /// Applies a rule for what is there now.
  void act_now(const Rule& rule);
  /// Every step asks, and most have no rules.
  bool keep_anything() const {
    return frames.delayed() != 0 || completions.holds_any() || devices.has_port_returns();
  }
  void release_kept();
  std::optional<Instant> next_of_kept() const;
  /// "server#1", of what the rule acts on; empty if that is not known.
  std::string process_of(const std::optional<Owner>& owner) const;

  const Objects& objects_;
  Link& link_;
  Step& step_;
};

}  // namespace rocemu::engine::faults
