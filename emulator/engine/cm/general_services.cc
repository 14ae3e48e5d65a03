#include "emulator/engine/cm/general_services.h"

#include <algorithm>
#include <array>

#include "emulator/engine/transport/address_vector.h"

namespace rocemu::engine::cm {
namespace {

bool is_get_or_set(uint8_t method) {
  return method == static_cast<uint8_t>(wire::MadMethod::kGet) ||
         method == static_cast<uint8_t>(wire::MadMethod::kSet);
}

}  // namespace

std::optional<uint8_t> gid_index_of(const Environment& environment, DeviceIndex device,
                                    const wire::IpAddress& address) {
  const auto& addresses = environment.config(device).addresses;
  const auto found = std::find(addresses.begin(), addresses.end(), address);
  if (found == addresses.end()) return std::nullopt;
  return static_cast<uint8_t>(found - addresses.begin());
}

bool is_usable(const Environment& environment, const Route& route) {
  if (route.device.value >= environment.device_count()) return false;
  const auto& addresses = environment.config(route.device).addresses;
  return route.gid_index < addresses.size() &&
         addresses[route.gid_index].is_v4() == route.remote.is_v4();
}

void GeneralServices::send(const Route& route, std::span<const uint8_t, wire::kMadSize> mad,
                           const Resend& resend) {
  const DeviceConfig& config = environment_.config(route.device);
  const std::optional<DeviceIndex> inside = environment_.device_with_address(route.remote);
  wire::Packet packet;
  packet.src_mac = config.mac;
  if (inside) packet.dst_mac = environment_.config(*inside).mac;
  packet.src_ip = config.addresses[route.gid_index];
  packet.dst_ip = route.remote;
  packet.traffic_class = route.traffic_class;
  packet.hop_limit = route.hop_limit;
  packet.flow_label = route.flow_label;
  packet.udp_src_port = datagram_source_port(config, QpNumber{wire::kGsiQpn});
  packet.bth.opcode = wire::Opcode::kUdSendOnly;
  packet.bth.dest_qpn = wire::kGsiQpn;
  packet.bth.ack_req = true;  // as rxe, on QP 1 only; datagrams are not acknowledged
  wire::Psn& psn = next_psn_[route.device];
  packet.bth.psn = psn;
  ++psn;
  packet.deth = {.qkey = wire::kGsiQkey, .src_qpn = wire::kGsiQpn};

  Frame frame = environment_.allocate_frame();
  std::ranges::copy(mad, frame.storage().subspan(wire::payload_offset(packet)).begin());
  environment_.send(route.device, inside, packet, mad.size(), std::move(frame), resend);
}

std::optional<std::span<const uint8_t, wire::kMadSize>> GeneralServices::admit(
    DeviceIndex device, const wire::Packet& packet) {
  const auto drop = [&](Counter reason) {
    environment_.count(device, reason);
    return std::nullopt;
  };
  const wire::OpcodeInfo& info = *wire::find_opcode(packet.bth.opcode);
  if (info.transport != wire::Transport::kUd) return drop(Counter::kDroppedWrongTransport);
  if ((packet.bth.pkey & 0x7fff) != (wire::kDefaultPkey & 0x7fff)) {
    return drop(Counter::kDroppedWrongPkey);
  }
  if (packet.deth.qkey != wire::kGsiQkey) return drop(Counter::kDroppedWrongQkey);
  // IBTA vol 1, 13.5.3: only QP 1 may act for a port, and no reply could be sent to another QP.
  if (packet.deth.src_qpn != wire::kGsiQpn || !gid_index_of(environment_, device, packet.dst_ip) ||
      packet.src_ip.is_v4() != packet.dst_ip.is_v4()) {
    return drop(Counter::kDroppedWrongSource);
  }
  if (packet.bth.opcode != wire::Opcode::kUdSendOnly) return drop(Counter::kDroppedUnsupported);
  if (packet.payload.size() != wire::kMadSize) return drop(Counter::kDroppedMalformed);
  return packet.payload.first<wire::kMadSize>();
}

Route GeneralServices::route_back(DeviceIndex device, const wire::Packet& packet) const {
  return {.device = device,
          .gid_index = gid_index_of(environment_, device, packet.dst_ip).value_or(0),
          .remote = packet.src_ip};
}

// Answers a MAD that requests a response with a status that says what is not supported (IBTA vol 1,
// 13.4.7).
void GeneralServices::refuse(DeviceIndex device, const wire::Packet& packet) {
  const auto mad = packet.payload.first<wire::kMadSize>();
  wire::MadHeader header = wire::parse_mad_header(mad.first<wire::MadHeader::kSize>());
  environment_.count(device, Counter::kDroppedUnsupported);
  if (!is_get_or_set(header.method)) return;
  const bool bad_version =
      header.base_version != wire::kMadBaseVersion ||
      (header.mgmt_class == wire::kMadClassCm && header.class_version != wire::kCmClassVersion);
  header.base_version = wire::kMadBaseVersion;
  header.method = static_cast<uint8_t>(wire::MadMethod::kGetResp);  // to both methods
  header.status = static_cast<uint16_t>(
      bad_version ? wire::MadStatus::kBadVersion : wire::MadStatus::kMethodAttributeNotSupported);
  std::array<uint8_t, wire::kMadSize> answer;
  std::copy(mad.begin(), mad.end(), answer.begin());
  wire::emit(header, std::span(answer).first<wire::MadHeader::kSize>());
  send(route_back(device, packet), answer);
}

}  // namespace rocemu::engine::cm
