#include "emulator/engine/transport/address_vector.h"

#include <algorithm>
#include <cerrno>

namespace rocemu::engine {
namespace {

wire::IpAddress gid_of(const abi::AhAttr& attr) {
  wire::IpAddress address;
  std::copy(std::begin(attr.dgid), std::end(attr.dgid), address.bytes.begin());
  return address;
}

// Returns the UDP source port of a flow, which is in IANA's dynamic range and serves ECMP (IBTA vol
// 1, annex A17.4.1). The port is derived from the flow label, which rdma_cm sets, or without a flow
// label from the numbers of both QPs. It is the same for both directions. The hash is Linux's, so
// that captures can be compared.
uint16_t udp_source_port(uint32_t flow_label, QpNumber own, QpNumber peer) {
  if (flow_label == 0) {
    uint64_t v = uint64_t{own.value} * peer.value;
    v ^= v >> 20;
    v ^= v >> 40;
    flow_label = static_cast<uint32_t>(v);
  }
  flow_label &= 0xfffff;
  return static_cast<uint16_t>(0xc000 | ((flow_label & 0x3fff) ^ (flow_label >> 14)));
}

/// Returns the UDP source port of a flow on this device, for which `port` is the port that Linux
/// chooses.
uint16_t available_port(const DeviceConfig& config, uint16_t port) {
  return config.source_ports.empty() ? port
                                     : config.source_ports[port % config.source_ports.size()];
}

/// Returns the group's MAC address, which ends with the last 23 bits (RFC 1112, 6.4) or 32 bits
/// (RFC 2464, 7) of the group.
wire::MacAddress multicast_mac(const wire::IpAddress& group) {
  const auto& b = group.bytes;
  if (group.is_v4()) return {{0x01, 0x00, 0x5e, static_cast<uint8_t>(b[13] & 0x7f), b[14], b[15]}};
  return {{0x33, 0x33, b[12], b[13], b[14], b[15]}};
}

/// Returns whether a host with the address `own` reaches the destination without a router. A fabric
/// has no prefix lengths, so the function assumes /24 for IPv4 (/8 for loopback) and /64 for IPv6.
bool is_on_link(const wire::IpAddress& own, const wire::IpAddress& destination) {
  const auto have_in_common = [&](size_t bytes) {
    return std::equal(own.bytes.begin(), own.bytes.begin() + bytes, destination.bytes.begin());
  };
  if (!own.is_v4()) return have_in_common(8);
  const bool loopback = own.bytes[12] == 127;  // RFC 1122, 3.2.1.3: all of 127.0.0.0/8
  return have_in_common(loopback ? 13 : 15);
}

/// Returns the source address of frames to the destination: the address with that index. If the
/// destination is a group of the other family, returns the device's first address that is permitted
/// as the source of such a packet (RFC 6890, 2.2.3).
const wire::IpAddress& source_for(const DeviceConfig& config, uint8_t sgid_index,
                                  const wire::IpAddress& destination) {
  const wire::IpAddress& wanted = config.addresses[sgid_index];
  if (wanted.is_v4() == destination.is_v4()) return wanted;
  const auto fitting = std::ranges::find(config.addresses, destination.is_v4(),
                                         [](const wire::IpAddress& one) { return one.is_v4(); });
  return fitting != config.addresses.end() ? *fitting : wanted;
}

}  // namespace

uint16_t datagram_source_port(const DeviceConfig& config, QpNumber own) {
  const auto port = static_cast<uint16_t>(0xc000 + ((own.value * 0x61c88647u) >> 18));
  return available_port(config, port);
}

int check_address_vector(const Devices& devices, DeviceIndex device, const abi::AhAttr& attr) {
  const DeviceConfig& config = devices[device].config;
  if (attr.port_num != 1) return EINVAL;
  if (attr.is_global == 0) return config.policy.require_grh ? EINVAL : 0;
  if (attr.sgid_index >= config.addresses.size()) return EINVAL;
  const wire::IpAddress& source = config.addresses[attr.sgid_index];
  const wire::IpAddress destination = gid_of(attr);
  // The MAC address of a group is derived from its GID. Linux resolves nothing, and does not
  // compare the families.
  if (destination.is_multicast()) return 0;
  // A host with an IPv4 address cannot reach an IPv6 destination, and vice versa.
  if (source.is_v4() != destination.is_v4()) return EINVAL;
  const bool answers = devices.with_address(destination) || config.outside ||
                       !is_on_link(source, destination) || !config.policy.resolve_neighbors;
  return answers ? 0 : ETIMEDOUT;
}

Path resolve_path(const Objects& objects, DeviceIndex device, const abi::AhAttr& attr, QpNumber own,
                  QpNumber peer) {
  const DeviceConfig& config = objects.devices[device].config;
  Path path;
  path.peer = peer;
  path.src_mac = config.mac;
  path.udp_src_port =
      available_port(config, udp_source_port(attr.is_global != 0 ? attr.flow_label : 0, own, peer));
  if (attr.is_global != 0) {
    path.dst_ip = gid_of(attr);
    path.src_ip = source_for(config, attr.sgid_index, path.dst_ip);
    path.inside = objects.devices.with_address(path.dst_ip);
    if (path.dst_ip.is_multicast()) path.dst_mac = multicast_mac(path.dst_ip);
    path.traffic_class = attr.traffic_class;
    path.flow_label = attr.flow_label;
    // Hop limits of 0 and 1 come from programs that assume InfiniBand's "same subnet". Like the
    // Linux core, rocemu replaces them by the route's hop limit.
    if (attr.hop_limit > 1) path.hop_limit = attr.hop_limit;
  } else {
    const QueuePair* there = objects.qps.find(peer);
    path.inside = there != nullptr ? there->device : device;
    path.src_ip = config.addresses[0];
    path.dst_ip = objects.devices[*path.inside].config.addresses[0];
  }
  if (path.inside) path.dst_mac = objects.devices[*path.inside].config.mac;
  return path;
}

}  // namespace rocemu::engine
