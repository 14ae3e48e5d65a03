#include "emulator/daemon/memory/received_payload.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace rocemu::daemon {
namespace {

using abi::payload_state;
using abi::PayloadSlot;
using engine::RemoteRange;

/// The number of slots that are tried to find a free one, starting with the latest one, which is
/// still in the caches. Completions are taken nearly in order, so a free slot is near.
constexpr uint32_t kTries = 8;
/// The time limit for a client that is copying payload from a slot, for which all others wait.
/// Copying takes less than a microsecond, unless the client loses its processor meanwhile. A client
/// that takes longer gets no more payload in slots.
constexpr std::chrono::milliseconds kLongestCopy{20};

PayloadSlot::Phase phase_of(uint64_t state) {
  return static_cast<PayloadSlot::Phase>(state & 3);
}
uint64_t with_phase(uint64_t state, PayloadSlot::Phase phase) {
  return (state & ~uint64_t{3}) | phase;
}

}  // namespace

bool ReceivedPayload::add(engine::QpNumber qp, bool is_first, std::span<const RemoteRange> to,
                          std::span<const std::span<const uint8_t>> from) {
  if (slots_ == nullptr || is_given_up_) return false;
  if (ring_->takes_payload.load(std::memory_order_relaxed) == 0) return false;
  Message* message = nullptr;
  if (is_first) {
    if (messages_.size() == kMaxMessages) return false;
    const int free = find_free();
    if (free < 0) return false;
    message = &messages_.emplace_back();
    message->qp = qp;
    message->slot = static_cast<uint8_t>(free);
  } else {
    const auto latest = std::find_if(messages_.rbegin(), messages_.rend(),
                                     [&](const Message& one) { return one.qp == qp; });
    if (latest == messages_.rend()) return false;
    message = &*latest;
  }
  if (!has_room(*message, to)) {
    if (is_first) messages_.pop_back();
    return false;
  }
  latest_ = message->slot;
  is_reserved_[message->slot] = true;
  for (const RemoteRange& range : to) {
    if (range.length == 0) continue;
    message->list[message->count++] = range;
    lowest_ = std::min(lowest_, range.address);
    highest_ = std::max(highest_, range.address + range.length);
  }
  for (const std::span<const uint8_t> piece : from) {
    std::memcpy(slots_->slots[message->slot].bytes + message->length, piece.data(), piece.size());
    message->length += piece.size();
  }
  return true;
}

bool ReceivedPayload::has_room(const Message& message, std::span<const RemoteRange> to) const {
  uint64_t length = message.length;
  for (const RemoteRange& range : to) {
    if (range.length > PayloadSlot::kMaxBytes) return false;
    length += range.length;
  }
  return length <= PayloadSlot::kMaxBytes && message.count + to.size() <= PayloadSlot::kMaxRanges;
}

int ReceivedPayload::find_free() const {
  for (uint32_t i = 0; i < kTries; ++i) {
    const uint32_t number = (latest_ + i) % abi::PayloadSlots::kCount;
    if (is_reserved_[number]) continue;
    if (!is_outstanding_[number] || is_over(static_cast<uint8_t>(number))) {
      return static_cast<int>(number);
    }
  }
  return -1;
}

bool ReceivedPayload::is_over(uint8_t number) const {
  const uint64_t state = slots_->slots[number].state.load(std::memory_order_acquire);
  return phase_of(state) == PayloadSlot::kEmpty;
}

void ReceivedPayload::publish(const Message& message, engine::CqId cq, uint32_t index) {
  const uint8_t number = message.slot;
  PayloadSlot& slot = slots_->slots[number];
  slot.range_count = message.count;
  for (size_t i = 0; i < message.count; ++i) {
    slot.ranges[i] = {message.list[i].address, message.list[i].length};
  }
  if (targets_.empty()) targets_.resize(abi::PayloadSlots::kCount);
  targets_[number] = message;
  targets_[number].cq = cq;
  targets_[number].number = filled_++;
  targets_[number].state = payload_state(cq.value, index, PayloadSlot::kFull);
  slot.state.store(targets_[number].state, std::memory_order_release);
  is_reserved_[number] = false;
  if (!std::exchange(is_outstanding_[number], true)) outstanding_.push_back(number);
}

bool ReceivedPayload::may_overlap(std::span<const RemoteRange> ranges) const {
  return std::ranges::any_of(ranges, [this](const RemoteRange& range) {
    return range.address < highest_ && lowest_ < range.address + range.length;
  });
}

bool ReceivedPayload::overlaps(const ScatterTarget& target, std::span<const RemoteRange> ranges) {
  return std::ranges::any_of(target.ranges(), [&](const RemoteRange& a) {
    return std::ranges::any_of(ranges, [&](const RemoteRange& b) {
      return a.address < b.address + b.length && b.address < a.address + a.length;
    });
  });
}

bool ReceivedPayload::try_to_withdraw(uint8_t number) {
  uint64_t expected = targets_[number].state;
  return slots_->slots[number].state.compare_exchange_strong(
      expected, with_phase(expected, PayloadSlot::kWithdrawn), std::memory_order_acq_rel);
}

bool ReceivedPayload::begin_to_withdraw(uint8_t number) {
  if (try_to_withdraw(number)) return true;
  // The client is copying at this moment, so wait until it has finished.
  const auto end = std::chrono::steady_clock::now() + kLongestCopy;
  while (!is_over(number)) {
    if (std::chrono::steady_clock::now() >= end) {
      is_given_up_ = true;
      break;
    }
    sched_yield();
  }
  return false;
}

void ReceivedPayload::end_withdrawing(uint8_t number) {
  slots_->slots[number].state.store(with_phase(targets_[number].state, PayloadSlot::kEmpty),
                                    std::memory_order_release);
}

}  // namespace rocemu::daemon
