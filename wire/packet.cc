#include "wire/packet.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "wire/require.h"

namespace rocemu::wire {
namespace {

using Bytes = std::span<const uint8_t>;

// ---- parsing: each step fills in its part of the packet and returns the bytes of the next one --

Result<Bytes> read_ip(Bytes ip_packet, Packet& packet) {
  if (ip_version(ip_packet) == 4) {
    const auto ip = parse_ipv4(ip_packet);
    if (!ip) return ip.error();
    if (ip->protocol != kIpProtocolUdp) return ParseError::kNotUdp;
    packet.src_ip = ip->src;
    packet.dst_ip = ip->dst;
    packet.traffic_class = ip->traffic_class;
    packet.hop_limit = ip->hop_limit;
    packet.ip_id = ip->identification;
    packet.dont_fragment = ip->dont_fragment;
    return ip_packet.first(ip->total_length).subspan(ip->header_size);
  }
  if (ip_version(ip_packet) == 6) {
    const auto ip = parse_ipv6(ip_packet);
    if (!ip) return ip.error();
    if (ip->next_header != kIpProtocolUdp) return ParseError::kNotUdp;
    packet.src_ip = ip->src;
    packet.dst_ip = ip->dst;
    packet.traffic_class = ip->traffic_class;
    packet.hop_limit = ip->hop_limit;
    packet.flow_label = ip->flow_label;
    return ip_packet.subspan(Ipv6Header::kSize, ip->payload_length);
  }
  return ParseError::kNotIp;
}

Result<Bytes> read_udp(Bytes ip_payload, Packet& packet) {
  if (ip_payload.size() < UdpHeader::kSize) return ParseError::kTruncatedUdp;
  const UdpHeader udp = parse_udp(ip_payload.first<UdpHeader::kSize>());
  if (udp.dst_port != kRoceUdpPort) return ParseError::kNotRoce;
  if (udp.length != ip_payload.size()) return ParseError::kBadLength;
  packet.udp_src_port = udp.src_port;
  packet.udp_checksum = udp.checksum;
  return ip_payload.subspan(UdpHeader::kSize);
}

constexpr ParseError truncation_of(ExtendedHeader header) {
#define ROCEMU_TRUNCATION(header, Type, member, name) \
  case ExtendedHeader::header:                        \
    return ParseError::kTruncated##Type;
  switch (header) { ROCEMU_EXTENDED_HEADERS(ROCEMU_TRUNCATION) }
#undef ROCEMU_TRUNCATION
  return ParseError::kTruncatedIcrc;
}

// Returns the error for the first of the headers that does not fit into `size` bytes.
ParseError find_truncation(const HeaderList& headers, size_t size) {
  for (const ExtendedHeader header : headers) {
    if (size < header_size(header)) return truncation_of(header);
    size -= header_size(header);
  }
  return ParseError::kTruncatedIcrc;
}

// Reads a header into the packet. `bytes` begins with it and is long enough.
void read_extended_header(ExtendedHeader header, Bytes bytes, Packet& packet) {
#define ROCEMU_READ(header, Type, member, name)               \
  case ExtendedHeader::header:                                \
    packet.member = parse_##name(bytes.first<Type::kSize>()); \
    return;
  switch (header) { ROCEMU_EXTENDED_HEADERS(ROCEMU_READ) }
#undef ROCEMU_READ
}

std::optional<ParseError> read_transport(Bytes bytes, Packet& packet) {
  if (bytes.size() < Bth::kSize) return ParseError::kTruncatedBth;
  const auto bth = parse_bth(bytes.first<Bth::kSize>());
  if (!bth) return bth.error();
  packet.bth = *bth;
  bytes = bytes.subspan(Bth::kSize);

  const OpcodeInfo& info = *find_opcode(bth->opcode);
  if (bytes.size() < info.headers_size + kIcrcSize) {
    return find_truncation(info.headers, bytes.size());
  }
  bytes = bytes.first(bytes.size() - kIcrcSize);
  for (const ExtendedHeader header : info.headers) {
    read_extended_header(header, bytes, packet);
    bytes = bytes.subspan(header_size(header));
  }

  if (!info.has_payload && !bytes.empty()) return ParseError::kUnexpectedPayload;
  if (bytes.size() % 4 != 0 || bytes.size() < bth->pad_count) return ParseError::kBadPad;
  packet.payload = bytes.first(bytes.size() - bth->pad_count);
  return std::nullopt;
}

std::optional<ParseError> read_datagram(Bytes ip_packet, Packet& packet) {
  const auto ip_payload = read_ip(ip_packet, packet);
  if (!ip_payload) return ip_payload.error();
  const auto udp_payload = read_udp(*ip_payload, packet);
  if (!udp_payload) return udp_payload.error();
  return read_transport(*udp_payload, packet);
}

std::optional<ParseError> read_frame(Bytes frame, Packet& packet) {
  if (frame.size() < EthernetHeader::kSize) return ParseError::kTruncatedEthernet;
  const EthernetHeader ethernet = parse_ethernet(frame.first<EthernetHeader::kSize>());
  const Bytes ip_packet = frame.subspan(EthernetHeader::kSize);
  packet.src_mac = ethernet.src;
  packet.dst_mac = ethernet.dst;

  if (ethernet.ether_type == kEtherTypeIpv4) {
    if (ip_packet.empty()) return ParseError::kTruncatedIpv4;
    if (ip_version(ip_packet) != 4) return ParseError::kBadIpHeader;
  } else if (ethernet.ether_type == kEtherTypeIpv6) {
    if (ip_packet.empty()) return ParseError::kTruncatedIpv6;
    if (ip_version(ip_packet) != 6) return ParseError::kBadIpHeader;
  } else {
    return ParseError::kNotIp;
  }
  return read_datagram(ip_packet, packet);
}

// ---- emitting ----

// The sizes of a frame's parts
struct Shape {
  bool is_v4;
  size_t ip_header;
  size_t extended_headers;
  size_t payload;
  size_t pad;

  size_t transport_at() const { return EthernetHeader::kSize + ip_header + UdpHeader::kSize; }
  size_t payload_at() const { return transport_at() + Bth::kSize + extended_headers; }
  size_t frame() const { return payload_at() + payload + pad + kIcrcSize; }
};

Shape shape_of(bool is_v4, Opcode opcode, size_t payload_size) {
  const OpcodeInfo* info = find_opcode(opcode);
  return {.is_v4 = is_v4,
          .ip_header = is_v4 ? Ipv4Header::kSize : Ipv6Header::kSize,
          .extended_headers = info == nullptr ? size_t{0} : info->headers_size,
          .payload = payload_size,
          .pad = (4 - payload_size % 4) % 4};
}

Shape shape_of(const Packet& packet, size_t payload_size) {
  // Addresses of different families are a mistake of the caller. They become an IPv6 packet, which
  // every receiver refuses.
  const bool is_v4 = packet.src_ip.is_v4() && packet.dst_ip.is_v4();
  return shape_of(is_v4, packet.bth.opcode, payload_size);
}

// A cursor over the frame: writes one header after the other.
class Writer {
 public:
  explicit Writer(std::span<uint8_t> frame) : rest_(frame) {}

  template <class Header>
  void write(const Header& header) {
    emit(header, rest_.first<Header::kSize>());
    rest_ = rest_.subspan(Header::kSize);
  }

  void write_zeros(size_t count) {
    std::fill_n(rest_.begin(), count, uint8_t{0});
    rest_ = rest_.subspan(count);
  }

  void skip(size_t count) { rest_ = rest_.subspan(count); }

 private:
  std::span<uint8_t> rest_;
};

void write_ip(const Packet& packet, bool is_v4, size_t ip_payload_size, Writer& writer) {
  if (is_v4) {
    writer.write(
        Ipv4Header{.traffic_class = packet.traffic_class,
                   .total_length = static_cast<uint16_t>(Ipv4Header::kSize + ip_payload_size),
                   .identification = packet.ip_id,
                   .dont_fragment = packet.dont_fragment,
                   .hop_limit = packet.hop_limit,
                   .protocol = kIpProtocolUdp,
                   .src = packet.src_ip,
                   .dst = packet.dst_ip});
  } else {
    writer.write(Ipv6Header{.traffic_class = packet.traffic_class,
                            .flow_label = packet.flow_label,
                            .payload_length = static_cast<uint16_t>(ip_payload_size),
                            .next_header = kIpProtocolUdp,
                            .hop_limit = packet.hop_limit,
                            .src = packet.src_ip,
                            .dst = packet.dst_ip});
  }
}

void write_extended_header(ExtendedHeader header, const Packet& packet, Writer& writer) {
#define ROCEMU_WRITE(header, Type, member, name) \
  case ExtendedHeader::header:                   \
    return writer.write(packet.member);
  switch (header) { ROCEMU_EXTENDED_HEADERS(ROCEMU_WRITE) }
#undef ROCEMU_WRITE
}

// ---- the ICRC ----

// Returns the packet without link padding; empty if its length field is invalid.
Bytes without_link_padding(Bytes ip_packet) {
  const auto length_at = [&](size_t at) {
    return static_cast<size_t>(ip_packet[at] << 8 | ip_packet[at + 1]);
  };
  size_t size = 0;
  if (ip_version(ip_packet) == 4 && ip_packet.size() >= Ipv4Header::kSize) {
    size = length_at(2);
  } else if (ip_version(ip_packet) == 6 && ip_packet.size() >= Ipv6Header::kSize) {
    size = Ipv6Header::kSize + length_at(4);
  }
  return size <= ip_packet.size() ? ip_packet.first(size) : Bytes();
}

}  // namespace

Result<Packet> parse_frame(Bytes ethernet_frame) {
  Result<Packet> result{Packet()};
  if (const auto error = read_frame(ethernet_frame, *result)) result = *error;
  return result;
}

Result<Packet> parse_datagram(Bytes ip_packet) {
  Result<Packet> result{Packet()};
  if (const auto error = read_datagram(ip_packet, *result)) result = *error;
  return result;
}

size_t payload_offset(const Packet& packet) {
  return shape_of(packet, 0).payload_at();
}

size_t payload_offset(bool is_v4, Opcode opcode) {
  return shape_of(is_v4, opcode, 0).payload_at();
}

size_t frame_size(const Packet& packet, size_t payload_size) {
  return shape_of(packet, payload_size).frame();
}

size_t frame_size(bool is_v4, Opcode opcode, size_t payload_size) {
  return shape_of(is_v4, opcode, payload_size).frame();
}

size_t emit_headers(const Packet& packet, size_t payload_size, std::span<uint8_t> frame) {
  const Shape shape = shape_of(packet, payload_size);
  const size_t size = shape.frame();
  const size_t ip_payload_size = size - EthernetHeader::kSize - shape.ip_header;
  require(frame.size() >= size);
  require(shape.ip_header + ip_payload_size <= UINT16_MAX);

  Writer writer(frame);
  writer.write(EthernetHeader{.dst = packet.dst_mac,
                              .src = packet.src_mac,
                              .ether_type = shape.is_v4 ? kEtherTypeIpv4 : kEtherTypeIpv6});
  write_ip(packet, shape.is_v4, ip_payload_size, writer);
  writer.write(UdpHeader{.src_port = packet.udp_src_port,
                         .dst_port = kRoceUdpPort,
                         .length = static_cast<uint16_t>(ip_payload_size),
                         .checksum = packet.udp_checksum});
  Bth bth = packet.bth;
  bth.pad_count = static_cast<uint8_t>(shape.pad);
  writer.write(bth);
  if (const OpcodeInfo* info = find_opcode(bth.opcode)) {
    for (const ExtendedHeader header : info->headers) write_extended_header(header, packet, writer);
  }
  writer.skip(payload_size);
  writer.write_zeros(shape.pad);
  return size;
}

void write_icrc(std::span<uint8_t> frame) {
  require(frame.size() >= EthernetHeader::kSize + kIcrcSize);
  const auto ip_packet = frame.subspan(EthernetHeader::kSize);
  const uint32_t icrc = compute_icrc(ip_packet.first(ip_packet.size() - kIcrcSize));
  store_icrc(icrc, frame.last<kIcrcSize>());
}

bool check_datagram_icrc(Bytes ip_packet) {
  const Bytes bytes = without_link_padding(ip_packet);
  if (bytes.size() < kIcrcSize) return false;
  return compute_icrc(bytes.first(bytes.size() - kIcrcSize)) == load_icrc(bytes.last<kIcrcSize>());
}

bool check_icrc(Bytes frame) {
  return frame.size() >= EthernetHeader::kSize &&
         check_datagram_icrc(frame.subspan(EthernetHeader::kSize));
}

size_t emit_frame(const Packet& packet, std::span<uint8_t> frame) {
  const size_t size = emit_headers(packet, packet.payload.size(), frame);
  if (!packet.payload.empty()) {
    std::memcpy(frame.data() + payload_offset(packet), packet.payload.data(),
                packet.payload.size());
  }
  write_icrc(frame.first(size));
  return size;
}

}  // namespace rocemu::wire
