// Follows the frames of all connections. Finds the lanes of each frame, its PSN relative to the
// connection's first PSN, and its meaning. The bytes of a frame do not contain the reason for a
// retransmission: a recording contains it (frame_facts.h), and for a capture it is concluded
// (capture_repeats.h).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/timeline/model.h"
#include "wire/packet.h"

namespace rocemu::timeline {

class FrameFollower {
 public:
  explicit FrameFollower(Timeline& timeline) : timeline_(timeline) {}

  // ---- The facts about QPs -------------------------------------------------------------------

  /// The address of a QP: the name or address of its device, and its QPN.
  using QpKey = std::pair<std::string, uint32_t>;

  void name_address(const wire::IpAddress& address, const std::string& device) {
    devices_[wire::to_string(address)] = device;
  }
  /// Forgets an earlier QP whose number a new QP uses.
  void forget(const QpKey& key) { qps_.erase(key); }
  /// Notes that the QP is in RESET, so that frames that it sent before are ignored.
  void restart(const QpKey& key) {
    const uint32_t lane = std::exchange(qps_[key], Qp()).lane;
    qps_[key].lane = lane;
  }
  void set_lane(const QpKey& key, uint32_t lane) { qps_[key].lane = lane; }
  void set_peer(const QpKey& key, const QpKey& peer);
  void set_send_psn(const QpKey& key, uint32_t psn) { qps_[key].send_start = psn; }
  void set_receive_psn(const QpKey& key, uint32_t psn) { qps_[key].receive_start = psn; }
  std::string place_of(const wire::IpAddress& address) const;
  /// Returns the lane of the QP. Creates the lane if necessary.
  uint32_t lane_of(const QpKey& key);

  // ---- Frames --------------------------------------------------------------------------------

  /// Appends a frame to the timeline, and returns its happening.
  Happening& add(engine::Instant at, const wire::Packet& packet, std::vector<uint8_t> bytes,
                 uint32_t size);

 private:
  struct Qp {
    uint32_t lane = kNoLane;
    std::optional<QpKey> peer;
    std::optional<uint32_t> send_start, receive_start;
  };

  std::optional<uint32_t> sender_qpn(const wire::Packet& packet, const QpKey& to,
                                     const std::string& from);
  void add_request(const wire::Packet& packet, Qp& sender, Qp& receiver, Happening& happening);
  void add_response(const wire::Packet& packet, Qp& requester, Happening& happening);
  bool add_cm(const wire::Packet& packet, const std::string& from, const std::string& to,
              Happening& happening);
  uint32_t cm_lane(const std::string& device, uint32_t comm_id);

  Timeline& timeline_;
  std::map<std::string, std::string> devices_;  // by address
  std::map<QpKey, Qp> qps_;
  std::map<std::pair<std::string, uint32_t>, uint32_t> comm_qpns_;  // by device and comm id
  /// The indexes of those happenings that show REQs for which no REP has named the receiver's QP
  /// yet, by receiving device and the sender's communication ID.
  std::map<std::pair<std::string, uint32_t>, std::vector<size_t>> requests_;
};

}  // namespace rocemu::timeline
