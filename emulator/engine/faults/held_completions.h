// Completions that rules hold back from their CQ for a while. Later completions wait too, since a
// CQ is in order.
#pragma once

#include <deque>
#include <optional>

#include "emulator/abi/rings.h"
#include "emulator/engine/base/time.h"

namespace rocemu::engine::faults {

struct HeldCompletions {
  struct Held {
    abi::Cqe cqe;
    bool solicits;
    Instant until;
  };
  std::deque<Held> queue;
  uint32_t wanted = 0;  // all wait until there are this many

  bool may_go(Instant now) const {
    return !queue.empty() && (wanted != 0 ? queue.size() >= wanted : queue.front().until <= now);
  }
};

}  // namespace rocemu::engine::faults
