// From a frame that reached a device to the half of the QP that it is for: the checks that come
// before any protocol state is looked at (IBTA vol 1, 9.6 "packet transport header validation").
// Whatever fails them is counted by reason and dropped without an answer.
#include <algorithm>
#include <utility>

#include "emulator/engine/fabric.h"
#include "emulator/engine/link/congestion.h"
#include "emulator/engine/protocol/qp_traits.h"
#include "emulator/engine/transport/address_vector.h"
#include "emulator/engine/transport/completer.h"
#include "emulator/engine/transport/responder.h"
#include "emulator/engine/transport/uc.h"
#include "emulator/engine/transport/ud.h"
#include "wire/cm/mad.h"
#include "wire/identification.h"

namespace rocemu::engine {
namespace {

/// IBTA vol 1, 10.5.1: of packets to a multicast group.
constexpr uint32_t kMulticastQpn = 0xffffff;

}  // namespace

void Fabric::receive(const ReceiveFrame& input) {
  std::span<const uint8_t> bytes = input.bytes;
  const uint16_t given = wire::identification_of(bytes);
  // Annex A17.3.3 covers the identification as well.
  const std::optional<uint16_t> right = wire::find_identification(bytes);
  const bool intact = right && (*right == given || !input.identification_known);
  const bool guessed_wrong = intact && *right != given;
  const bool disturbed = faults.watches_frames();
  Frame copy;
  if ((config_.trace_frames || disturbed || guessed_wrong) && bytes.size() <= Frame::kCapacity) {
    copy = frames_.allocate();
    std::copy(bytes.begin(), bytes.end(), copy.storage().begin());
    copy.set_size(bytes.size());
    if (guessed_wrong) wire::write_identification(copy.bytes(), *right);
    bytes = std::as_const(copy).bytes();
    if (config_.trace_frames) step_.emit(FrameTrace{now(), copy});
  }
  if (!intact) return drop_damaged(input.device, bytes);
  if (!disturbed || !copy) return arrive(input.device, bytes, true);
  const auto packet = wire::parse_frame(bytes);
  const QueuePair* qp = packet ? qps.find(QpNumber{packet->bth.dest_qpn}) : nullptr;
  faults.frames.apply({.from = {}, .to = input.device, .frame = std::move(copy), .traced = true},
                      qp != nullptr && qp->device == input.device ? qp : nullptr);
}

void Fabric::arrive_if_intact(DeviceIndex index, std::span<const uint8_t> bytes,
                              bool from_outside) {
  if (!wire::check_icrc(bytes)) return drop_damaged(index, bytes);
  arrive(index, bytes, from_outside);
}

void Fabric::drop_damaged(DeviceIndex index, std::span<const uint8_t> bytes) {
  // A frame too short to have an ICRC is malformed rather than corrupt.
  const bool parses = static_cast<bool>(wire::parse_frame(bytes));
  device(index).counters.add(parses ? Counter::kDroppedBadIcrc : Counter::kDroppedMalformed);
}

void Fabric::arrive(DeviceIndex index, std::span<const uint8_t> bytes, bool from_outside) {
  if (!count_arrival(index, bytes.size())) return;
  Counters& counters = device(index).counters;
  const auto packet = wire::parse_frame(bytes);
  if (!packet) return counters.add(Counter::kDroppedMalformed);
  // What devices of one fabric send each other never leaves it, but for multicast, which is here
  // already: from outside it is an echo or a lie.
  if (from_outside && device(index).config.outside && device_with_address(packet->src_ip)) {
    return counters.add(Counter::kDroppedWrongSource);
  }
  dispatch(index, *packet, bytes);
}

void Fabric::arrive_parsed(DeviceIndex index, const Frame& frame) {
  if (!count_arrival(index, frame.size())) return;
  const wire::Packet& packet = *frame.packet();
  // A datagram comes with its route header; of others nobody looks at the bytes.
  const bool is_datagram = wire::find_opcode(packet.bth.opcode)->transport == wire::Transport::kUd;
  dispatch(index, packet, is_datagram ? frame.bytes() : std::span<const uint8_t>());
}

bool Fabric::count_arrival(DeviceIndex index, size_t size) {
  Counters& counters = device(index).counters;
  if (!device(index).port_is_up()) {
    counters.add(Counter::kDroppedPortDown);
    return false;
  }
  counters.add(Counter::kFramesIn);
  counters.add(Counter::kBytesIn, size);
  return true;
}

void Fabric::dispatch(DeviceIndex index, const wire::Packet& packet,
                      std::span<const uint8_t> frame) {
  const wire::OpcodeInfo& info = *wire::find_opcode(packet.bth.opcode);
  if (packet.bth.dest_qpn == wire::kGsiQpn) return connections.receive(index, packet);
  if (packet.bth.dest_qpn == kMulticastQpn && is_multicast(packet.dst_ip)) {
    for (const QpNumber member : multicast.members(index, packet.dst_ip)) {
      admit(*qps.find(member), index, packet, info, frame);
    }
    return;
  }
  QueuePair* qp = qps.find(QpNumber{packet.bth.dest_qpn});
  if (qp == nullptr) return device(index).counters.add(Counter::kDroppedUnknownQp);
  admit(*qp, index, packet, info, frame);
}

void Fabric::admit(QueuePair& qp, DeviceIndex index, const wire::Packet& packet,
                   const wire::OpcodeInfo& info, std::span<const uint8_t> frame) {
  Counters& counters = device(index).counters;
  // 9.6.1.1: a QP in RESET, INIT or ERR does not receive.
  if (qp.device != index || !qp.can_receive()) return counters.add(Counter::kDroppedUnknownQp);
  const bool is_cnp = packet.bth.opcode == wire::Opcode::kCnp;
  const bool fits = is_cnp ? qp.type != abi::QpType::kUd : info.transport == transport_of(qp.type);
  if (!fits) {
    return counters.add(Counter::kDroppedWrongTransport);
  }
  if ((packet.bth.pkey & 0x7fff) != (wire::kDefaultPkey & 0x7fff)) {
    return counters.add(Counter::kDroppedWrongPkey);
  }
  if (qp.type == abi::QpType::kUd) return ud::on_packet(*this, qp, packet, info, frame);
  // 9.6.1.5.1: a connected QP takes packets from its peer's address only.
  if (packet.src_ip != qp.path.dst_ip || packet.dst_ip != qp.path.src_ip) {
    return counters.add(Counter::kDroppedWrongSource);
  }
  if (is_cnp) return counters.add(Counter::kCnpsReceived);
  congestion::on_packet(*this, qp, packet);
  // Annex A14: an XRC QP is one half only.
  const bool has_half =
      qp.type != (info.is_response ? abi::QpType::kXrcRecv : abi::QpType::kXrcSend);
  if (!has_half) return counters.add(Counter::kDroppedWrongTransport);
  if (qp.type == abi::QpType::kUc) {
    uc::on_request(*this, qp, packet, info);
  } else if (info.is_response) {
    completer::on_response(*this, qp, packet, info);
  } else {
    responder::on_request(*this, qp, packet, info);
  }
}

}  // namespace rocemu::engine
