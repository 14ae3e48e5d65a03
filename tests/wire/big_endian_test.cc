#include "wire/big_endian.h"

#include <gtest/gtest.h>

#include <bit>

#include "tests/wire/bytes.h"

namespace rocemu::wire {
namespace {

template <class Be>
ByteVector bytes_of(Be be) {
  ByteVector bytes(sizeof be);
  std::memcpy(bytes.data(), &be, sizeof be);
  return bytes;
}

TEST(BigEndian, TheMostSignificantByteIsFirst) {
  EXPECT_EQ(bytes_of(Be16(0x0102)), from_hex("0102"));
  EXPECT_EQ(bytes_of(Be24(0x010203)), from_hex("010203"));
  EXPECT_EQ(bytes_of(Be32(0x01020304)), from_hex("01020304"));
  EXPECT_EQ(bytes_of(Be64(0x0102030405060708)), from_hex("0102030405060708"));
}

TEST(BigEndian, AValueThatWasSetIsReadBack) {
  EXPECT_EQ(Be16(0xfedc).get(), 0xfedc);
  EXPECT_EQ(Be24(0xfedcba).get(), 0xfedcbau);
  EXPECT_EQ(Be32(0xfedcba98).get(), 0xfedcba98u);
  EXPECT_EQ(Be64(0xfedcba9876543210).get(), 0xfedcba9876543210u);
}

TEST(BigEndian, ConstantEvaluationGivesTheSameBytesAsRunTime) {
  static_assert(std::bit_cast<std::array<uint8_t, 2>>(Be16(0x0102)) ==
                std::array<uint8_t, 2>{1, 2});
  static_assert(std::bit_cast<std::array<uint8_t, 3>>(Be24(0x010203)) ==
                std::array<uint8_t, 3>{1, 2, 3});
  static_assert(std::bit_cast<std::array<uint8_t, 4>>(Be32(0x01020304)) ==
                std::array<uint8_t, 4>{1, 2, 3, 4});
  static_assert(std::bit_cast<std::array<uint8_t, 8>>(Be64(0x0102030405060708)) ==
                std::array<uint8_t, 8>{1, 2, 3, 4, 5, 6, 7, 8});
  static_assert(Be64(0xfedcba9876543210).get() == 0xfedcba9876543210);
  static_assert(Be24(0xfedcba).get() == 0xfedcba);
}

TEST(BigEndian, A24BitFieldDropsTheUpperByte) {
  EXPECT_EQ(Be24(0xffffffff).get(), 0xffffffu);
}

}  // namespace
}  // namespace rocemu::wire
