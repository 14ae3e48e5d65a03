// A completion queue as the client sees it.
#pragma once

#include <cstdint>

#include "emulator/abi/rings.h"
#include "verbs_provider/lock.h"
#include "verbs_provider/private_abi.h"
#include "verbs_provider/shared_memory.h"

namespace rocemu::provider {

struct Cq {
  VerbsCq verbs;  // must be first

  Mutex lock;  // of what follows
  SharedMemory memory;
  abi::CqRing* ring = nullptr;
  uint32_t ring_mask = 0;
  uint64_t consumed = 0;  // completions ever taken, stale ones included
  uint32_t empty_polls = 0;

  /// How many completions there were until now, counted as `consumed` is. Under the lock.
  uint64_t produced() const {
    const uint32_t producer = ring->producer.load(std::memory_order_acquire);
    return consumed + (producer - static_cast<uint32_t>(consumed));
  }
};

/// The locks of a QP's two CQs, which may be one.
class BothCqs {
 public:
  BothCqs(Cq* a, Cq* b) : first_(a < b ? a : b), second_(a < b ? b : a) {
    first_->lock.lock();
    if (second_ != first_) second_->lock.lock();
  }
  ~BothCqs() {
    if (second_ != first_) second_->lock.unlock();
    first_->lock.unlock();
  }
  BothCqs(const BothCqs&) = delete;
  BothCqs& operator=(const BothCqs&) = delete;

 private:
  Cq* first_;
  Cq* second_;
};

}  // namespace rocemu::provider
