// Payload of short messages that programs take from shared memory when they poll the completions
// (abi::PayloadSlot). A message gets a slot when the engine receives it. The slot is reserved until
// the message's completion is added to the CQ, in the same step; from then on the program can take
// the payload.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "emulator/abi/rings.h"
#include "emulator/daemon/memory/memory_reach.h"
#include "emulator/engine/base/host_memory.h"
#include "emulator/engine/base/ids.h"

namespace rocemu::daemon {

class ReceivedPayload {
 public:
  /// Sets the memory that the client shares with the daemon.
  void share(abi::PayloadSlots& slots, const abi::DoorbellRing& ring) {
    slots_ = &slots;
    ring_ = &ring;
  }

  /// Adds a message or its next part. Returns false if the caller must write it to memory, because
  /// it is too long, no slot is free, or the client does not take payload from slots.
  bool add(engine::QpNumber qp, bool is_first, std::span<const engine::RemoteRange> to,
           std::span<const std::span<const uint8_t>> from);
  /// Publishes the oldest message of the completion's QP in its slot, if the completion is for all
  /// of that message; else calls `write` for the message. Returns the value for Cqe::payload.
  /// `index` is the number of the completion in its CQ.
  template <class Writer>
  uint8_t attach(const abi::Cqe& cqe, engine::CqId cq, uint32_t index, Writer write) {
    if (messages_.empty() || cqe.queue == abi::WorkQueue::kSend || cqe.byte_len == 0) return 0;
    const auto message = std::ranges::find_if(
        messages_, [&](const Message& one) { return one.qp.value == cqe.qp_num; });
    if (message == messages_.end()) return 0;
    const bool fits = cqe.status == 0 && cqe.byte_len == message->length;
    const uint8_t number = message->slot;
    if (fits) {
      withdraw_from_other_cqs(*message, cq, write);
      publish(*message, cq, index);
    } else {
      write_message(*message, write);
    }
    messages_.erase(message);
    return fits ? static_cast<uint8_t>(1 + number) : uint8_t{0};
  }

  bool is_any_unattached() const { return !messages_.empty(); }
  /// Calls `write` for all messages that have no completion yet, in order.
  template <class Writer>
  void spill(Writer write) {
    for (const Message& message : messages_) write_message(message, write);
    messages_.clear();
  }

  /// Returns whether payload for some of these bytes may be in a slot, or wait for its completion.
  bool may_overlap(std::span<const engine::RemoteRange> ranges) const;
  /// Withdraws from the slots the payload that overlaps the ranges, or all payload if there are no
  /// ranges, and calls `write` for it.
  template <class Writer>
  void withdraw(std::span<const engine::RemoteRange> ranges, Writer write) {
    withdraw_where(
        [&](const ScatterTarget& target) { return ranges.empty() || overlaps(target, ranges); },
        write);
  }
  /// Withdraws the payload that was already in its slot at the previous call, and calls `write` for
  /// it. Stops at payload that the client is copying at this moment. Returns whether payload is
  /// left in slots.
  template <class Writer>
  bool withdraw_untaken(Writer write) {
    sort_outstanding();
    bool may_write = true;
    std::erase_if(outstanding_, [&](uint8_t number) {
      if (!is_over(number)) {
        const bool was_looked_at = std::exchange(targets_[number].was_looked_at, true);
        may_write = may_write && was_looked_at && try_to_withdraw(number);
        if (!may_write) return false;
        write_slot(number, write);
      }
      is_outstanding_[number] = false;
      return true;
    });
    if (outstanding_.empty() && messages_.empty()) reset_bounds();
    return !outstanding_.empty();
  }

 private:
  /// The destination of the payload in the program's memory, and the state of its slot
  struct ScatterTarget {
    std::array<engine::RemoteRange, abi::PayloadSlot::kMaxRanges> list;
    size_t count = 0;
    size_t length = 0;
    engine::CqId cq{};
    uint64_t number = 0;         // number of slots filled before
    uint64_t state = 0;          // of the slot, when it was filled
    bool was_looked_at = false;  // and not taken: withdraw_untaken()

    std::span<const engine::RemoteRange> ranges() const { return std::span(list).first(count); }
  };
  struct Message : ScatterTarget {
    engine::QpNumber qp;
    uint8_t slot = 0;
  };
  static constexpr size_t kMaxMessages = 64;

  /// Withdraws the payload in slots for which `which` returns true, in the order of arrival.
  template <class Which, class Writer>
  void withdraw_where(Which which, Writer write) {
    sort_outstanding();
    std::erase_if(outstanding_, [&](uint8_t number) {
      const bool over = is_over(number);
      if (!over && !which(targets_[number])) return false;
      is_outstanding_[number] = false;
      if (!over && begin_to_withdraw(number)) write_slot(number, write);
      return true;
    });
    if (outstanding_.empty() && messages_.empty()) reset_bounds();
  }
  /// Withdraws older payload of other CQs for the same memory as `message`. Programs take the
  /// payload of one CQ in order, but may poll several CQs in any order. If two messages are for the
  /// same memory, the later one must be there at the end.
  template <class Writer>
  void withdraw_from_other_cqs(const Message& message, engine::CqId cq, Writer write) {
    if (!outstanding_.empty() && targets_[outstanding_.back()].cq != cq) has_several_cqs_ = true;
    if (!has_several_cqs_) return;
    const auto is_before = [&](const ScatterTarget& target) {
      return target.cq != cq && overlaps(target, message.ranges());
    };
    if (std::ranges::any_of(outstanding_,
                            [&](uint8_t number) { return is_before(targets_[number]); })) {
      withdraw_where(is_before, write);
    }
  }
  void sort_outstanding() {
    std::ranges::sort(outstanding_, {}, [this](uint8_t slot) { return targets_[slot].number; });
  }

  static bool overlaps(const ScatterTarget& target, std::span<const engine::RemoteRange> ranges);
  bool has_room(const Message& message, std::span<const engine::RemoteRange> to) const;
  /// Returns a free slot near the one used last; -1 if none is free.
  int find_free() const;
  bool is_over(uint8_t number) const;
  void publish(const Message& message, engine::CqId cq, uint32_t index);
  /// Withdraws the payload of a slot. Returns false if the client has begun to take it.
  bool try_to_withdraw(uint8_t number);
  /// Withdraws the payload of a slot. If the client is taking the payload, waits until it has
  /// finished, and returns false.
  bool begin_to_withdraw(uint8_t number);
  void end_withdrawing(uint8_t number);
  template <class Writer>
  void write_message(const Message& message, Writer write) {
    write(message.ranges(),
          std::span<const uint8_t>(slots_->slots[message.slot].bytes).first(message.length));
    is_reserved_[message.slot] = false;
  }
  template <class Writer>
  void write_slot(uint8_t number, Writer write) {
    const ScatterTarget& target = targets_[number];
    write(target.ranges(),
          std::span<const uint8_t>(slots_->slots[number].bytes).first(target.length));
    end_withdrawing(number);
  }
  void reset_bounds() {
    lowest_ = UINT64_MAX;
    highest_ = 0;
    has_several_cqs_ = false;
  }

  abi::PayloadSlots* slots_ = nullptr;
  const abi::DoorbellRing* ring_ = nullptr;
  std::vector<Message> messages_;     // without a completion yet
  std::vector<uint8_t> outstanding_;  // slots that were filled
  std::array<bool, abi::PayloadSlots::kCount> is_outstanding_{};
  std::array<bool, abi::PayloadSlots::kCount> is_reserved_{};  // of messages without a completion
  std::vector<ScatterTarget> targets_;                         // of each slot
  uint32_t latest_ = 0;
  uint64_t filled_ = 0;           // slots, ever
  bool has_several_cqs_ = false;  // the slots have payload of several CQs
  bool is_given_up_ = false;      // on a client that keeps a slot
  /// The bounds of the addresses of all payload in transit.
  uint64_t lowest_ = UINT64_MAX, highest_ = 0;
};

}  // namespace rocemu::daemon
