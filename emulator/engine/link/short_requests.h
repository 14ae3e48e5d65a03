// The requests that a QP sends to another QP of the fabric without frames. Each is a whole message
// whose payload is in the sender's WQE. A QP may send so only if nothing can see its packets on
// their way, or change them: without a capture, rules, a simulated network, an adversary and a
// latency of the link. The requests then arrive one after the other, as frames would, and with the
// same counts. Making a frame, and taking it through the link, costs more than all the rest of a
// short message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/engine/base/ids.h"
#include "wire/packet.h"

namespace rocemu::engine {

/// The fields in which the packets of a quantum differ
struct ShortRequest {
  wire::Opcode opcode;
  bool solicited;
  wire::Psn psn;
  uint32_t imm_data;  // or the R_Key to invalidate
  wire::Reth reth;
  std::span<const uint8_t> payload;  // in the sender's queue
  uint32_t frame_size;               // that its frame would have
};

/// The requests of one quantum. They arrive before anything else happens, in the same step, since
/// their payload is in the sender's queue.
class ShortRequests {
 public:
  static constexpr size_t kMax = 16;  // the packets of a quantum

  bool empty() const { return next_ == count_; }
  /// Begins with no requests. Drops those that an exception has left.
  void clear() { next_ = count_ = 0; }
  /// Allows or forbids QPs to send without frames until the next call. The step must have time for
  /// all requests of a quantum.
  void set_allowed(bool is_allowed) { is_allowed_ = is_allowed; }
  bool is_allowed() const { return is_allowed_; }

  /// Adds a request of the quantum, which the caller fills. If it is the first, `address(packet)`
  /// must set the fields that all packets of the QP have in common, and return the receiving
  /// device.
  template <class Address>
  ShortRequest& add(Address address) {
    if (empty()) {
      clear();
      packet_ = wire::Packet();
      to_ = address(packet_);
    }
    return list_[count_++];
  }
  DeviceIndex to() const { return to_; }
  /// Removes the next request, which must exist. Sets `frame_size`, and returns the packet that a
  /// frame would carry. The packet is valid until the next call.
  const wire::Packet& take(size_t& frame_size) {
    const ShortRequest& request = list_[next_++];
    packet_.bth.opcode = request.opcode;
    packet_.bth.solicited = request.solicited;
    packet_.bth.psn = request.psn;
    packet_.bth.ack_req = true;
    packet_.bth.pad_count = static_cast<uint8_t>((4 - request.payload.size() % 4) % 4);
    packet_.imm.value = request.imm_data;
    packet_.ieth.rkey = request.imm_data;
    packet_.reth = request.reth;
    packet_.payload = request.payload;
    frame_size = request.frame_size;
    return packet_;
  }

 private:
  std::array<ShortRequest, kMax> list_;
  size_t next_ = 0, count_ = 0;
  DeviceIndex to_{};
  wire::Packet packet_;
  bool is_allowed_ = false;
};

}  // namespace rocemu::engine
