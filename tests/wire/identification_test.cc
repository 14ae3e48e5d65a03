#include "wire/identification.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/wire/captures.h"

namespace rocemu::wire {
namespace {

ByteVector rc_send(size_t payload, uint16_t identification, bool v6 = false) {
  const ByteVector data(payload, 0x5a);
  Packet packet;
  if (v6) {
    packet.src_ip = *parse_ip_address("2001:db8::1");
    packet.dst_ip = *parse_ip_address("2001:db8::2");
  } else {
    packet.src_ip = *parse_ip_address("10.0.0.1");
    packet.dst_ip = *parse_ip_address("10.0.0.2");
  }
  packet.ip_id = identification;
  packet.bth.opcode = Opcode::kRcSendOnly;
  packet.bth.dest_qpn = 17;
  packet.payload = data;
  return emitted(packet);
}

TEST(Identification, IsChangedAsIfTheFrameHadBeenMadeWithIt) {
  for (const size_t payload : {0u, 1u, 64u, 1024u, 4096u}) {
    for (const int number : {0, 1, 43, 0x100, 0x8000, 0xffff, 0x1234}) {
      const auto identification = static_cast<uint16_t>(number);
      ByteVector frame = rc_send(payload, 7);
      change_identification(frame, identification);
      EXPECT_EQ(frame, rc_send(payload, identification)) << payload << " " << identification;
    }
  }
}

TEST(Identification, OfAFrameThatLostItIsFound) {
  for (const ByteVector& frame : rxe_roce_frames()) {
    ByteVector without = frame;
    write_identification(without, 0);
    ASSERT_EQ(identification_of(without), 0);
    const auto found = find_identification(without);
    ASSERT_EQ(found, parse_frame(frame)->ip_id);
    write_identification(without, *found);
    ASSERT_EQ(without, frame);
    ASSERT_EQ(find_identification(frame), parse_frame(frame)->ip_id);
  }
}

TEST(Identification, IsFoundBeforeEthernetPaddingToo) {
  ByteVector frame = rc_send(0, 0x1234);
  frame[18] = frame[19] = 0;
  frame.insert(frame.end(), 9, kDirt);
  EXPECT_EQ(find_identification(frame), 0x1234);
}

// Checks what the header file claims: whatever the IP identification is, a change of any other
// single bit that the ICRC covers is detected.
void expect_single_flips_are_noticed(ByteVector frame) {
  const std::set<size_t> masked = {14 + 1, 14 + 8, 14 + 10, 14 + 11, 34 + 6, 34 + 7, 42 + 4};
  const std::set<size_t> identification = {18, 19};
  frame[18] = frame[19] = 0;
  for (size_t byte = 14; byte < frame.size(); ++byte) {
    if (masked.contains(byte) || identification.contains(byte)) continue;
    for (int bit = 0; bit < 8; ++bit) {
      const auto flip = static_cast<uint8_t>(1 << bit);
      frame[byte] ^= flip;
      ASSERT_EQ(find_identification(frame), std::nullopt) << "byte " << byte << " bit " << bit;
      frame[byte] ^= flip;
    }
  }
}

TEST(Identification, IsNotFoundIfAnyOtherBitIsWrong) {
  expect_single_flips_are_noticed(rc_send(64, 0));
  expect_single_flips_are_noticed(rc_send(4096, 0xbeef));
  std::set<uint8_t> opcodes;
  for (const ByteVector& frame : rxe_roce_frames()) {
    if (opcodes.insert(frame[42]).second) expect_single_flips_are_noticed(frame);
  }
}

TEST(Identification, Ipv6HasNoneAndIsCheckedExactly) {
  ByteVector frame = rc_send(100, 0, true);
  EXPECT_EQ(find_identification(frame), 0);
  const ByteVector original = frame;
  change_identification(frame, 77);
  EXPECT_EQ(frame, original);
  frame[80] ^= 1;
  EXPECT_EQ(find_identification(frame), std::nullopt);
}

TEST(Identification, AWrongIcrcStaysWrong) {
  ByteVector frame = rc_send(100, 0);
  frame[80] ^= 1;
  change_identification(frame, 3);
  EXPECT_FALSE(check_icrc(frame));
  frame[80] ^= 1;
  EXPECT_TRUE(check_icrc(frame));
}

TEST(Identification, AnyBytesOfAnyLengthAreSafe) {
  for (const bool v6 : {false, true}) {
    const ByteVector whole = rc_send(8, 5, v6);
    for (size_t size = 0; size < whole.size(); ++size) {
      ByteVector frame(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
      EXPECT_EQ(find_identification(frame), std::nullopt) << size;
      patch_lengths(frame);
      (void)find_identification(frame);
      change_identification(frame, 9);
      if (size > 17) frame[16] = frame[17] = 0;
      EXPECT_EQ(find_identification(frame), std::nullopt) << size;
    }
  }
}

}  // namespace
}  // namespace rocemu::wire
