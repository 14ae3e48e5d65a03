// The queues of a port, and the choice of the next queue to serve: strict priorities first, then
// deficit weighted round robin (Shreedhar and Varghese, SIGCOMM 1995).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>

#include "emulator/engine/base/random.h"
#include "emulator/network/frame_slots.h"
#include "emulator/network/network_topology.h"
#include "emulator/network/switch_buffer.h"

namespace rocemu::network {

/// The DWRR shares of a port, computed from PriorityParameters.
struct Shares {
  uint8_t strict = 0;
  std::array<uint64_t, kPriorities> quantum_bytes{};

  Shares(const PriorityParameters& parameters, uint32_t largest_frame_bytes);
};

class PortQueues {
 public:
  void push(FrameSlots& frames, uint32_t frame) {
    FrameSlot& slot = frames[frame];
    Queue& queue = queues_[slot.priority];
    slot.queue_position = queue.taken + queue.bytes;
    if (queue.tail == kNoFrame) {
      queue.head = frame;
    } else {
      frames[queue.tail].next = frame;
    }
    queue.tail = frame;
    queue.bytes += slot.bytes;
    filled_ |= static_cast<uint8_t>(1u << slot.priority);
  }

  /// Takes the first frame of the queue, which must not be empty.
  uint32_t pop(FrameSlots& frames, uint8_t priority) {
    Queue& queue = queues_[priority];
    const uint32_t frame = queue.head;
    queue.head = frames[frame].next;
    queue.bytes -= frames[frame].bytes;
    queue.taken += frames[frame].bytes;
    if (queue.head == kNoFrame) {
      queue.tail = kNoFrame;
      queue.deficit = 0;
      filled_ &= static_cast<uint8_t>(~(1u << priority));
    }
    return frame;
  }

  /// Chooses one of `candidates`, a bit mask of non-empty queues. If the chosen queue has a share,
  /// subtracts its first frame from the share.
  uint8_t choose(FrameSlots& frames, uint8_t candidates, const Shares& shares) {
    const auto strict = static_cast<uint8_t>(candidates & shares.strict);
    if (strict != 0) return static_cast<uint8_t>(std::bit_width(strict) - 1);
    // If only one queue has frames, it is chosen, and its share does not change.
    if ((candidates & (candidates - 1)) == 0)
      return static_cast<uint8_t>(std::countr_zero(candidates));
    while (true) {
      Queue& queue = queues_[turn_];
      const uint32_t bytes = queue.head == kNoFrame ? 0 : frames[queue.head].bytes;
      if ((candidates >> turn_ & 1) != 0 && queue.deficit >= bytes) {
        queue.deficit -= bytes;
        return turn_;
      }
      do {
        turn_ = (turn_ + 1) % kPriorities;
      } while ((candidates >> turn_ & 1) == 0);
      queues_[turn_].deficit += shares.quantum_bytes[turn_];
    }
  }

  /// Returns the priorities whose queues have frames, as a bit mask.
  uint8_t filled() const { return filled_; }
  uint64_t bytes(uint8_t priority) const { return queues_[priority].bytes; }
  /// Returns the number of bytes in front of the frame in its queue.
  uint64_t bytes_before(const FrameSlot& frame) const {
    return frame.queue_position - queues_[frame.priority].taken;
  }

 private:
  struct Queue {
    uint32_t head = kNoFrame;
    uint32_t tail = kNoFrame;
    uint64_t bytes = 0;
    uint64_t taken = 0;  // the total bytes that have left it
    uint64_t deficit = 0;
  };

  std::array<Queue, kPriorities> queues_;
  uint8_t filled_ = 0;
  uint8_t turn_ = 0;
};

/// Computes the exact time that bytes take at a rate. While the port is busy, carries the remaining
/// fraction of a picosecond from frame to frame.
class Serializer {
 public:
  void set_rate(uint64_t bps) {
    rate_bps_ = bps;
    ps_per_byte_ = kPsBits % bps == 0 ? kPsBits / bps : 0;
    remainder_ = 0;
  }
  uint64_t rate_bps() const { return rate_bps_; }
  /// Returns a lower bound of the time that the bytes take.
  uint64_t picoseconds_at_least(uint64_t bytes) const {
    if (ps_per_byte_ != 0) return bytes * ps_per_byte_;
    constexpr uint64_t kMost = UINT64_MAX / kPsBits;
    return bytes <= kMost ? bytes * kPsBits / rate_bps_ : bytes * (kPsBits / rate_bps_);
  }
  void rest() { remainder_ = 0; }
  uint64_t picoseconds(uint32_t bytes) {
    if (ps_per_byte_ != 0) return bytes * ps_per_byte_;
    const uint64_t numerator = bytes * kPsBits + remainder_;
    remainder_ = numerator % rate_bps_;
    return numerator / rate_bps_;
  }

 private:
  static constexpr uint64_t kPsBits =
      8'000'000'000'000;  // picoseconds per second times bits per byte

  uint64_t rate_bps_ = 1;
  uint64_t ps_per_byte_ = 0;  // 0: not an integer
  uint64_t remainder_ = 0;
};

struct PortState {
  PortQueues queues;
  Serializer serializer;
  PortInfo info;
  uint64_t delay_ps = 0;
  uint64_t busy_until_ps = 0;
  uint32_t link_epoch = 0;  // counts how often the link has gone down
  bool is_up = true;
  bool has_wake_up = false;  // an event will serve the queues
  uint8_t paused = 0;        // priorities that the peer has paused, as bits
  uint8_t wanted_pause = 0;  // priorities for which this port wants to pause its peer
  uint8_t sent_pause = 0;    // priorities for which it last sent a pause
  uint8_t full = 0;          // priorities of a host for which can_inject() returned false
  uint32_t corruption = 0;   // probability for arriving frames, in units of 2^-32
  IngressAccount ingress;
  engine::Random random{0};
  std::array<uint64_t, kPriorities> paused_since_ps{};
};

}  // namespace rocemu::network
