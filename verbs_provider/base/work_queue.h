// A ring of slots in shared memory, into which work requests are posted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "emulator/abi/rings.h"
#include "verbs_provider/base/lock.h"
#include "verbs_provider/base/segments.h"

namespace rocemu::provider {

/// A QP's send or receive queue, or an SRQ.
struct WorkQueue {
  std::byte* slots = nullptr;
  uint32_t slot_mask = 0;
  uint32_t stride = 0;
  uint32_t max_wr = 0;
  uint32_t max_sge = 0;

  Mutex lock;           // of posting
  uint64_t posted = 0;  // WQEs ever written; a RESET does not begin anew
  /// `posted` for threads without the lock, modulo 2^32.
  std::atomic<uint32_t> told{0};
  /// WQEs of which the application has seen the end: their completion, or that of a later one, was
  /// polled. What makes a queue full does not depend on how fast the daemon is.
  std::atomic<uint32_t> released{0};
  /// Of the WQEs that are not released, those whose message is in one of the context's SendSlots.
  std::atomic<uint32_t> in_slots{0};
  /// Where the CQ stood when the QP was made: earlier completions are of a QP with the same number.
  uint64_t first_completion = 0;

  void tell() { told.store(static_cast<uint32_t>(posted), std::memory_order_relaxed); }
  bool is_full() const {
    return static_cast<uint32_t>(posted) - released.load(std::memory_order_acquire) >= max_wr;
  }
  std::byte* slot(uint64_t index) const { return slots + (index & slot_mask) * uint64_t{stride}; }
  std::byte* next_slot() const { return slot(posted); }
};

/// Finds the queue that the daemon made in `memory`. 0, or EIO if it cannot be one.
int open_queue(const SharedPiece& memory, const abi::WorkQueueLayout& layout, uint32_t max_wr,
               uint32_t max_sge, uint32_t min_stride, WorkQueue* queue);

}  // namespace rocemu::provider
