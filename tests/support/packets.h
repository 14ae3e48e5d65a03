// Short functions that describe a packet to deliver or to expect.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/engine/base/frame.h"
#include "wire/aeth.h"
#include "wire/opcode.h"
#include "wire/packet.h"
#include "wire/print.h"

namespace rocemu::test {

inline wire::Psn psn(uint32_t value) {
  return wire::Psn(value);
}

/// A packet and its payload. When a script delivers the packet, members that are not set are filled
/// in. When it expects the packet, they are not compared.
struct PacketSpec {
  wire::Packet packet;
  std::optional<std::vector<uint8_t>> payload;
  std::optional<size_t> length;  // the length of the payload, if its bytes do not matter
  std::optional<uint32_t> msn;
  std::optional<uint32_t> qpn;            // another destination QP than that of the connection
  std::optional<wire::IpAddress> src_ip;  // another source address than that of the connection
  std::optional<wire::IpAddress> dst_ip;

  PacketSpec with(std::vector<uint8_t> bytes) const {
    PacketSpec spec = *this;
    spec.payload = std::move(bytes);
    return spec;
  }
  PacketSpec of_length(size_t bytes) const {
    PacketSpec spec = *this;
    spec.length = bytes;
    return spec;
  }
  PacketSpec with_msn(uint32_t value) const {
    PacketSpec spec = *this;
    spec.msn = value;
    return spec;
  }
  PacketSpec solicited() const {
    PacketSpec spec = *this;
    spec.packet.bth.solicited = true;
    return spec;
  }
  PacketSpec ack_req(bool wanted) const {
    PacketSpec spec = *this;
    spec.packet.bth.ack_req = wanted;
    return spec;
  }
  PacketSpec pkey(uint16_t value) const {
    PacketSpec spec = *this;
    spec.packet.bth.pkey = value;
    return spec;
  }
  PacketSpec traffic_class(uint8_t value) const {
    PacketSpec spec = *this;
    spec.packet.traffic_class = value;
    return spec;
  }
  /// Returns the packet with the same operation over another transport.
  PacketSpec over(wire::Transport transport) const {
    PacketSpec spec = *this;
    const auto operation = static_cast<uint8_t>(spec.packet.bth.opcode) & 0x1f;
    spec.packet.bth.opcode = static_cast<wire::Opcode>(operation | static_cast<uint8_t>(transport));
    return spec;
  }
  PacketSpec to_qp(uint32_t number) const {
    PacketSpec spec = *this;
    spec.qpn = number;
    return spec;
  }
  PacketSpec from(wire::IpAddress address) const {
    PacketSpec spec = *this;
    spec.src_ip = address;
    return spec;
  }
  PacketSpec to(wire::IpAddress address) const {
    PacketSpec spec = *this;
    spec.dst_ip = address;
    return spec;
  }
};

/// Returns a packet with any opcode. AckReq is set as by a requester, on the last packet of a
/// request.
inline PacketSpec packet(wire::Opcode opcode, wire::Psn number) {
  PacketSpec spec;
  spec.packet.bth.opcode = opcode;
  spec.packet.bth.psn = number;
  const wire::OpcodeInfo* info = wire::find_opcode(opcode);
  spec.packet.bth.ack_req = info != nullptr && info->is_last && !info->is_response;
  return spec;
}

inline PacketSpec send_only(wire::Psn n) {
  return packet(wire::Opcode::kRcSendOnly, n);
}
inline PacketSpec send_first(wire::Psn n) {
  return packet(wire::Opcode::kRcSendFirst, n);
}
inline PacketSpec send_middle(wire::Psn n) {
  return packet(wire::Opcode::kRcSendMiddle, n);
}
inline PacketSpec send_last(wire::Psn n) {
  return packet(wire::Opcode::kRcSendLast, n);
}
inline PacketSpec send_only_imm(wire::Psn n, uint32_t imm) {
  PacketSpec spec = packet(wire::Opcode::kRcSendOnlyImm, n);
  spec.packet.imm.value = imm;
  return spec;
}
inline PacketSpec send_last_imm(wire::Psn n, uint32_t imm) {
  PacketSpec spec = packet(wire::Opcode::kRcSendLastImm, n);
  spec.packet.imm.value = imm;
  return spec;
}

inline PacketSpec response(wire::Psn n, uint8_t syndrome) {
  PacketSpec spec = packet(wire::Opcode::kRcAck, n);
  spec.packet.aeth.syndrome = syndrome;
  return spec;
}
inline PacketSpec ack(wire::Psn n) {
  return response(n, wire::ack_syndrome());
}
inline PacketSpec rnr_nak(wire::Psn n, uint8_t timer) {
  return response(n, wire::rnr_nak_syndrome(timer));
}
inline PacketSpec nak(wire::Psn n, wire::NakCode code) {
  return response(n, wire::nak_syndrome(code));
}
inline PacketSpec sequence_nak(wire::Psn n) {
  return nak(n, wire::NakCode::kPsnSequenceError);
}

/// Returns the bytes of the frame, including the ICRC.
inline std::vector<uint8_t> frame_of(wire::Packet packet, std::span<const uint8_t> payload = {}) {
  packet.payload = payload;
  std::vector<uint8_t> bytes(wire::frame_size(packet, payload.size()));
  wire::emit_frame(packet, bytes);
  return bytes;
}

}  // namespace rocemu::test
