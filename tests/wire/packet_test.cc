#include "wire/packet.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/wire/bytes.h"

namespace rocemu::wire {
namespace {

// Returns a packet with this opcode in which no field has its default value.
Packet filled_packet(Opcode opcode, std::span<const uint8_t> payload) {
  Packet packet;
  packet.src_mac = {{2, 0, 0, 0, 0, 1}};
  packet.dst_mac = {{2, 0, 0, 0, 0, 2}};
  packet.src_ip = IpAddress::from_v4(10, 7, 0, 1);
  packet.dst_ip = IpAddress::from_v4(10, 7, 0, 2);
  packet.traffic_class = 0x6a;
  packet.hop_limit = 7;
  packet.ip_id = 0x1234;
  packet.dont_fragment = false;
  packet.udp_src_port = 0xd00d;
  packet.udp_checksum = 0xbeef;
  packet.bth = {.opcode = opcode,
                .solicited = true,
                .mig_req = true,
                .pkey = 0x7fff,
                .fecn = true,
                .becn = true,
                .dest_qpn = 0xabcdef,
                .ack_req = true,
                .psn = Psn(0x123456)};
  packet.xrceth = {.srqn = 0x314159};
  packet.deth = {.qkey = 0x80010000, .src_qpn = 0x271828};
  packet.feth = {.selectivity = 1, .placement = 2};
  packet.reth = {.va = 0x1122334455667788, .rkey = 0x99aabbcc, .dma_length = 0x01020304};
  packet.atomic = {.va = 0x8877665544332211, .rkey = 0xccbbaa99, .swap_add = 5, .compare = 6};
  packet.aeth = {.syndrome = 0x62, .msn = 0x654321};
  packet.atomic_ack = {.original = 0xfeedfacecafebeef};
  packet.imm = {.value = 0x0badf00d};
  packet.ieth = {.rkey = 0x600dcafe};
  packet.payload = payload;
  return packet;
}

Packet to_ipv6(Packet packet) {
  packet.src_ip = *parse_ip_address("2001:db8::1");
  packet.dst_ip = *parse_ip_address("fe80::2");
  packet.flow_label = 0xabcde;
  return packet;
}

void expect_same_packet(const Packet& actual, const Packet& expected) {
  EXPECT_EQ(actual.src_mac, expected.src_mac);
  EXPECT_EQ(actual.dst_mac, expected.dst_mac);
  EXPECT_EQ(actual.src_ip, expected.src_ip);
  EXPECT_EQ(actual.dst_ip, expected.dst_ip);
  EXPECT_EQ(actual.traffic_class, expected.traffic_class);
  EXPECT_EQ(actual.hop_limit, expected.hop_limit);
  if (expected.src_ip.is_v4()) {
    EXPECT_EQ(actual.ip_id, expected.ip_id);
    EXPECT_EQ(actual.dont_fragment, expected.dont_fragment);
  } else {
    EXPECT_EQ(actual.flow_label, expected.flow_label);
  }
  EXPECT_EQ(actual.udp_src_port, expected.udp_src_port);
  EXPECT_EQ(actual.udp_checksum, expected.udp_checksum);
  Bth bth = expected.bth;
  bth.pad_count = static_cast<uint8_t>((4 - expected.payload.size() % 4) % 4);
  EXPECT_EQ(actual.bth, bth);

  const OpcodeInfo& info = *find_opcode(bth.opcode);
  const auto has = [&](ExtendedHeader header) { return info.has(header); };
  EXPECT_EQ(actual.xrceth, has(ExtendedHeader::kXrceth) ? expected.xrceth : Xrceth());
  EXPECT_EQ(actual.deth, has(ExtendedHeader::kDeth) ? expected.deth : Deth());
  EXPECT_EQ(actual.feth, has(ExtendedHeader::kFeth) ? expected.feth : Feth());
  EXPECT_EQ(actual.reth, has(ExtendedHeader::kReth) ? expected.reth : Reth());
  EXPECT_EQ(actual.atomic, has(ExtendedHeader::kAtomicEth) ? expected.atomic : AtomicEth());
  EXPECT_EQ(actual.aeth, has(ExtendedHeader::kAeth) ? expected.aeth : Aeth());
  EXPECT_EQ(actual.atomic_ack,
            has(ExtendedHeader::kAtomicAckEth) ? expected.atomic_ack : AtomicAckEth());
  EXPECT_EQ(actual.imm, has(ExtendedHeader::kImmDt) ? expected.imm : ImmDt());
  EXPECT_EQ(actual.ieth, has(ExtendedHeader::kIeth) ? expected.ieth : Ieth());
  EXPECT_EQ(ByteVector(actual.payload.begin(), actual.payload.end()),
            ByteVector(expected.payload.begin(), expected.payload.end()));
}

// Calls `check` for every opcode with every possible size of payload, over IPv4 and IPv6.
template <class Check>
void for_each_kind_of_packet(Check check) {
  const ByteVector text = from_hex("00112233445566778899");
  for (int value = 0; value < 256; ++value) {
    const OpcodeInfo* info = find_opcode(static_cast<uint8_t>(value));
    if (info == nullptr) continue;
    const size_t largest = info->has_payload ? text.size() : 0;
    for (size_t size = 0; size <= largest; ++size) {
      const Packet packet = filled_packet(info->opcode, std::span(text).first(size));
      SCOPED_TRACE(to_string(packet));
      check(packet);
      check(to_ipv6(packet));
    }
  }
}

TEST(Packet, EveryKindIsReadBackAsItWasWritten) {
  for_each_kind_of_packet([](const Packet& packet) {
    const ByteVector frame = emitted(packet);
    const auto parsed = parse_frame(frame);
    ASSERT_TRUE(parsed) << name(parsed.error());
    expect_same_packet(*parsed, packet);
    EXPECT_TRUE(check_icrc(frame));
    EXPECT_EQ(emitted(*parsed), frame);
  });
}

TEST(Packet, EveryKindCutShortIsRefusedAndSaysWhere) {
  std::set<ParseError> reasons;
  for_each_kind_of_packet([&](const Packet& packet) {
    const ByteVector frame = emitted(packet);
    for (size_t size = 0; size < frame.size(); ++size) {
      ByteVector bytes(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(size));
      const auto cut = parse_frame(bytes);
      ASSERT_FALSE(cut) << size;
      ASSERT_TRUE(is_truncation(cut.error())) << size << ' ' << name(cut.error());
      reasons.insert(cut.error());

      patch_lengths(bytes);
      const auto patched = parse_frame(bytes);
      if (!patched) reasons.insert(patched.error());
      ASSERT_TRUE(!patched || !check_icrc(bytes)) << size;
    }
  });
  for (size_t i = 0; i < kParseErrorCount; ++i) {
    const auto error = static_cast<ParseError>(i);
    EXPECT_EQ(reasons.contains(error), is_truncation(error) || error == ParseError::kBadPad)
        << name(error);
  }
}

TEST(Packet, AnIpv6FrameHasTheseBytes) {
  const ByteVector payload = from_hex("68656c6c6f");
  Packet packet;
  packet.src_mac = *parse_mac_address("24:8a:07:a8:fa:23");
  packet.dst_mac = *parse_mac_address("24:8a:07:a8:fa:22");
  packet.src_ip = *parse_ip_address("2001:db8::1");
  packet.dst_ip = *parse_ip_address("2001:db8::2");
  packet.traffic_class = 0x02;
  packet.flow_label = 0x12345;
  packet.hop_limit = 63;
  packet.udp_src_port = 49153;
  packet.bth = {.opcode = Opcode::kRcSendOnly,
                .mig_req = true,
                .dest_qpn = 0x11,
                .ack_req = true,
                .psn = Psn(0x100)};
  packet.payload = payload;
  EXPECT_EQ(emitted(packet),
            from_hex("248a07a8fa22 248a07a8fa23 86dd"
                     "60212345 0020113f"
                     "20010db8000000000000000000000001 20010db8000000000000000000000002"
                     "c001 12b7 0020 0000"
                     "04 70 ffff 00 000011 80 000100"
                     "68656c6c6f 000000 07b8cbd9"));
}

TEST(Packet, HeadersAreWrittenAroundAPayloadThatIsAlreadyThere) {
  const Packet packet = filled_packet(Opcode::kRcWriteOnly, {});
  ByteVector frame(frame_size(packet, 5) + 3, kDirt);
  const size_t size = emit_headers(packet, 5, frame);
  ASSERT_EQ(size, frame_size(packet, 5));
  const size_t offset = payload_offset(packet);
  EXPECT_EQ(offset, 14u + 20 + 8 + 12 + 16);
  EXPECT_EQ(size, offset + 5 + 3 + 4);
  const auto bytes = [&](size_t at, size_t count) {
    const auto part = std::span(frame).subspan(at, count);
    return ByteVector(part.begin(), part.end());
  };
  EXPECT_EQ(bytes(offset, 5), from_hex("a5a5a5a5a5"));    // the payload
  EXPECT_EQ(bytes(offset + 5, 3), from_hex("000000"));    // its pad
  EXPECT_EQ(bytes(offset + 8, 4), from_hex("a5a5a5a5"));  // the ICRC
  EXPECT_EQ(bytes(size, 3), from_hex("a5a5a5"));          // beyond the frame

  EXPECT_FALSE(check_icrc(std::span(frame).first(size)));
  write_icrc(std::span(frame).first(size));
  EXPECT_TRUE(check_icrc(std::span(frame).first(size)));
  const auto parsed = parse_frame(std::span(frame).first(size));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->payload.data(), frame.data() + offset);
  EXPECT_EQ(parsed->payload.size(), 5u);
  EXPECT_EQ(parsed->bth.pad_count, 3);
}

TEST(Packet, ReservedBytesOfACnpAreZeroAndIgnored) {
  ByteVector frame = emitted(filled_packet(Opcode::kCnp, {}));
  ASSERT_EQ(frame.size(), 14u + 20 + 8 + 12 + 16 + 4);
  for (size_t at = 54; at < 70; ++at) {
    EXPECT_EQ(frame[at], 0);
    frame[at] = kDirt;
  }
  EXPECT_TRUE(parse_frame(frame));
}

TEST(Packet, EthernetPaddingIsIgnored) {
  const ByteVector payload = from_hex("01020304");
  for (const Packet& packet : {filled_packet(Opcode::kRcSendOnly, payload),
                               to_ipv6(filled_packet(Opcode::kRcSendOnly, payload))}) {
    ByteVector frame = emitted(packet);
    frame.insert(frame.end(), 9, kDirt);
    const auto parsed = parse_frame(frame);
    ASSERT_TRUE(parsed);
    expect_same_packet(*parsed, packet);
  }
}

TEST(Packet, AnIpv4HeaderMayHaveOptions) {
  const ByteVector payload = from_hex("01020304");
  const Packet packet = filled_packet(Opcode::kRcSendOnly, payload);
  ByteVector frame = emitted(packet);
  const ByteVector options(40, 0x01);
  frame.insert(frame.begin() + 34, options.begin(), options.end());
  frame[14] = 0x4f;
  patch_lengths(frame);
  const auto parsed = parse_frame(frame);
  ASSERT_TRUE(parsed) << name(parsed.error());
  expect_same_packet(*parsed, packet);
}

TEST(Packet, EveryOtherRefusalHasItsReason) {
  const ByteVector payload = from_hex("01020304");
  const ByteVector send = emitted(filled_packet(Opcode::kRcSendOnly, payload));
  const ByteVector send6 = emitted(to_ipv6(filled_packet(Opcode::kRcSendOnly, payload)));
  const ByteVector ack = emitted(filled_packet(Opcode::kRcAck, {}));
  const auto refusal = [](ByteVector frame, auto damage) {
    damage(frame);
    const auto packet = parse_frame(frame);
    EXPECT_FALSE(packet);
    return packet ? ParseError::kBadIcrc : packet.error();
  };
  using enum ParseError;
  EXPECT_EQ(refusal(send, [](auto& f) { f[13] = 0x06; }), kNotIp);                // ARP
  EXPECT_EQ(refusal(send, [](auto& f) { f[12] = 0x81, f[13] = 0x00; }), kNotIp);  // VLAN
  EXPECT_EQ(refusal(send, [](auto& f) { f[14] = 0x65; }), kBadIpHeader);
  EXPECT_EQ(refusal(send6, [](auto& f) { f[14] = 0x45; }), kBadIpHeader);
  EXPECT_EQ(refusal(send, [](auto& f) { f[15] ^= 1; }), kBadIpChecksum);
  // RFC 1071: a change of any single bit changes the sum.
  for (size_t bit = 0; bit < 16; ++bit) {
    const auto turn_over = [&](auto& f) { f[24 + bit / 8] ^= static_cast<uint8_t>(1 << bit % 8); };
    EXPECT_EQ(refusal(send, turn_over), kBadIpChecksum) << bit;
  }
  EXPECT_EQ(refusal(send, [](auto& f) { f[20] |= 0x20, patch_lengths(f); }), kFragmented);
  EXPECT_EQ(refusal(send6, [](auto& f) { f[20] = 44; }), kFragmented);
  EXPECT_EQ(refusal(send, [](auto& f) { f[23] = 6, patch_lengths(f); }), kNotUdp);
  EXPECT_EQ(refusal(send6, [](auto& f) { f[20] = 6; }), kNotUdp);
  EXPECT_EQ(refusal(send, [](auto& f) { f[37] ^= 1; }), kNotRoce);
  EXPECT_EQ(refusal(send, [](auto& f) { f[39] += 1; }), kBadLength);
  EXPECT_EQ(refusal(send, [](auto& f) { f[39] -= 1; }), kBadLength);
  EXPECT_EQ(refusal(send6, [](auto& f) { f[59] += 1; }), kBadLength);
  EXPECT_EQ(refusal(send, [](auto& f) { f[43] |= 1; }), kBadTransportVersion);
  EXPECT_EQ(refusal(send, [](auto& f) { f[42] = 0x15; }), kUnknownOpcode);
  EXPECT_EQ(refusal(send, [](auto& f) { f.pop_back(), patch_lengths(f); }), kBadPad);
  EXPECT_EQ(refusal(ack, [](auto& f) { f[43] |= 0x10; }), kBadPad);
  EXPECT_EQ(refusal(ack, [](auto& f) { f.resize(f.size() + 4), patch_lengths(f); }),
            kUnexpectedPayload);
}

TEST(Packet, ADatagramOfAnotherIpVersionIsRefused) {
  EXPECT_EQ(parse_datagram({}).error(), ParseError::kNotIp);
  EXPECT_EQ(parse_datagram(from_hex("50")).error(), ParseError::kNotIp);
  EXPECT_EQ(parse_datagram(from_hex("45")).error(), ParseError::kTruncatedIpv4);
  EXPECT_EQ(parse_datagram(from_hex("60")).error(), ParseError::kTruncatedIpv6);
}

TEST(Packet, AnUnknownOpcodeIsEmittedWithoutExtendedHeadersAndRefusedByParsers) {
  const ByteVector payload = from_hex("01020304");
  const ByteVector frame = emitted(filled_packet(static_cast<Opcode>(0x15), payload));
  EXPECT_EQ(frame.size(), 14u + 20 + 8 + 12 + 4 + 4);
  EXPECT_TRUE(check_icrc(frame));
  EXPECT_EQ(parse_frame(frame).error(), ParseError::kUnknownOpcode);
}

TEST(Packet, AnUnequalPairOfAddressesIsEmittedAndRefusedByParsers) {
  Packet packet = filled_packet(Opcode::kRcAck, {});
  packet.dst_ip = *parse_ip_address("fe80::2");
  EXPECT_EQ(parse_frame(emitted(packet)).error(), ParseError::kBadIpHeader);
}

TEST(PacketDeathTest, AFrameThatIsTooSmallAborts) {
  const Packet packet = filled_packet(Opcode::kRcAck, {});
  ByteVector frame(frame_size(packet, 0) - 1);
  EXPECT_DEATH(emit_frame(packet, frame), "");
}

}  // namespace
}  // namespace rocemu::wire
