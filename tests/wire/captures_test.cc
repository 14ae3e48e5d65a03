// Checks the whole codec with every frame of the captures of Linux rdma_rxe.
#include "tests/wire/captures.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace rocemu::wire {
namespace {

TEST(RxeCaptures, EveryFileHasFramesThatParse) {
  EXPECT_EQ(rxe_captures().size(), 33u);
  for (const Capture& capture : rxe_captures()) {
    size_t parsed = 0;
    for (const ByteVector& frame : capture.frames) parsed += parse_frame(frame) ? 1u : 0u;
    EXPECT_GT(parsed, 0u) << capture.name;
  }
}

TEST(RxeCaptures, EveryFrameParsesExceptForTheEightIgmpReportsAndTheTextDatagram) {
  std::map<std::string, std::map<ParseError, int>> refused;
  int parsed = 0;
  for (const Capture& capture : rxe_captures()) {
    for (const ByteVector& frame : capture.frames) {
      if (const auto packet = parse_frame(frame)) {
        ++parsed;
      } else {
        ++refused[capture.name][packet.error()];
      }
    }
  }
  EXPECT_EQ(parsed, 695);
  const decltype(refused) expected = {
      {"interop_cm_req_from_host.pcap",
       {{ParseError::kBadTransportVersion, 1}}},  // "hello, not RoCE"
      {"mckey.pcap", {{ParseError::kNotUdp, 8}}},
  };
  EXPECT_EQ(refused, expected);
}

TEST(RxeCaptures, EveryFrameIsEmittedAgainByteForByte) {
  for (const ByteVector& frame : rxe_roce_frames()) {
    const auto packet = parse_frame(frame);
    ASSERT_TRUE(packet);
    EXPECT_EQ(emitted(*packet), frame) << to_string(*packet);
  }
}

TEST(RxeCaptures, EveryFramePassesTheIcrcCheckExceptForTheOneSentWithABadIcrc) {
  EXPECT_EQ(rxe_roce_frames().size(), 694u);
  for (const ByteVector& frame : rxe_roce_frames()) {
    EXPECT_TRUE(check_icrc(frame)) << to_string(*parse_frame(frame));
  }
  for (const Capture& capture : rxe_captures()) {
    if (capture.name != kBadIcrcCapture) continue;
    ASSERT_GT(capture.frames.size(), kBadIcrcFrame);
    EXPECT_TRUE(parse_frame(capture.frames[kBadIcrcFrame]));
    EXPECT_FALSE(check_icrc(capture.frames[kBadIcrcFrame]));
  }
}

TEST(RxeCaptures, ADatagramWithoutItsEthernetHeaderParsesTheSame) {
  for (const ByteVector& frame : rxe_roce_frames()) {
    const auto ip_packet = std::span(frame).subspan(EthernetHeader::kSize);
    auto packet = parse_datagram(ip_packet);
    ASSERT_TRUE(packet);
    EXPECT_TRUE(check_datagram_icrc(ip_packet));
    const EthernetHeader ethernet = parse_ethernet(std::span(frame).first<EthernetHeader::kSize>());
    packet->src_mac = ethernet.src;
    packet->dst_mac = ethernet.dst;
    EXPECT_EQ(emitted(*packet), frame);
  }
}

// Returns the frame's first `size` bytes in a vector of exactly that size, so that a sanitizer
// detects every read beyond them.
ByteVector cut(const ByteVector& frame, size_t size) {
  return ByteVector(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(size));
}

TEST(RxeCaptures, EveryTruncationIsRefusedAndSaysWhereTheFrameEnded) {
  for (const ByteVector& frame : rxe_roce_frames()) {
    for (size_t size = 0; size < frame.size(); ++size) {
      const ParseError expected = size < 14   ? ParseError::kTruncatedEthernet
                                  : size < 34 ? ParseError::kTruncatedIpv4
                                              : ParseError::kTruncatedIpPayload;
      const ByteVector bytes = cut(frame, size);
      const auto packet = parse_frame(bytes);
      ASSERT_FALSE(packet) << size;
      ASSERT_EQ(packet.error(), expected) << size;
      ASSERT_FALSE(check_icrc(bytes)) << size;
    }
  }
}

TEST(RxeCaptures, EveryTruncationWithFittingLengthsIsRefusedByTheParserOrTheIcrc) {
  std::set<ParseError> reasons;
  for (const ByteVector& frame : rxe_roce_frames()) {
    const OpcodeInfo& info = *find_opcode(frame[42]);
    const size_t smallest = 14 + 20 + 8 + 12 + info.headers_size + 4;
    for (size_t size = 0; size < frame.size(); ++size) {
      ByteVector bytes = cut(frame, size);
      patch_lengths(bytes);
      const auto packet = parse_frame(bytes);
      if (!packet) reasons.insert(packet.error());
      if (size < smallest) {
        ASSERT_FALSE(packet) << size;
        ASSERT_TRUE(is_truncation(packet.error())) << size << ' ' << name(packet.error());
      } else if ((size - smallest) % 4 != 0) {
        ASSERT_FALSE(packet) << size;
        ASSERT_EQ(packet.error(), ParseError::kBadPad) << size;
      } else {
        // A frame with a shorter payload can be parsed, and only its ICRC is wrong. (Only a pad
        // that is longer than the rest is detected earlier.)
        ASSERT_TRUE(packet || packet.error() == ParseError::kBadPad) << size;
        ASSERT_FALSE(check_icrc(bytes)) << size;
      }
    }
  }
  const std::set<ParseError> expected = {
      ParseError::kTruncatedEthernet,     ParseError::kTruncatedIpv4,
      ParseError::kTruncatedUdp,          ParseError::kTruncatedBth,
      ParseError::kTruncatedDeth,         ParseError::kTruncatedReth,
      ParseError::kTruncatedAtomicEth,    ParseError::kTruncatedAeth,
      ParseError::kTruncatedAtomicAckEth, ParseError::kTruncatedImmDt,
      ParseError::kTruncatedIcrc,         ParseError::kBadPad};
  EXPECT_EQ(reasons, expected);
}

}  // namespace
}  // namespace rocemu::wire
