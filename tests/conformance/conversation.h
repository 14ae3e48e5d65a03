// The messages that two queue pairs exchanged in a capture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/engine/base/time.h"
#include "wire/packet.h"

namespace rocemu::conformance {

struct CapturedFrame {
  engine::Duration at;  // time since the capture's first frame
  std::vector<uint8_t> bytes;
  wire::Packet packet;  // its payload is a part of `bytes`
  const wire::OpcodeInfo& info() const { return *wire::find_opcode(packet.bth.opcode); }
};

/// One end of a conversation. The QPN is 0 if no captured frame contains it.
struct End {
  wire::IpAddress address;
  uint32_t qpn = 0;
};

/// The frames between two QPs, in the order of the capture.
struct Conversation {
  std::string capture;  // the file's name without ".pcap"
  wire::Transport transport = wire::Transport::kRc;
  End ends[2];
  std::vector<CapturedFrame> frames;
  /// The path MTU in bytes, derived from the longest messages.
  uint32_t mtu = 1024;

  bool is_from(const CapturedFrame& frame, int end) const {
    return frame.packet.src_ip == ends[end].address;
  }
};

/// Returns all conversations of all captures of Linux rdma_rxe, except those of the connection
/// manager and of multicast groups.
std::vector<Conversation> read_conversations();

}  // namespace rocemu::conformance
