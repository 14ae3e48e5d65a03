// Applies rules to the simulated network. The network's links, switches and NICs change at the
// times that a rule gives, and change back when the fault's time is over or the rule is removed.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "emulator/engine/base/time.h"
#include "emulator/engine/faults/rule.h"
#include "emulator/engine/link/network_crossing.h"
#include "emulator/engine/step.h"

namespace rocemu::engine::faults {

class FaultInjector;

class NetworkFaults {
 public:
  /// All arguments must outlive this object.
  NetworkFaults(FaultInjector& injector, NetworkCrossing& crossing, Step& step)
      : injector_(injector), crossing_(crossing), step_(step) {}

  /// Plans the changes of the rule. An earlier rule of the same name is replaced.
  void add(const Rule& rule);
  /// Ends the fault of the rule of that name, if it has one.
  void remove(std::string_view name);
  void clear();

  /// Makes the changes that are due. Returns whether there were any.
  bool act_due();
  /// Returns the time at which the next change is due.
  std::optional<Instant> next_deadline() const;

 private:
  struct Plan {
    Rule rule;
    std::optional<Instant> next;  // when the fault begins or ends; empty if nothing follows
    bool is_on = false;
    uint32_t times_left = 1;
  };

  void begin(Plan& plan);
  void end(Plan& plan);
  void set(const Plan& plan, bool is_on);

  FaultInjector& injector_;
  NetworkCrossing& crossing_;
  Step& step_;
  std::vector<Plan> plans_;  // in the order of the rules
};

}  // namespace rocemu::engine::faults
