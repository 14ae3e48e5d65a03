// A ring of slots in shared memory, to which work requests are posted
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

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

  Mutex lock;           // for posting
  uint64_t posted = 0;  // WQEs ever written; a RESET does not set it to 0
  /// A copy of `posted`, modulo 2^32, for threads that do not hold the lock
  std::atomic<uint32_t> told{0};
  /// The number of WQEs that the application knows to be finished: it has polled their completion,
  /// or that of a later one. Whether a queue is full therefore does not depend on the daemon's
  /// speed.
  std::atomic<uint32_t> released{0};
  /// For each entry of the ring, the number of the SendSlot that has the message of its WQE; 0 for
  /// none. It is not read from the WQEs, because the queue's memory can belong to another queue
  /// before the last slot is released.
  std::atomic<uint16_t>* slot_of_entry = nullptr;
  /// The number of entries of `slot_of_entry` that are not 0
  std::atomic<uint32_t> in_slots{0};
  /// How many completions the CQ had received when the QP was created. Those belong to an earlier
  /// QP with the same number.
  uint64_t first_completion = 0;

  WorkQueue() = default;
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  ~WorkQueue() { free(slot_of_entry); }

  void tell() { told.store(static_cast<uint32_t>(posted), std::memory_order_relaxed); }
  bool is_full() const {
    return static_cast<uint32_t>(posted) - released.load(std::memory_order_acquire) >= max_wr;
  }
  std::byte* slot(uint64_t index) const { return slots + (index & slot_mask) * uint64_t{stride}; }
  std::byte* next_slot() const { return slot(posted); }

  /// Allocates `slot_of_entry` for a send queue whose size is set. If memory is exhausted, no
  /// message of the queue is copied into a SendSlot.
  void make_room_for_send_slots() {
    void* room = calloc(uint64_t{slot_mask} + 1, sizeof(*slot_of_entry));
    slot_of_entry = static_cast<std::atomic<uint16_t>*>(room);
  }
  /// Notes that SendSlot `number` contains the message of WQE `index`.
  void note_send_slot(uint64_t index, uint32_t number) {
    slot_of_entry[index & slot_mask].store(static_cast<uint16_t>(number),
                                           std::memory_order_relaxed);
    in_slots.fetch_add(1, std::memory_order_release);
  }
  /// Takes the SendSlot away from WQE `index`, and returns its number; 0 if the WQE has none.
  uint32_t take_send_slot(uint64_t index) {
    if (in_slots.load(std::memory_order_acquire) == 0) return 0;
    const uint16_t number = slot_of_entry[index & slot_mask].exchange(0, std::memory_order_relaxed);
    if (number != 0) in_slots.fetch_sub(1, std::memory_order_relaxed);
    return number;
  }
};

/// Opens the queue that the daemon created in `memory`. Returns 0, or EIO if the memory cannot
/// contain such a queue.
int open_queue(const SharedPiece& memory, const abi::WorkQueueLayout& layout, uint32_t max_wr,
               uint32_t max_sge, uint32_t min_stride, WorkQueue* queue);

}  // namespace rocemu::provider
