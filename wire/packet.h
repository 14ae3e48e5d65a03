// A whole RoCEv2 datagram: conversion of bytes to values and back
//
// A frame is built in three steps, because its payload is read from the application's memory
// straight into the frame:
//   emit_headers(packet, payload_size, frame);      // everything but the payload and the ICRC
//   read_memory(frame + payload_offset(packet));    // by the caller
//   write_icrc(frame);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/bth.h"
#include "wire/eth_headers.h"
#include "wire/ethernet.h"
#include "wire/icrc.h"
#include "wire/ip.h"
#include "wire/result.h"
#include "wire/udp.h"

namespace rocemu::wire {

// A parsed RoCEv2 datagram, or the description of one to emit: `reth`, `aeth` and so on are members
// of ExtendedHeaders.
struct Packet : ExtendedHeaders {
  MacAddress src_mac{};
  MacAddress dst_mac{};

  IpAddress src_ip = IpAddress::from_v4(0, 0, 0, 0);  // both IPv4 or both IPv6
  IpAddress dst_ip = IpAddress::from_v4(0, 0, 0, 0);
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 64;
  uint16_t ip_id = 0;         // IPv4 only
  bool dont_fragment = true;  // IPv4 only
  uint32_t flow_label = 0;    // IPv6 only

  uint16_t udp_src_port = 0xc000;
  uint16_t udp_checksum = 0;  // emitted and reported unchanged; 0 = none, as RoCEv2 senders use

  Bth bth{};  // pad_count is computed when emitting

  std::span<const uint8_t> payload{};  // without the pad; after parsing, a view into the frame
};

// parse_frame starts at the Ethernet header and ignores bytes after the IP packet (the padding of
// short Ethernet frames); parse_datagram starts at the IP header and leaves the MAC addresses zero.
// Neither checks the ICRC.
Result<Packet> parse_frame(std::span<const uint8_t> ethernet_frame);
Result<Packet> parse_datagram(std::span<const uint8_t> ip_packet);

// Returns the offset of the payload in the frame that emit_headers writes, from the start of the
// Ethernet header.
size_t payload_offset(const Packet& packet);
size_t payload_offset(bool is_v4, Opcode opcode);
size_t frame_size(const Packet& packet, size_t payload_size);
size_t frame_size(bool is_v4, Opcode opcode, size_t payload_size);

// Writes all lengths and checksums, the headers before the payload and the zero pad after it, but
// not the payload and the ICRC. Returns frame_size(), which must fit into `frame`. An opcode
// without a row in the table is emitted unchanged, without extended headers (a scenario can request
// this).
size_t emit_headers(const Packet& packet, size_t payload_size, std::span<uint8_t> frame);

// Writes the ICRC, computed from the other bytes. `frame` extends from its Ethernet header to the
// end of the ICRC.
void write_icrc(std::span<uint8_t> frame);

// Returns whether the ICRC is correct; false for a frame that is too short to have one. Ethernet
// padding after the IP packet is ignored.
bool check_icrc(std::span<const uint8_t> frame);
bool check_datagram_icrc(std::span<const uint8_t> ip_packet);

// Carries out all three steps of building a frame, with packet.payload as the payload. Returns
// frame_size().
size_t emit_frame(const Packet& packet, std::span<uint8_t> frame);

}  // namespace rocemu::wire
