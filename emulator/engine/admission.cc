#include "emulator/engine/admission.h"

#include <algorithm>
#include <utility>

#include "emulator/engine/protocol/qp_traits.h"
#include "emulator/engine/transport/completer.h"
#include "emulator/engine/transport/congestion.h"
#include "emulator/engine/transport/responder.h"
#include "emulator/engine/transport/uc.h"
#include "emulator/engine/transport/ud.h"
#include "wire/cm/mad.h"
#include "wire/identification.h"

namespace rocemu::engine {
namespace {

/// IBTA vol 1, 10.5.1: packets to a multicast group have this destination QPN.
constexpr uint32_t kMulticastQpn = 0xffffff;

}  // namespace

/// Receives all frames of a burst. If a rule acts for the last time within the burst, the rest of
/// the burst still passes through the rules, so that no frame overtakes one that a rule handles.
void Admission::receive(const ReceivedFrames& input) {
  const bool disturbed = context_.faults().watches_frames();
  for (const ReceivedFrame& received : input.frames) receive(received, disturbed);
}

void Admission::receive(const ReceivedFrame& input, bool disturbed) {
  std::span<const uint8_t> bytes = input.bytes;
  const uint16_t given = wire::identification_of(bytes);
  // Annex A17.3.3: the ICRC covers the identification field of the IPv4 header as well.
  const std::optional<uint16_t> right = wire::find_identification(bytes);
  const bool intact = right && (*right == given || !input.identification_known);
  const bool guessed_wrong = intact && *right != given;
  Frame copy;
  if ((context_.config().trace_frames || disturbed || guessed_wrong) &&
      bytes.size() <= Frame::kCapacity) {
    copy = frames_.allocate();
    std::copy(bytes.begin(), bytes.end(), copy.storage().begin());
    copy.set_size(bytes.size());
    if (guessed_wrong) wire::write_identification(copy.bytes(), *right);
    bytes = std::as_const(copy).bytes();
  }
  const FrameMarks marks{.number = context_.faults().frames.next_number()};
  const bool goes_by_rules = disturbed && intact && copy;
  // Rules add their marks before the frame is traced, so a frame that goes through the rules is
  // traced later.
  if (context_.config().trace_frames && copy && !goes_by_rules) {
    step_.emit(FrameTrace{step_.now(), copy, marks});
  }
  if (!intact) return drop_damaged(input.device, bytes);
  auto packet = wire::parse_frame(bytes);
  if (!goes_by_rules) {
    return arrivals_.push({input.device, bytes, std::move(copy), packet});
  }
  const QueuePair* qp =
      packet ? context_.objects().qps.find(QpNumber{packet->bth.dest_qpn}) : nullptr;
  context_.faults().frames.send(
      {.from = {}, .to = input.device, .frame = std::move(copy), .marks = marks},
      qp != nullptr && qp->device == input.device ? qp : nullptr);
}

void Admission::arrive(const Arrival& arrival) {
  arrive(arrival.to, arrival.bytes, arrival.packet, true);
}

void Admission::arrive(const InFlight& in_flight) {
  const Frame& frame = in_flight.frame;
  if (!in_flight.check_icrc && frame.packet() != nullptr) {
    return arrive_parsed(in_flight.to, frame);
  }
  const auto bytes = frame.bytes();
  if (in_flight.check_icrc && !wire::check_icrc(bytes)) return drop_damaged(in_flight.to, bytes);
  arrive(in_flight.to, bytes, wire::parse_frame(bytes), in_flight.from_outside);
}

void Admission::arrive(ShortRequests& requests) {
  const DeviceIndex index = requests.to();
  size_t frame_size = 0;
  const wire::Packet& packet = requests.take(frame_size);
  if (count_arrival(index, frame_size)) dispatch(index, packet, {});
}

void Admission::drop_damaged(DeviceIndex index, std::span<const uint8_t> bytes) {
  // A frame that is too short to have an ICRC counts as malformed, not as corrupt.
  const bool parses = static_cast<bool>(wire::parse_frame(bytes));
  counters_of(index).add(parses ? Counter::kDroppedBadIcrc : Counter::kDroppedMalformed);
}

void Admission::arrive(DeviceIndex index, std::span<const uint8_t> bytes,
                       const wire::Result<wire::Packet>& packet, bool from_outside) {
  if (!count_arrival(index, bytes.size())) return;
  Counters& counters = counters_of(index);
  if (!packet) return counters.add(Counter::kDroppedMalformed);
  // Frames between devices of one fabric never leave it, except multicast frames, of which the
  // receivers in the fabric already have a copy. A frame from outside whose source is a device of
  // the fabric is therefore an echo or a forgery.
  if (from_outside && context_.objects().devices[index].config.outside &&
      context_.objects().devices.with_address(packet->src_ip)) {
    return counters.add(Counter::kDroppedWrongSource);
  }
  dispatch(index, *packet, bytes);
}

void Admission::arrive_parsed(DeviceIndex index, const Frame& frame) {
  if (!count_arrival(index, frame.size())) return;
  const wire::Packet& packet = *frame.packet();
  // The program gets a datagram's route header (GRH or IPv4), so the whole frame is passed on. The
  // bytes of other frames are not needed.
  const bool is_datagram = wire::find_opcode(packet.bth.opcode)->transport == wire::Transport::kUd;
  dispatch(index, packet, is_datagram ? frame.bytes() : std::span<const uint8_t>());
}

bool Admission::count_arrival(DeviceIndex index, size_t size) {
  Counters& counters = counters_of(index);
  if (!context_.objects().devices[index].port_is_up()) {
    counters.add(Counter::kDroppedPortDown);
    return false;
  }
  counters.add(Counter::kFramesIn);
  counters.add(Counter::kBytesIn, size);
  return true;
}

void Admission::dispatch(DeviceIndex index, const wire::Packet& packet,
                         std::span<const uint8_t> frame) {
  const wire::OpcodeInfo& info = *wire::find_opcode(packet.bth.opcode);
  if (packet.bth.dest_qpn == wire::kGsiQpn) {
    if (context_.adversary() != nullptr) context_.adversary()->write_pending();
    return connections_.receive(index, packet);
  }
  if (packet.bth.dest_qpn == kMulticastQpn && packet.dst_ip.is_multicast()) {
    counters_of(index).add(Counter::kMulticastFramesIn);
    for (const QpNumber member : context_.objects().multicast.members(index, packet.dst_ip)) {
      admit(*context_.objects().qps.find(member), index, packet, info, frame);
    }
    return;
  }
  QueuePair* qp = context_.objects().qps.find(QpNumber{packet.bth.dest_qpn});
  if (qp == nullptr) return counters_of(index).add(Counter::kDroppedUnknownQp);
  admit(*qp, index, packet, info, frame);
}

void Admission::admit(QueuePair& qp, DeviceIndex index, const wire::Packet& packet,
                      const wire::OpcodeInfo& info, std::span<const uint8_t> frame) {
  Counters& counters = counters_of(index);
  // IBTA vol 1, 9.6.1.1: a QP in RESET, INIT or ERR does not receive.
  if (qp.device != index || !qp.can_receive()) return counters.add(Counter::kDroppedUnknownQp);
  const bool is_cnp = packet.bth.opcode == wire::Opcode::kCnp;
  const bool fits = is_cnp ? qp.type != abi::QpType::kUd : info.transport == transport_of(qp.type);
  if (!fits) {
    return counters.add(Counter::kDroppedWrongTransport);
  }
  if ((packet.bth.pkey & 0x7fff) != (wire::kDefaultPkey & 0x7fff)) {
    return counters.add(Counter::kDroppedWrongPkey);
  }
  if (context_.adversary() == nullptr) [[likely]]
    return process(qp, packet, info, frame);
  context_.adversary()->begin_packet(qp, info);
  process(qp, packet, info, frame);
  context_.adversary()->end_packet();
}

void Admission::process(QueuePair& qp, const wire::Packet& packet, const wire::OpcodeInfo& info,
                        std::span<const uint8_t> frame) {
  Counters& counters = context_.counters_of(qp);
  if (qp.type == abi::QpType::kUd) return ud::on_packet(context_, qp, packet, info, frame);
  // IBTA vol 1, 9.6.1.5.1: a connected QP takes packets from its peer's address only.
  if (packet.src_ip != qp.path.dst_ip || packet.dst_ip != qp.path.src_ip) {
    return counters.add(Counter::kDroppedWrongSource);
  }
  if (packet.bth.opcode == wire::Opcode::kCnp) return congestion::on_notification(context_, qp);
  congestion::on_packet(context_, qp, packet);
  // Annex A14: an XRC QP has only one half; it either sends or receives.
  const bool has_half =
      qp.type != (info.is_response ? abi::QpType::kXrcRecv : abi::QpType::kXrcSend);
  if (!has_half) return counters.add(Counter::kDroppedWrongTransport);
  if (qp.type == abi::QpType::kUc) {
    uc::on_request(context_, qp, packet, info);
  } else if (info.is_response) {
    completer::on_response(context_, qp, packet, info);
  } else {
    responder::on_request(context_, qp, packet, info);
  }
}

}  // namespace rocemu::engine
