// A completion queue in the client
#pragma once

#include <atomic>
#include <cstdint>

#include "emulator/abi/rings.h"
#include "verbs_provider/base/lock.h"
#include "verbs_provider/base/private_abi.h"
#include "verbs_provider/structs/cq_sharing.h"
#include "verbs_provider/structs/custom_memory.h"

namespace rocemu::provider {

struct Cq {
  VerbsCq verbs;  // must be first

  CustomMemory custom_memory;
  ibv_pd* parent_domain = nullptr;  // the CQ holds a reference

  /// Guards the ring; held together with `lock` when the ring is replaced. ibv_req_notify_cq takes
  /// only this lock, since it can be called between ibv_start_poll and ibv_end_poll.
  Mutex ring_lock;
  OptionalMutex lock;  // guards the members below; held from ibv_start_poll to ibv_end_poll
  abi::CqRing* ring = nullptr;
  uint32_t ring_mask = 0;
  uint64_t consumed = 0;     // completions ever taken, including stale ones
  uint32_t empty_polls = 0;  // since the latest completion
  CqSharing sharing;
  std::atomic<bool> notifies{false};  // whether ibv_req_notify_cq was ever called
  abi::Cqe current{};                 // read by the functions of an extended CQ

  /// Returns the number of completions until now, counted like `consumed`. The caller must hold the
  /// lock.
  uint64_t produced() const {
    const uint32_t producer = ring->producer.load(std::memory_order_acquire);
    return consumed + (producer - static_cast<uint32_t>(consumed));
  }

  bool overran() const { return ring->error.load(std::memory_order_acquire) != 0; }

  /// Shows the daemon the space that taken completions leave. The caller must hold the lock.
  void publish_consumed() {
    ring->consumer.store(static_cast<uint32_t>(consumed), std::memory_order_release);
  }
};

/// Holds the locks of a QP's two CQs, which can be the same CQ. XRC QPs lack one or both.
class BothCqs {
 public:
  BothCqs(Cq* a, Cq* b) : first_(a < b ? a : b), second_(a == b ? nullptr : a < b ? b : a) {
    if (first_ != nullptr) first_->lock.lock();
    if (second_ != nullptr) second_->lock.lock();
  }
  ~BothCqs() {
    if (second_ != nullptr) second_->lock.unlock();
    if (first_ != nullptr) first_->lock.unlock();
  }
  BothCqs(const BothCqs&) = delete;
  BothCqs& operator=(const BothCqs&) = delete;

 private:
  Cq* first_;
  Cq* second_;
};

}  // namespace rocemu::provider
