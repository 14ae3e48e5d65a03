// Tests each header by itself: fixed bytes in both directions, and in a buffer that is not zeroed
// before.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/wire/bytes.h"
#include "wire/aeth.h"

namespace rocemu::wire {
namespace {

// Returns the bytes that emit() writes, and checks that it writes no other bytes.
template <class Header>
ByteVector emitted_header(const Header& header) {
  constexpr size_t kMargin = 8;
  ByteVector buffer(kMargin + Header::kSize + kMargin, kDirt);
  emit(header, std::span(buffer).subspan(kMargin).template first<Header::kSize>());
  const auto is_dirt = [](uint8_t byte) { return byte == kDirt; };
  EXPECT_TRUE(std::all_of(buffer.begin(), buffer.begin() + kMargin, is_dirt));
  EXPECT_TRUE(std::all_of(buffer.end() - kMargin, buffer.end(), is_dirt));
  return ByteVector(buffer.begin() + kMargin, buffer.end() - kMargin);
}

template <size_t Size>
std::span<const uint8_t, Size> fixed(const ByteVector& bytes) {
  EXPECT_EQ(bytes.size(), Size);
  return std::span<const uint8_t>(bytes).first<Size>();
}

TEST(Ethernet, FixedBytesBothWays) {
  const EthernetHeader header{.dst = {{0x52, 0x54, 0x00, 0x12, 0x34, 0x56}},
                              .src = {{0x6a, 0x7f, 0x45, 0xec, 0x80, 0x8e}},
                              .ether_type = kEtherTypeIpv4};
  const ByteVector bytes = from_hex("525400123456 6a7f45ec808e 0800");
  EXPECT_EQ(emitted_header(header), bytes);
  EXPECT_EQ(parse_ethernet(fixed<14>(bytes)), header);
}

TEST(Ethernet, MacAddressesHaveAText) {
  const MacAddress address{{0x6a, 0x7f, 0x45, 0xec, 0x80, 0x0e}};
  EXPECT_EQ(to_string(address), "6a:7f:45:ec:80:0e");
  EXPECT_EQ(parse_mac_address("6a:7f:45:EC:80:0e"), address);
  for (const std::string_view text :
       {"", "6a:7f:45:ec:80", "6a:7f:45:ec:80:0e:00", "6a-7f-45-ec-80-0e", "6a:7f:45:ec:80:0g",
        "6a:7f:45:ec:80: e", "6a:7f:45:ec:80:-e", "6a:7f:45:ec:8:00e"}) {
    EXPECT_FALSE(parse_mac_address(text)) << text;
  }
}

// The header of a ConnectX frame (scapy, test/contrib/roce.uts), whose checksum is 0xb4d5.
const char* const kIpv4 = "45010040 04784000 4011b4d5 c0a80007 c0a80007";

TEST(Ipv4, FixedBytesBothWays) {
  const Ipv4Header header{.traffic_class = 0x01,
                          .total_length = 64,
                          .identification = 1144,
                          .dont_fragment = true,
                          .hop_limit = 64,
                          .protocol = kIpProtocolUdp,
                          .src = IpAddress::from_v4(192, 168, 0, 7),
                          .dst = IpAddress::from_v4(192, 168, 0, 7)};
  ByteVector bytes = from_hex(kIpv4);
  EXPECT_EQ(emitted_header(header), bytes);
  bytes.resize(64);
  EXPECT_EQ(*parse_ipv4(bytes), header);
}

TEST(Ipv4, OptionsAreSkipped) {
  ByteVector frame(14);
  const ByteVector ip =
      from_hex("46000020 00000000 40110000 0a070001 0a070002 01010101 00000000 00000000");
  frame.insert(frame.end(), ip.begin(), ip.end());
  patch_lengths(frame);
  const auto header = parse_ipv4(std::span(frame).subspan(14));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->header_size, 24);
  EXPECT_EQ(header->total_length, 32);

  for (size_t size = 20; size < 24; ++size) {
    const auto cut = std::span(frame).subspan(14).first(size);
    EXPECT_EQ(parse_ipv4(ByteVector(cut.begin(), cut.end())).error(), ParseError::kTruncatedIpv4);
  }
}

TEST(Ipv4, HeadersThatContradictThemselvesAreRefused) {
  const auto refusal = [](std::string_view hex) {
    ByteVector bytes = from_hex(hex);
    bytes.resize(64);
    const auto header = parse_ipv4(bytes);
    EXPECT_FALSE(header) << hex;
    return header.error();
  };
  using enum ParseError;
  EXPECT_EQ(refusal("55010040 04784000 4011b4d5 c0a80007 c0a80007"), kBadIpHeader);  // version 5
  EXPECT_EQ(refusal("44010040 04784000 4011b4d5 c0a80007 c0a80007"), kBadIpHeader);  // 16 bytes
  EXPECT_EQ(refusal("45010013 04784000 4011b4d5 c0a80007 c0a80007"), kBadIpHeader);  // total 19
  EXPECT_EQ(refusal("45010040 04784000 4011b4d6 c0a80007 c0a80007"), kBadIpChecksum);
  EXPECT_EQ(refusal("45010041 04784000 4011b4d4 c0a80007 c0a80007"), kTruncatedIpPayload);
  EXPECT_EQ(refusal("45010040 04782000 4011d4d5 c0a80007 c0a80007"), kFragmented);  // more follow
  EXPECT_EQ(refusal("45010040 04780001 4011f4d4 c0a80007 c0a80007"), kFragmented);  // offset
}

TEST(Ipv6, FixedBytesBothWays) {
  const Ipv6Header header{.traffic_class = 0xab,
                          .flow_label = 0xcdef1,
                          .payload_length = 3,
                          .next_header = kIpProtocolUdp,
                          .hop_limit = 63,
                          .src = *parse_ip_address("2001:db8::1"),
                          .dst = *parse_ip_address("fe80::2")};
  ByteVector bytes = from_hex(
      "6abcdef1 0003113f 20010db8 00000000 00000000 00000001 fe800000 00000000 00000000 00000002");
  EXPECT_EQ(emitted_header(header), bytes);
  bytes.resize(43);
  EXPECT_EQ(*parse_ipv6(bytes), header);
  bytes.resize(42);
  EXPECT_EQ(parse_ipv6(bytes).error(), ParseError::kTruncatedIpPayload);
}

TEST(Ipv6, MappedAddressesAndFragmentsAreRefused) {
  EXPECT_EQ(parse_ipv6(from_hex("60000000 00001140 00000000 00000000 0000ffff 0a070001"
                                "fe800000 00000000 00000000 00000002"))
                .error(),
            ParseError::kBadIpHeader);
  EXPECT_EQ(parse_ipv6(from_hex("60000000 00002c40 20010db8 00000000 00000000 00000001"
                                "fe800000 00000000 00000000 00000002"))
                .error(),
            ParseError::kFragmented);
}

TEST(Udp, FixedBytesBothWays) {
  const UdpHeader header{.src_port = 0xc350, .dst_port = 4791, .length = 288, .checksum = 0x1546};
  const ByteVector bytes = from_hex("c350 12b7 0120 1546");
  EXPECT_EQ(emitted_header(header), bytes);
  EXPECT_EQ(parse_udp(fixed<8>(bytes)), header);
}

TEST(Bth, FixedBytesBothWays) {
  const Bth bth{.opcode = Opcode::kRcSendOnly,
                .solicited = false,
                .mig_req = true,
                .pad_count = 3,
                .pkey = 0x8001,
                .fecn = false,
                .becn = true,
                .dest_qpn = 0x010203,
                .ack_req = true,
                .psn = Psn(0xfffefd)};
  const ByteVector bytes = from_hex("04 70 8001 40 010203 80 fffefd");
  EXPECT_EQ(emitted_header(bth), bytes);
  EXPECT_EQ(*parse_bth(fixed<12>(bytes)), bth);
}

TEST(Bth, EachFlagHasItsBit) {
  const auto bytes_with = [](auto set) {
    Bth bth{.opcode = Opcode::kRcSendOnly, .pkey = 0};
    set(bth);
    const ByteVector bytes = emitted_header(bth);
    const auto parsed = parse_bth(fixed<12>(bytes));
    EXPECT_TRUE(parsed && *parsed == bth);
    return bytes;
  };
  EXPECT_EQ(bytes_with([](Bth&) {}), from_hex("04 00 0000 00 000000 00 000000"));
  EXPECT_EQ(bytes_with([](Bth& b) { b.solicited = true; }),
            from_hex("04 80 0000 00 000000 00 000000"));
  EXPECT_EQ(bytes_with([](Bth& b) { b.mig_req = true; }),
            from_hex("04 40 0000 00 000000 00 000000"));
  EXPECT_EQ(bytes_with([](Bth& b) { b.pad_count = 2; }),
            from_hex("04 20 0000 00 000000 00 000000"));
  EXPECT_EQ(bytes_with([](Bth& b) { b.fecn = true; }), from_hex("04 00 0000 80 000000 00 000000"));
  EXPECT_EQ(bytes_with([](Bth& b) { b.becn = true; }), from_hex("04 00 0000 40 000000 00 000000"));
  EXPECT_EQ(bytes_with([](Bth& b) { b.ack_req = true; }),
            from_hex("04 00 0000 00 000000 80 000000"));
}

TEST(Bth, ReservedBitsAreIgnored) {
  const auto bth = parse_bth(fixed<12>(from_hex("04 00 ffff 3f 000012 7f 000100")));
  ASSERT_TRUE(bth);
  EXPECT_EQ(*bth, (Bth{.opcode = Opcode::kRcSendOnly, .dest_qpn = 0x12, .psn = Psn(256)}));
}

TEST(Bth, OtherVersionsAndOpcodesAreRefused) {
  const auto other_version = parse_bth(fixed<12>(from_hex("04 01 ffff 00 000012 00 000100")));
  ASSERT_FALSE(other_version);
  EXPECT_EQ(other_version.error(), ParseError::kBadTransportVersion);
  const auto unknown_opcode = parse_bth(fixed<12>(from_hex("15 00 ffff 00 000012 00 000100")));
  ASSERT_FALSE(unknown_opcode);
  EXPECT_EQ(unknown_opcode.error(), ParseError::kUnknownOpcode);
}

TEST(Reth, FixedBytesBothWays) {
  const Reth reth{.va = 0x0102030405060708, .rkey = 0x090a0b0c, .dma_length = 0x0d0e0f10};
  const ByteVector bytes = from_hex("0102030405060708 090a0b0c 0d0e0f10");
  EXPECT_EQ(emitted_header(reth), bytes);
  EXPECT_EQ(parse_reth(fixed<16>(bytes)), reth);
}

TEST(AethHeader, FixedBytesBothWays) {
  const Aeth aeth{.syndrome = 0x1f, .msn = 0x010203};
  const ByteVector bytes = from_hex("1f 010203");
  EXPECT_EQ(emitted_header(aeth), bytes);
  EXPECT_EQ(parse_aeth(fixed<4>(bytes)), aeth);
}

TEST(AtomicEth, FixedBytesBothWays) {
  const AtomicEth atomic{.va = 0x0102030405060708,
                         .rkey = 0x090a0b0c,
                         .swap_add = 0x1112131415161718,
                         .compare = 0x2122232425262728};
  const ByteVector bytes = from_hex("0102030405060708 090a0b0c 1112131415161718 2122232425262728");
  EXPECT_EQ(emitted_header(atomic), bytes);
  EXPECT_EQ(parse_atomic_eth(fixed<28>(bytes)), atomic);
}

TEST(AtomicAckEth, FixedBytesBothWays) {
  const AtomicAckEth atomic_ack{.original = 0x0102030405060708};
  const ByteVector bytes = from_hex("0102030405060708");
  EXPECT_EQ(emitted_header(atomic_ack), bytes);
  EXPECT_EQ(parse_atomic_ack_eth(fixed<8>(bytes)), atomic_ack);
}

TEST(Deth, FixedBytesBothWays) {
  const Deth deth{.qkey = 0x80010000, .src_qpn = 0x010203};
  EXPECT_EQ(emitted_header(deth), from_hex("80010000 00 010203"));
  EXPECT_EQ(parse_deth(fixed<8>(from_hex("80010000 ff 010203"))), deth);  // reserved bits set
}

TEST(Xrceth, FixedBytesBothWays) {
  const Xrceth xrceth{.srqn = 0x010203};
  EXPECT_EQ(emitted_header(xrceth), from_hex("00 010203"));
  EXPECT_EQ(parse_xrceth(fixed<4>(from_hex("ff 010203"))), xrceth);
}

TEST(ImmDt, ItsValueStaysInNetworkOrder) {
  const ByteVector bytes = from_hex("01020304");
  ImmDt imm;
  std::memcpy(&imm.value, bytes.data(), bytes.size());
  EXPECT_EQ(emitted_header(imm), bytes);
  EXPECT_EQ(parse_imm_dt(fixed<4>(bytes)), imm);
}

TEST(Ieth, FixedBytesBothWays) {
  const Ieth ieth{.rkey = 0x01020304};
  const ByteVector bytes = from_hex("01020304");
  EXPECT_EQ(emitted_header(ieth), bytes);
  EXPECT_EQ(parse_ieth(fixed<4>(bytes)), ieth);
}

TEST(Feth, FixedBytesBothWays) {
  const Feth feth{.selectivity = 2, .placement = 9};
  EXPECT_EQ(emitted_header(feth), from_hex("00000029"));
  EXPECT_EQ(parse_feth(fixed<4>(from_hex("ffffffe9"))), feth);
}

TEST(AethSyndrome, TheThreeKindsAreToldApart) {
  EXPECT_EQ(ack_syndrome(), 0x1f);
  EXPECT_EQ(rnr_nak_syndrome(12), 0x2c);
  EXPECT_EQ(nak_syndrome(NakCode::kPsnSequenceError), 0x60);
  EXPECT_EQ(nak_syndrome(NakCode::kInvalidRequest), 0x61);
  EXPECT_EQ(nak_syndrome(NakCode::kRemoteAccessError), 0x62);
  EXPECT_EQ(nak_syndrome(NakCode::kRemoteOperationalError), 0x63);
  for (int syndrome = 0; syndrome < 256; ++syndrome) {
    const AethKind expected = syndrome < 0x20                       ? AethKind::kAck
                              : syndrome < 0x40                     ? AethKind::kRnrNak
                              : syndrome >= 0x60 && syndrome < 0x80 ? AethKind::kNak
                                                                    : AethKind::kReserved;
    EXPECT_EQ(aeth_kind(static_cast<uint8_t>(syndrome)), expected) << syndrome;
  }
}

// IBTA vol 1, table 45, in milliseconds. Code 0 is the longest time. From code 2 on, every second
// code doubles the time.
TEST(AethSyndrome, RnrTimersAreThoseOfTheTable) {
  const double expected_ms[] = {655.36, 0.01,  0.02,  0.03,   0.04,   0.06,   0.08,   0.12,
                                0.16,   0.24,  0.32,  0.48,   0.64,   0.96,   1.28,   1.92,
                                2.56,   3.84,  5.12,  7.68,   10.24,  15.36,  20.48,  30.72,
                                40.96,  61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};
  for (size_t code = 0; code < kRnrTimerNs.size(); ++code) {
    EXPECT_DOUBLE_EQ(kRnrTimerNs[code] / 1e6, expected_ms[code]) << code;
  }
  for (size_t code = 4; code < kRnrTimerNs.size(); ++code) {
    EXPECT_EQ(kRnrTimerNs[code], 2 * kRnrTimerNs[code - 2]) << code;
  }
}

}  // namespace
}  // namespace rocemu::wire
