// The completions of a CQ that rules hold back for a while. Later completions wait, too, since the
// completions of a CQ stay in order.
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
