// A run: consecutive packets of one message that have arrived. Writing to the application's memory
// costs about as much for one packet as for sixteen. Therefore the code that writes the payload of
// the current packet (receive_queue.cc, remote_access.cc, completer.cc) also writes the payloads of
// the packets that follow it. Each packet is still checked when its turn comes; its payload is then
// in place already.
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
  /// The maximum number of packets in a run: as many as a requester or responder sends in one
  /// quantum.
  static constexpr size_t kMaxPackets = 16;

  /// Begins a run with `first`, which was taken from the link. The run continues with the next
  /// packets of the same message that have arrived, and has at most `limit` packets.
  void begin(const InFlight& first, const Link& link, Instant now, size_t limit);
  /// Begins a run with the first of `arrivals`, which must not be empty.
  void begin(std::span<const Arrival> arrivals);
  /// Makes the run empty, because the next packet may not belong to it.
  void clear() { count_ = at_ = written_ = 0; }
  /// Makes the next packet the current one.
  void advance() {
    if (++at_ >= count_) clear();
  }
  bool empty() const { return count_ == 0; }

  /// Returns whether the payload of the current packet was already written, together with that of
  /// an earlier packet or by a direct copy.
  bool is_written() const { return at_ < written_; }

  /// Writes the payloads of the current packet and of all later packets of the run to the memory
  /// that `memory_of(bytes)` returns for their total size. Returns false if they do not fit into
  /// `room` bytes, the memory is not accessible, or there is no later packet. The caller must then
  /// write the current packet alone, so that an error is attributed to the right packet.
  template <class MemoryOf>
  bool write_together(HostMemory& memory, uint64_t room, MemoryOf memory_of) {
    if (count_ < at_ + 2) return false;
    const std::span<const std::span<const uint8_t>> payloads(payloads_.data() + at_, count_ - at_);
    uint64_t bytes = 0;
    for (const auto payload : payloads) bytes += payload.size();
    if (bytes > room) return false;
    const auto target = memory_of(bytes);
    if (!target || target->write(memory, payloads) != MemoryResult::kDone) return false;
    written_ = count_;
    return true;
  }

 private:
  bool begin(const wire::Packet& first);
  bool add(const wire::Packet& next);

  std::array<std::span<const uint8_t>, kMaxPackets> payloads_;
  const wire::Packet* latest_ = nullptr;  // while packets are added
  size_t count_ = 0;
  size_t at_ = 0;       // the current packet
  size_t written_ = 0;  // the payloads of the packets before this one are in place
};

}  // namespace rocemu::engine
