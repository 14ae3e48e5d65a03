#include "emulator/engine/transport/transmitter.h"

#include <utility>

namespace rocemu::engine {
namespace {

/// The value of the ECN field for packets that can be marked (RFC 3168, 5).
constexpr uint8_t kEct0 = 2, kEcnMask = 3;
/// The bytes of FCS, preamble and gap.
constexpr size_t kFramingBytes = 24;

/// Returns whether congestion control applies to the packet: a request, or the response to a READ.
/// Acknowledgements and CNPs are neither marked nor paced.
bool is_controlled(const wire::Packet& packet) {
  const wire::OpcodeInfo* info = wire::find_opcode(packet.bth.opcode);
  return info != nullptr && info->operation != wire::Operation::kAck &&
         info->operation != wire::Operation::kCongestionNotification;
}

}  // namespace

uint8_t Transmitter::traffic_class_of(const QueuePair& qp, const wire::Packet& packet) const {
  const uint8_t given = qp.path.traffic_class;
  const auto notification =
      config_.network != nullptr ? config_.network->notification() : std::nullopt;
  if (!notification || qp.type == abi::QpType::kUd) return given;
  if (packet.bth.opcode == wire::Opcode::kCnp) return static_cast<uint8_t>(notification->dscp << 2);
  const bool is_capable = (given & kEcnMask) != 0;
  return is_controlled(packet) && !is_capable ? given | kEct0 : given;
}

void Transmitter::address(const QueuePair& qp, wire::Packet& packet) const {
  const Path& path = qp.path;
  packet.src_mac = path.src_mac;
  packet.dst_mac = path.dst_mac;
  packet.src_ip = path.src_ip;
  packet.dst_ip = path.dst_ip;
  packet.udp_src_port = path.udp_src_port;
  packet.traffic_class =
      config_.network == nullptr ? path.traffic_class : traffic_class_of(qp, packet);
  packet.hop_limit = path.hop_limit;
  packet.flow_label = path.flow_label;
  packet.bth.dest_qpn = path.peer.value;
}

bool Transmitter::is_way_watched(const QueuePair& qp) const {
  return config_.trace_frames || config_.network != nullptr ||
         config_.link_latency != Duration(0) || !qp.path.inside ||
         qp.path.src_ip.is_v4() != qp.path.dst_ip.is_v4() || qp.path.dst_ip.is_multicast() ||
         way_out_.watches() || !objects_.devices[qp.device].port_is_up();
}

void Transmitter::count_unseen(const QueuePair& qp, size_t frame_size) {
  Counters& counters = objects_.device_of(qp).counters;
  counters.add(Counter::kFramesOut);
  counters.add(Counter::kBytesOut, frame_size);
  static_cast<void>(way_out_.next_number());
}

void Transmitter::send(QueuePair& qp, wire::Packet& packet, size_t payload_size, Frame frame,
                       const Resend& resend) {
  const Path& path = qp.path;
  address(qp, packet);
  if (qp.congestion && qp.congestion->rate && is_controlled(packet)) [[unlikely]] {
    RateController& rate = *qp.congestion->rate;
    const auto bytes =
        static_cast<uint32_t>(wire::frame_size(packet, payload_size) + kFramingBytes);
    rate.on_sent(bytes, step_.now());
    qp.congestion->pacer.sent(bytes, rate.rate_bps(), step_.now());
  }
  send(qp.device, path.inside, packet, payload_size, std::move(frame), resend, &qp);
}

void Transmitter::send(DeviceIndex from, std::optional<DeviceIndex> inside,
                       const wire::Packet& packet, size_t payload_size, Frame frame,
                       const Resend& resend, const QueuePair* qp) {
  const bool disturbed = way_out_.watches();
  // set_packet() is not used if the addresses have different families, since the frame then has
  // other contents than the packet (wire/packet.cc).
  if (inside && !disturbed && packet.src_ip.is_v4() == packet.dst_ip.is_v4()) {
    frame.set_packet(packet, payload_size);
  } else {
    frame.set_size(wire::emit_headers(packet, payload_size, frame.storage()));
  }
  if (config_.trace_frames || !inside || disturbed) wire::write_icrc(frame.bytes());

  Device& device = objects_.devices[from];
  if (!device.port_is_up()) return device.counters.add(Counter::kDroppedPortDown);
  device.counters.add(Counter::kFramesOut);
  device.counters.add(Counter::kBytesOut, frame.size());
  if (packet.dst_ip.is_multicast()) [[unlikely]] {
    device.counters.add(Counter::kMulticastFramesOut);
  }
  Departure departure{.from = from,
                      .to = inside,
                      .frame = std::move(frame),
                      .marks = {.number = way_out_.next_number(), .resend = resend},
                      .qp = qp != nullptr ? std::optional(qp->number) : std::nullopt};
  if (!inside && packet.dst_ip.is_multicast()) [[unlikely]] {
    return send_to_group(departure, packet, qp);
  }
  way_out_.send(std::move(departure), qp);
}

void Transmitter::send_to_group(const Departure& departure, const wire::Packet& packet,
                                const QueuePair* qp) {
  Departure next = departure;
  const auto send_to = [&](std::optional<DeviceIndex> to) {
    next.to = to;
    way_out_.send(Departure(next), qp);
    next.traced = true;
  };
  objects_.multicast.for_each_device(packet.dst_ip, send_to);
  send_to(std::nullopt);  // the group may have members outside as well
}

}  // namespace rocemu::engine
