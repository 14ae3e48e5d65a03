#include "wire/udp_checksum.h"

#include <gtest/gtest.h>

#include "tests/wire/captures.h"

namespace rocemu::wire {
namespace {

constexpr uint16_t kChecksum = 0x349b;  // tshark (udp.check_checksum) reports that this is good

// Returns a frame of tests/wire/icrc_test.cc, with this UDP checksum and length.
ByteVector ipv6_frame(const std::string& checksum, const std::string& length = "0020") {
  return from_hex(
      "248a07a8fa22 248a07a8fa23 86dd"
      "60212345 0020113f 20010db8000000000000000000000001 20010db8000000000000000000000002"
      "c001 12b7 " +
      length + checksum +
      "04 70 ffff 00 000011 80 000100"
      "68656c6c6f 000000"
      "07b8cbd9");
}

// RFC 8200, 8.1.
TEST(UdpChecksum, OfAnIpv6PacketIsThatOfRfc8200) {
  EXPECT_EQ(missing_udp_checksum(ipv6_frame("0000")), kChecksum);
}

TEST(UdpChecksum, IsOnlyMissingWhereItIsZero) {
  EXPECT_EQ(missing_udp_checksum(ipv6_frame("1234")), std::nullopt);
}

// Makes the sum 0 by adding the checksum to the last bytes of the datagram, which are those of the
// ICRC.
TEST(UdpChecksum, OfZeroIsSentAsOnes) {
  ByteVector frame = ipv6_frame("0000");
  const uint32_t last = (uint32_t{frame[frame.size() - 2]} << 8 | frame.back()) + kChecksum;
  const uint32_t folded = (last & 0xffff) + (last >> 16);
  frame[frame.size() - 2] = static_cast<uint8_t>(folded >> 8);
  frame.back() = static_cast<uint8_t>(folded);
  EXPECT_EQ(missing_udp_checksum(frame), 0xffff);
}

TEST(UdpChecksum, OfALastOddByteCountsItAsTheFirstOfTwo) {
  // The last three bytes of the ICRC are missing, so the sum does not contain cbd9 and the b8 of
  // 07b8.
  ByteVector frame = ipv6_frame("0000", "001d");
  frame.resize(frame.size() - 3);
  const uint32_t sum = (~uint32_t{kChecksum} & 0xffff) + 2 * 0xffff - 0xcbd9 - 0xb8 - 2 * 3;
  const uint32_t folded = (sum & 0xffff) + (sum >> 16);
  EXPECT_EQ(missing_udp_checksum(frame),
            static_cast<uint16_t>(~((folded & 0xffff) + (folded >> 16))));
}

TEST(UdpChecksum, IsNotMissingInOtherFrames) {
  const ByteVector whole = ipv6_frame("0000");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(missing_udp_checksum(std::span(whole).first(size)), std::nullopt) << size;
  }
  ByteVector ipv4 = whole;
  ipv4[12] = 0x08;
  ipv4[13] = 0x00;
  EXPECT_EQ(missing_udp_checksum(ipv4), std::nullopt);
  ByteVector tcp = whole;
  tcp[20] = 6;
  EXPECT_EQ(missing_udp_checksum(tcp), std::nullopt);
}

}  // namespace
}  // namespace rocemu::wire
