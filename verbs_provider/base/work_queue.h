// A ring of slots in shared memory, into which work requests are posted.
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

  Mutex lock;           // of posting
  uint64_t posted = 0;  // WQEs ever written; a RESET does not begin anew
  /// `posted` for threads without the lock, modulo 2^32.
  std::atomic<uint32_t> told{0};
  /// WQEs of which the application has seen the end: their completion, or that of a later one, was
  /// polled. What makes a queue full does not depend on how fast the daemon is.
  std::atomic<uint32_t> released{0};
  /// Of each place, which of the context's SendSlots has the message of its WQE; 0 for none. Not
  /// read out of the WQEs: the queue's memory is another's before the last of them is given back.
  std::atomic<uint16_t>* slot_of_place = nullptr;
  /// How many of them are not 0.
  std::atomic<uint32_t> in_slots{0};
  /// Where the CQ stood when the QP was made: earlier completions are of a QP with the same number.
  uint64_t first_completion = 0;

  WorkQueue() = default;
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  ~WorkQueue() { free(slot_of_place); }

  void tell() { told.store(static_cast<uint32_t>(posted), std::memory_order_relaxed); }
  bool is_full() const {
    return static_cast<uint32_t>(posted) - released.load(std::memory_order_acquire) >= max_wr;
  }
  std::byte* slot(uint64_t index) const { return slots + (index & slot_mask) * uint64_t{stride}; }
  std::byte* next_slot() const { return slot(posted); }

  /// For a queue of sends, once its places are known. Where there is no memory for it no message
  /// goes into a slot.
  void make_room_for_send_slots() {
    void* room = calloc(uint64_t{slot_mask} + 1, sizeof(*slot_of_place));
    slot_of_place = static_cast<std::atomic<uint16_t>*>(room);
  }
  /// The message of that WQE is in one of the SendSlots.
  void note_send_slot(uint64_t index, uint32_t number) {
    slot_of_place[index & slot_mask].store(static_cast<uint16_t>(number),
                                           std::memory_order_relaxed);
    in_slots.fetch_add(1, std::memory_order_release);
  }
  /// Which one, if it was not taken before; else 0.
  uint32_t take_send_slot(uint64_t index) {
    if (in_slots.load(std::memory_order_acquire) == 0) return 0;
    const uint16_t number = slot_of_place[index & slot_mask].exchange(0, std::memory_order_relaxed);
    if (number != 0) in_slots.fetch_sub(1, std::memory_order_relaxed);
    return number;
  }
};

/// Finds the queue that the daemon made in `memory`. 0, or EIO if it cannot be one.
int open_queue(const SharedPiece& memory, const abi::WorkQueueLayout& layout, uint32_t max_wr,
               uint32_t max_sge, uint32_t min_stride, WorkQueue* queue);

}  // namespace rocemu::provider
