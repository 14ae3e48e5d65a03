#include "emulator/engine/link/frame_on_wire.h"

#include <algorithm>
#include <span>

#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/udp.h"

namespace rocemu::engine {
namespace {

constexpr size_t kFcs = 4, kPreambleAndGap = 20, kLeastFrame = 64;
constexpr uint8_t kEcnMask = 3, kMark = 3;

/// Computes FNV-1a. The network model mixes the result once more at each switch.
class FlowHash {
 public:
  void add(std::span<const uint8_t> bytes) {
    for (const uint8_t byte : bytes) hash_ = (hash_ ^ byte) * 16777619u;
  }
  void add(uint16_t number) {
    const uint8_t bytes[] = {static_cast<uint8_t>(number >> 8), static_cast<uint8_t>(number)};
    add(std::span(bytes));
  }
  uint32_t value() const { return hash_; }

 private:
  uint32_t hash_ = 2166136261u;
};

template <class Header>
void rewrite(std::span<uint8_t> ip_packet, Header header, bool is_marked,
             std::optional<uint8_t> ttl) {
  if (is_marked) header.traffic_class |= kMark;
  if (ttl) header.hop_limit = *ttl;
  wire::emit(header, ip_packet.first<Header::kSize>());
}

}  // namespace

uint32_t bytes_on_wire(const Frame& frame) {
  return static_cast<uint32_t>(std::max(frame.size() + kFcs, kLeastFrame) + kPreambleAndGap);
}

Injection injection_of(const Frame& frame) {
  Injection injection{.bytes_on_wire = bytes_on_wire(frame)};
  const wire::Packet* packet = frame.packet();
  std::optional<wire::Packet> parsed;
  if (packet == nullptr) {
    if (const auto result = wire::parse_frame(frame.bytes())) parsed = *result;
    if (!parsed)
      return injection;  // a rule damaged the headers: deliver it to the sender's destination
    packet = &*parsed;
  }
  FlowHash hash;
  hash.add(packet->src_ip.bytes);
  hash.add(packet->dst_ip.bytes);
  hash.add(packet->udp_src_port);
  hash.add(wire::kRoceUdpPort);
  const uint8_t protocol = wire::kIpProtocolUdp;
  hash.add({&protocol, 1});
  injection.flow_hash = hash.value();
  injection.dscp = static_cast<uint8_t>(packet->traffic_class >> 2);
  injection.ecn = packet->traffic_class & kEcnMask;
  injection.ttl = packet->hop_limit;
  return injection;
}

Frame marked_copy(FramePool& pool, const Frame& frame) {
  return copy_on_wire(pool, frame, true, std::nullopt);
}

Frame copy_on_wire(FramePool& pool, const Frame& frame, bool is_marked,
                   std::optional<uint8_t> ttl) {
  Frame copy = pool.allocate();
  const std::span<const uint8_t> bytes = frame.bytes();
  std::ranges::copy(bytes, copy.storage().begin());
  copy.set_size(bytes.size());
  if (bytes.size() <= wire::EthernetHeader::kSize) return copy;
  const std::span<uint8_t> ip_packet = copy.bytes().subspan(wire::EthernetHeader::kSize);
  const uint8_t version = wire::ip_version(ip_packet);
  if (version == 4) {
    const auto header = wire::parse_ipv4(ip_packet);
    if (header && header->header_size == wire::Ipv4Header::kSize)
      rewrite(ip_packet, *header, is_marked, ttl);
  } else if (version == 6) {
    if (const auto header = wire::parse_ipv6(ip_packet))
      rewrite(ip_packet, *header, is_marked, ttl);
  }
  return copy;
}

}  // namespace rocemu::engine
