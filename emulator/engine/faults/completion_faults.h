// What rules do to completions on their way into the CQ.
#pragma once

#include <map>
#include <optional>

#include "emulator/abi/rings.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/time.h"
#include "emulator/engine/faults/held_completions.h"

namespace rocemu::engine {

class Fabric;
struct QueuePair;

namespace faults {

class CompletionFaults {
 public:
  explicit CompletionFaults(Fabric& fabric) : fabric_(fabric) {}

  /// Delivers the completion, or does with it what rules want. Arguments and result as of
  /// Fabric::complete.
  bool apply(const QueuePair& qp, CqId cq, abi::Cqe cqe, bool solicits, bool wanted);
  /// Delivers what was kept until now.
  void release_due();
  std::optional<Instant> next_deadline() const;

 private:
  Fabric& fabric_;
  std::map<CqId, HeldCompletions> held_;
};

}  // namespace faults
}  // namespace rocemu::engine
