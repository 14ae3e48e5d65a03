// Marks the repeated frames of a capture, with the reason if the capture shows it. In a capture, a
// retransmission looks the same as a copy that the network made. So a frame gets a reason only in
// two cases: a NAK requested it, or the time since its last transmission fits a timer that the
// capture shows. This timer is that of an RNR NAK, or the ACK timeout on which REQ and REP agreed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "emulator/timeline/model.h"
#include "wire/aeth.h"
#include "wire/cm/cm_messages.h"
#include "wire/packet.h"

namespace rocemu::timeline {

class CaptureRepeats {
 public:
  /// Marks the happening `frame`, which shows `packet`, if the packet is a repeated one. Must be
  /// called for all frames in the order of the capture.
  void look_at(const wire::Packet& packet, Happening& frame);

 private:
  /// A PSN with more than 24 bits, which continues to grow where the PSN in the packets wraps.
  using Position = int64_t;
  struct Nak {
    wire::AethKind kind{};
    Position at = 0;
    engine::Instant when{};
    engine::Duration timer{};  // of an RNR NAK
  };
  /// The state of the requests that one QP sends to another.
  struct Requests {
    std::optional<Position> newest;
    std::set<Position> missing;                // lower than the newest, and not captured
    std::map<Position, engine::Instant> sent;  // latest time; without acknowledged requests
    std::optional<wire::Reth> read;            // the newest request, if it is a READ
    engine::Instant acknowledged_at{};
    std::optional<Nak> nak;  // until the requested frame arrives
    std::optional<engine::Duration> ack_timeout;
  };
  using Lanes = std::pair<uint32_t, uint32_t>;  // of the sender and the receiver

  static Position position_of(const Requests& requests, wire::Psn psn);
  static std::string reason_for(const Requests& requests, Position psn, engine::Instant now);
  void look_at_request(const wire::Packet& packet, bool is_read, Happening& frame);
  void look_at_response(const wire::Packet& packet, bool has_aeth, const Happening& frame);
  void look_at_mad(const wire::Packet& packet, const wire::CmMad& mad, Happening& frame);

  std::map<Lanes, Requests> requests_;
  std::set<std::string> mads_;  // that were read
  /// The encoded ACK timeouts in REQs, by the REQ's source address and local communication ID.
  std::map<std::pair<std::string, uint32_t>, uint8_t> ack_timeouts_;
};

}  // namespace rocemu::timeline
