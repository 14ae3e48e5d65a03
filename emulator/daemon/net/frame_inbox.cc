#include "emulator/daemon/net/frame_inbox.h"

#include <algorithm>

namespace rocemu::daemon {

bool FrameInbox::put(const engine::ForwardFrame& forward) {
  const std::lock_guard guard(putting_);
  if (slots_ == nullptr) slots_ = std::make_unique_for_overwrite<Slot[]>(kSlots);
  const size_t number = put_.load(std::memory_order_relaxed);
  if (number - done_.load(std::memory_order_acquire) == kSlots) return false;
  Slot& slot = slots_[number % kSlots];
  slot.to = forward.to;
  slot.check_icrc = forward.check_icrc;
  const wire::Packet* packet = forward.frame.packet();
  slot.parsed = packet != nullptr;
  slot.size = forward.frame.size();
  if (packet != nullptr) {  // the rest is written again where somebody looks at it
    slot.packet = *packet;
    std::ranges::copy(packet->payload, slot.bytes.begin());
    slot.packet.payload = std::span<const uint8_t>(slot.bytes).first(packet->payload.size());
  } else {
    std::ranges::copy(forward.frame.bytes(), slot.bytes.begin());
  }
  put_.store(number + 1, std::memory_order_seq_cst);
  return true;
}

void FrameInbox::notify() {
  // Sequentially consistent with fall_asleep(): one of the two sees the other.
  if (asleep_.load(std::memory_order_seq_cst) && asleep_.exchange(false)) owner_.wake();
}

std::span<const engine::ForwardedFrame> FrameInbox::take() {
  const size_t first = done_.load(std::memory_order_relaxed);
  const size_t count = std::min(put_.load(std::memory_order_acquire) - first, kMaxTaken);
  taken_.clear();
  for (size_t i = 0; i < count; ++i) {
    const Slot& slot = slots_[(first + i) % kSlots];
    taken_.push_back({.to = slot.to,
                      .check_icrc = slot.check_icrc,
                      .packet = slot.parsed ? &slot.packet : nullptr,
                      .bytes = std::span(slot.bytes).first(slot.parsed ? 0 : slot.size)});
  }
  return taken_;
}

void FrameInbox::done() {
  done_.store(done_.load(std::memory_order_relaxed) + taken_.size(), std::memory_order_release);
  taken_.clear();
}

bool FrameInbox::is_empty() const {
  return put_.load(std::memory_order_seq_cst) == done_.load(std::memory_order_relaxed);
}

bool FrameInbox::fall_asleep() {
  asleep_.store(true, std::memory_order_seq_cst);
  if (is_empty()) return true;
  asleep_.store(false, std::memory_order_relaxed);
  return false;
}

}  // namespace rocemu::daemon
