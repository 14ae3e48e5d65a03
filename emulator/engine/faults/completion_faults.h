// Applies rules to completions before they enter the CQ.
#pragma once

#include <map>
#include <optional>

#include "emulator/abi/rings.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/time.h"
#include "emulator/engine/faults/held_completions.h"
#include "emulator/engine/faults/rule_matcher.h"
#include "emulator/engine/objects/completion_delivery.h"
#include "emulator/engine/objects/objects.h"
#include "emulator/engine/step.h"

namespace rocemu::engine::faults {

class FaultInjector;

class CompletionFaults {
 public:
  /// All arguments must outlive this object.
  CompletionFaults(FaultInjector& injector, CompletionDelivery& delivery, Objects& objects,
                   Step& step);

  /// Applies rules to a QP's completion. Adds it to the CQ, now or later, unless a rule drops it.
  /// `solicits` is the parameter `qualifies` of CompletionQueue::add. `wanted` is false for an
  /// unsignaled success, which becomes a completion only if a rule changes its status. Returns
  /// false if a rule turned a success into a failure; the caller must then fail the QP.
  bool complete(const QueuePair& qp, CqId cq, const abi::Cqe& cqe, bool solicits,
                bool wanted = true) {
    if (rules_.watches(Where::kCompletion)) [[unlikely]] {
      return apply(qp, cq, cqe, solicits, wanted);
    }
    if (wanted) delivery_.deliver(cq, cqe, solicits);
    return true;
  }
  /// Delivers the held completions that are due.
  void release_due();
  std::optional<Instant> next_deadline() const;
  bool holds_any() const { return !held_.empty(); }

 private:
  bool apply(const QueuePair& qp, CqId cq, abi::Cqe cqe, bool solicits, bool wanted);

  FaultInjector& injector_;
  const RuleMatcher& rules_;
  CompletionDelivery& delivery_;
  Objects& objects_;
  Step& step_;
  std::map<CqId, HeldCompletions> held_;
};

}  // namespace rocemu::engine::faults
