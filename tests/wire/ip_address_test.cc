#include "wire/ip_address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/wire/bytes.h"

namespace rocemu::wire {
namespace {

TEST(IpAddress, AnIpv4AddressHasTheFormOfItsGid) {
  const IpAddress address = IpAddress::from_v4(10, 7, 0, 1);
  EXPECT_EQ(ByteVector(address.bytes.begin(), address.bytes.end()),
            from_hex("00000000 00000000 0000ffff 0a070001"));
  EXPECT_TRUE(address.is_v4());
  EXPECT_EQ(parse_ip_address("10.7.0.1"), address);
  EXPECT_EQ(parse_ip_address("::ffff:10.7.0.1"), address);
  EXPECT_EQ(parse_ip_address("::ffff:a07:1"), address);
  EXPECT_EQ(to_string(address), "10.7.0.1");
}

TEST(IpAddress, OnlyMappedAddressesAreIpv4) {
  EXPECT_FALSE(parse_ip_address("::")->is_v4());
  EXPECT_FALSE(parse_ip_address("::10.7.0.1")->is_v4());
  EXPECT_FALSE(parse_ip_address("::fffe:10.7.0.1")->is_v4());
  EXPECT_FALSE(parse_ip_address("1::ffff:10.7.0.1")->is_v4());
  EXPECT_TRUE(parse_ip_address("0.0.0.0")->is_v4());
}

TEST(IpAddress, TextIsAsRfc5952WritesIt) {
  const auto canonical = [](std::string_view text) {
    const auto address = parse_ip_address(text);
    return address ? to_string(*address) : "refused";
  };
  EXPECT_EQ(canonical("2001:DB8:0:0:0:0:2:1"), "2001:db8::2:1");        // 4.2.1, 4.3
  EXPECT_EQ(canonical("2001:db8::1:1:1:1:1"), "2001:db8:0:1:1:1:1:1");  // 4.2.2
  EXPECT_EQ(canonical("2001:0:0:1:0:0:0:1"), "2001:0:0:1::1");          // 4.2.3, the longest
  // of two equally long runs of zeros, the first is shortened
  EXPECT_EQ(canonical("2001:db8:0:0:1:0:0:1"), "2001:db8::1:0:0:1");
  EXPECT_EQ(canonical("0001::"), "1::");
  EXPECT_EQ(canonical("0:0:0:0:0:0:0:1"), "::1");
  EXPECT_EQ(canonical("0:0:0:0:0:0:0:0"), "::");
  EXPECT_EQ(canonical("1:2:3:4:5:6:7:8"), "1:2:3:4:5:6:7:8");
  EXPECT_EQ(canonical("1:2:3:4:5:6:7::"), "1:2:3:4:5:6:7:0");
  EXPECT_EQ(canonical("1:2:3:4:5:6:1.2.3.4"), "1:2:3:4:5:6:102:304");
  EXPECT_EQ(canonical("64:ff9b::192.0.2.33"), "64:ff9b::c000:221");
}

TEST(IpAddress, OtherTextIsRefused) {
  for (const std::string_view text : {"",
                                      ":",
                                      ":::",
                                      "1",
                                      "1.2.3",
                                      "1.2.3.4.5",
                                      "1.2.3.",
                                      ".1.2.3",
                                      "1..2.3",
                                      "256.1.1.1",
                                      "01.2.3.4",
                                      "1.2.3.4 ",
                                      " 1.2.3.4",
                                      "+1.2.3.4",
                                      "-1.2.3.4",
                                      "1:2:3:4:5:6:7",
                                      "1:",
                                      ":1",
                                      "1:2:3:4:5:6:7:8:9",
                                      "1::2::3",
                                      "1:2:3:4:5:6:7:8::",
                                      "::1:2:3:4:5:6:7:8",
                                      "1::2:3:4:5:6:7:8",
                                      "12345::",
                                      "g::",
                                      "::1%eth0",
                                      "::1/64",
                                      "::+1",
                                      "::1.2.3",
                                      "::1.2.3.4:5",
                                      "1:2:3:4:5:6:7:1.2.3.4",
                                      "1.2.3.4::"}) {
    EXPECT_FALSE(parse_ip_address(text)) << text;
  }
}

// Compares with the C library, for addresses with many zero groups and for damaged text.
TEST(IpAddress, AgreesWithTheCLibraryOnRandomAddressesAndText) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    IpAddress address;
    for (size_t i = 0; i < 16; i += 2) {
      const auto group = random() % 3 == 0 ? random() : 0;
      address.bytes[i] = static_cast<uint8_t>(group >> 8);
      address.bytes[i + 1] = static_cast<uint8_t>(group);
    }
    char text[INET6_ADDRSTRLEN];
    ASSERT_NE(inet_ntop(AF_INET6, address.bytes.data(), text, sizeof text), nullptr);
    EXPECT_EQ(parse_ip_address(text), address) << text;
    EXPECT_EQ(parse_ip_address(to_string(address)), address) << to_string(address);
    if (std::string_view(text).find('.') == std::string_view::npos) {  // glibc's ::a.b.c.d form
      EXPECT_EQ(to_string(address), text);
    }

    std::string damaged(text);
    damaged[random() % damaged.size()] = "0:1.f"[random() % 5];
    IpAddress expected;
    const bool accepted = inet_pton(AF_INET6, damaged.c_str(), expected.bytes.data()) == 1;
    const auto parsed =
        damaged.find(':') == std::string::npos ? std::nullopt : parse_ip_address(damaged);
    EXPECT_EQ(parsed.has_value(), accepted) << damaged;
    if (parsed && accepted) {
      EXPECT_EQ(*parsed, expected) << damaged;
    }
  }
}

}  // namespace
}  // namespace rocemu::wire
