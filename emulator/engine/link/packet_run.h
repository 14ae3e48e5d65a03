// Packets of one message that arrive in a row. To write to the application's memory costs about as
// much for one packet as for sixteen. Therefore what writes the payload of the packet at hand
// (receive_queue.cc, remote_access.cc, completer.cc) writes that of the packets behind it with it.
// Each packet is checked as ever when its turn comes, and then finds its payload in place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/engine/base/host_memory.h"
#include "emulator/engine/base/time.h"
#include "emulator/engine/link/arrivals.h"
#include "emulator/engine/link/link.h"
#include "wire/packet.h"

namespace rocemu::engine {

class PacketRun {
 public:
  /// As many as a requester or responder sends in one turn.
  static constexpr size_t kMaxPackets = 16;

  /// Begins with `first`, which was taken from the link, and goes on with the packets of the same
  /// message that have arrived behind it; `limit` packets at most.
  void begin(const InFlight& first, const Link& link, Instant now, size_t limit);
  /// Begins with the first of what came from outside, which is at least one.
  void begin(std::span<const Arrival> arrivals);
  /// Of what arrives next nothing is known.
  void clear() { count_ = at_ = written_ = 0; }
  /// The next packet is at hand.
  void advance() {
    if (++at_ >= count_) clear();
  }
  bool empty() const { return count_ == 0; }

  /// The payload of the packet at hand was written with that of one before it.
  bool is_written() const { return at_ < written_; }

  /// Writes the payload of the packet at hand and of those behind it to the memory that
  /// `place_of(bytes)` finds for that many. False if they do not fit into `room` bytes, the memory
  /// is not there, or there is nothing behind it: then the packet at hand is written by itself, so
  /// that each packet finds out what is wrong with it.
  template <class PlaceOf>
  bool write_together(HostMemory& memory, uint64_t room, PlaceOf place_of) {
    if (count_ < at_ + 2) return false;
    const std::span<const std::span<const uint8_t>> payloads(payloads_.data() + at_, count_ - at_);
    uint64_t bytes = 0;
    for (const auto payload : payloads) bytes += payload.size();
    if (bytes > room) return false;
    const auto place = place_of(bytes);
    if (!place || place->write(memory, payloads) != MemoryResult::kDone) return false;
    written_ = count_;
    return true;
  }

 private:
  bool begin(const wire::Packet& first);
  bool add(const wire::Packet& next);

  std::array<std::span<const uint8_t>, kMaxPackets> payloads_;
  const wire::Packet* latest_ = nullptr;  // while packets are added
  size_t count_ = 0;
  size_t at_ = 0;       // the packet at hand
  size_t written_ = 0;  // the payloads before this one are in place
};

}  // namespace rocemu::engine
