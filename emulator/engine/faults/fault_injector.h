// Applies the active rules. Each of its parts comes before the part of the engine that it disturbs:
// rules act on frames before the switch, on completions before the CQ, and on events before the
// program. Callers first check whether there is any rule (watches()), so that a fabric without
// rules runs none of this code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "emulator/engine/faults/completion_faults.h"
#include "emulator/engine/faults/device_faults.h"
#include "emulator/engine/faults/event_faults.h"
#include "emulator/engine/faults/frame_faults.h"
#include "emulator/engine/faults/made_up_events.h"
#include "emulator/engine/faults/network_faults.h"
#include "emulator/engine/faults/rule_matcher.h"
#include "emulator/engine/link/link.h"

namespace rocemu::engine::faults {

class FaultInjector {
 public:
  /// All arguments must outlive this object; `device_names` is indexed by DeviceIndex.
  FaultInjector(Objects& objects, FramePool& pool, Switch& fabric_switch, Link& link,
                NetworkCrossing& crossing, CompletionDelivery& delivery,
                EventDelivery& event_delivery, Step& step, uint64_t seed,
                std::vector<std::string> device_names);

  bool watches(Where where) const { return rules.watches(where); }
  bool watches_frames() const { return rules.watches_frames(); }
  /// Returns the rules that act on the occurrence, in order. The result is valid until the next
  /// call.
  const std::vector<RuleMatcher::Acting>& act(const Occurrence& occurrence);

  /// Adds rules, and applies those for "now".
  void add(const RuleSet& set);
  /// Removes the rule of that name. If it is a rule for the network, also ends its fault.
  void remove(std::string_view name);
  void clear();
  /// The packet on which a rule acts; empty if it acts on something else
  struct ActedOn {
    FrameFault frame = {};
    std::optional<uint32_t> psn = {};  // of a request that has arrived at the QP
  };
  /// Reports that a rule acts on `subject`, and carries out the effects that any rule can have:
  /// pausing the NIC, raising an event and killing the process; if `device` is set, also changing
  /// the port or a GID and removing the device.
  void note(const RuleMatcher::Acting& acting, std::string subject,
            std::optional<DeviceIndex> device, const QueuePair* qp, const ActedOn& on);
  void note(const RuleMatcher::Acting& acting, std::string subject,
            std::optional<DeviceIndex> device, const QueuePair* qp) {
    note(acting, std::move(subject), device, qp, {});
  }

  /// Releases the frames, completions and ports that rules hold back and that are due.
  void release_due() {
    if (keep_anything()) release_kept();
  }
  /// Returns the time at which the next frame, completion or port that rules hold back is due.
  std::optional<Instant> next_deadline() const {
    return keep_anything() ? next_of_kept() : std::nullopt;
  }

  RuleMatcher rules;
  FrameFaults frames;
  CompletionFaults completions;
  EventFaults events;
  MadeUpEvents made_up_events;
  DeviceFaults devices;
  NetworkFaults network;
  ProcessNames processes;

 private:
  /// Applies a rule for "now".
  void act_now(const Rule& rule);
  /// Returns whether rules hold anything back. The check must be cheap, because it is made in every
  /// step and most fabrics have no rules.
  bool keep_anything() const {
    return frames.delayed() != 0 || completions.holds_any() || devices.has_port_returns();
  }
  void release_kept();
  std::optional<Instant> next_of_kept() const;
  /// Returns the name of the process on which the rule acts, such as "server#1"; empty if it is not
  /// known.
  std::string process_of(const std::optional<Owner>& owner) const;

  const Objects& objects_;
  Link& link_;
  Step& step_;
};

}  // namespace rocemu::engine::faults
