#include "wire/icrc.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/wire/captures.h"

namespace rocemu::wire {
namespace {

// Frames of ConnectX NICs, as published with scapy (test/contrib/roce.uts).
const char* const kConnectXUcSendOnly =
    "248a07a8fa22 248a07a8fa22 0800"
    "45010040 04784000 4011b4d5 c0a80007 c0a80007"
    "c000 12b7 002c aca2"
    "24 60 ffff 00 0000d3 00 cf1710"
    "4630818be28935d90e9a95505401be885e500000"
    "78f353f3";
const char* const kConnectXCnp =
    "e41d2dab2bc2 7cfe90643b32 0800"
    "45c2003c 718c4000 40119161 0a001101 0a001201"
    "0000 12b7 0028 0000"
    "81 00 ffff 40 000118 00 000000"
    "00000000000000000000000000000000"
    "82fd002a";

// This frame is not from a capture: it was built with scapy, and its ICRC was computed with
// Python's zlib.crc32 over the masked bytes.
const char* const kIpv6RcSendOnly =
    "248a07a8fa22 248a07a8fa23 86dd"
    "60212345 0020113f 20010db8000000000000000000000001 20010db8000000000000000000000002"
    "c001 12b7 0020 0000"
    "04 70 ffff 00 000011 80 000100"
    "68656c6c6f 000000"
    "07b8cbd9";

// The check value of CRC-32/ISO-HDLC in the catalog of parametrized CRC algorithms.
TEST(Icrc, Crc32HasItsCheckValueAndCanBeContinued) {
  const ByteVector digits{'1', '2', '3', '4', '5', '6', '7', '8', '9'};
  const std::span<const uint8_t> bytes(digits);
  EXPECT_EQ(crc32(0, bytes), 0xcbf43926u);
  for (size_t i = 0; i <= bytes.size(); ++i) {
    EXPECT_EQ(crc32(crc32(0, bytes.first(i)), bytes.subspan(i)), 0xcbf43926u) << i;
  }
}

TEST(Icrc, MatchesKnownFrames) {
  const auto icrc = [](std::string_view frame) {
    const ByteVector bytes = from_hex(frame);
    return compute_icrc(std::span(bytes).subspan(14, bytes.size() - 14 - kIcrcSize));
  };
  EXPECT_EQ(icrc(kConnectXUcSendOnly), 0xf353f378u);
  EXPECT_EQ(icrc(kConnectXCnp), 0x2a00fd82u);
  EXPECT_EQ(icrc(kIpv6RcSendOnly), 0xd9cbb807u);
}

TEST(Icrc, IsStoredLittleEndian) {
  std::array<uint8_t, kIcrcSize> bytes;
  store_icrc(0xf353f378, bytes);
  EXPECT_EQ(ByteVector(bytes.begin(), bytes.end()), from_hex("78f353f3"));
  EXPECT_EQ(load_icrc(bytes), 0xf353f378u);
}

TEST(Icrc, AnyBytesHaveAnIcrcAndNoneIsReadBeyondThem) {
  for (const char* frame : {kConnectXUcSendOnly, kIpv6RcSendOnly}) {
    const ByteVector bytes = from_hex(frame);
    for (size_t size = 0; size + 14 <= bytes.size(); ++size) {
      for (const int first : {0x40, 0x45, 0x4f, 0x60, 0x00, 0xff}) {
        ByteVector ip_packet(bytes.begin() + 14, bytes.begin() + 14 + static_cast<ptrdiff_t>(size));
        if (!ip_packet.empty()) ip_packet[0] = static_cast<uint8_t>(first);
        (void)compute_icrc(ip_packet);
        (void)check_datagram_icrc(ip_packet);
      }
    }
  }
}

TEST(Icrc, EthernetPaddingIsNotCovered) {
  ByteVector frame = from_hex(kConnectXUcSendOnly);
  frame.insert(frame.end(), 7, kDirt);
  EXPECT_TRUE(check_icrc(frame));
}

// The offsets of bytes in a frame that the ICRC does not cover. Of the first byte of IPv6, which
// has a part of the traffic class, only the low half is not covered.
struct Masked {
  std::set<size_t> bytes;
  std::set<size_t> low_nibbles;

  bool contains(size_t byte, int bit) const {
    return bytes.contains(byte) || (low_nibbles.contains(byte) && bit < 4);
  }
};

Masked masked_of(std::span<const uint8_t> frame) {
  Masked masked;
  for (size_t byte = 0; byte < 14; ++byte) masked.bytes.insert(byte);  // Ethernet
  if (frame[14] >> 4 == 4) {
    const size_t udp_at = 14 + size_t{4} * (frame[14] & 0xf);
    masked.bytes.insert({14 + 1, 14 + 8, 14 + 10, 14 + 11});  // TOS, TTL, checksum
    // UDP checksum; FECN, BECN and resv6
    masked.bytes.insert({udp_at + 6, udp_at + 7, udp_at + 8 + 4});
  } else {
    masked.low_nibbles.insert(14);
    masked.bytes.insert({15, 16, 17, 14 + 7});  // traffic class, flow label and hop limit
    masked.bytes.insert({54 + 6, 54 + 7, 62 + 4});
  }
  return masked;
}

void expect_every_flip_is_noticed_unless_masked(ByteVector frame) {
  ASSERT_TRUE(check_icrc(frame));
  const Masked masked = masked_of(frame);
  for (size_t byte = 0; byte < frame.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      const auto flip = static_cast<uint8_t>(1 << bit);
      frame[byte] ^= flip;
      ASSERT_EQ(check_icrc(frame), masked.contains(byte, bit)) << "byte " << byte << " bit " << bit;
      frame[byte] ^= flip;
    }
  }
}

TEST(Icrc, EverySingleBitFlipIsNoticedExceptInTheMaskedFields) {
  for (const char* frame : {kConnectXUcSendOnly, kConnectXCnp, kIpv6RcSendOnly}) {
    SCOPED_TRACE(frame);
    expect_every_flip_is_noticed_unless_masked(from_hex(frame));
  }
}

TEST(Icrc, EverySingleBitFlipIsNoticedInOneFrameOfEachOpcodeThatRxeSent) {
  std::set<uint8_t> opcodes;
  for (const ByteVector& frame : rxe_roce_frames()) {
    if (!opcodes.insert(frame[42]).second) continue;
    SCOPED_TRACE(to_string(*parse_frame(frame)));
    expect_every_flip_is_noticed_unless_masked(frame);
  }
  EXPECT_EQ(opcodes.size(), 31u);
}

TEST(Icrc, IpOptionsAreCovered) {
  ByteVector frame = from_hex(kConnectXUcSendOnly);
  const ByteVector options = from_hex("01010100");
  frame.insert(frame.begin() + 34, options.begin(), options.end());
  frame[14] = 0x46;
  patch_lengths(frame);
  write_icrc(frame);
  ASSERT_TRUE(parse_frame(frame));
  expect_every_flip_is_noticed_unless_masked(frame);
}

}  // namespace
}  // namespace rocemu::wire
