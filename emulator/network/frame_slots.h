// Stores the frames in a simulated network. The slot of a frame that has arrived or is lost is
// reused, so the memory depends only on the number of frames in flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rocemu::network {

inline constexpr uint32_t kNoFrame = UINT32_MAX;
inline constexpr uint64_t kNotOnLink = UINT64_MAX;

struct FrameSlot {
  uint64_t token = 0;
  uint32_t bytes = 0;
  uint32_t flow_hash = 0;
  uint32_t to = 0;
  uint32_t next = kNoFrame;  // the next frame in its queue
  uint32_t ingress = 0;  // the port by which it arrived, for the accounting of the switch's buffer
  uint32_t link_epoch = 0;  // the epoch of the link that it is on
  uint32_t at = 0;          // the port for which it waits, or to which its link leads
  uint32_t generation = 0;  // counts the frames that the slot has held
  uint64_t arrives_ps = kNotOnLink;
  uint64_t queue_position = 0;  // the bytes that entered its queue before it
  uint8_t priority = 0;
  uint8_t ttl = 0;
  bool can_be_marked = false;
  bool is_marked = false;
};

class FrameSlots {
 public:
  uint32_t take() {
    ++used_;
    if (free_ == kNoFrame) {
      slots_.emplace_back();
      return static_cast<uint32_t>(slots_.size() - 1);
    }
    const uint32_t slot = free_;
    free_ = slots_[slot].next;
    return slot;
  }
  void give_back(uint32_t slot) {
    --used_;
    ++slots_[slot].generation;
    slots_[slot].next = free_;
    free_ = slot;
  }
  FrameSlot& operator[](uint32_t slot) { return slots_[slot]; }
  const FrameSlot& operator[](uint32_t slot) const { return slots_[slot]; }
  size_t used() const { return used_; }

 private:
  std::vector<FrameSlot> slots_;
  uint32_t free_ = kNoFrame;
  size_t used_ = 0;
};

}  // namespace rocemu::network
