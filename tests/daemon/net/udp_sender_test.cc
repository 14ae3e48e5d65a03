// Tests how frames are grouped into system calls and datagrams, and in which order they are sent
// (docs/design/udp.md).
#include "emulator/daemon/net/udp_sender.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <vector>

#include "tests/daemon/net/loopback_sockets.h"
#include "tests/support/packets.h"

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<uint8_t>;

constexpr engine::Instant kStart{1s};

class UdpSenderTest : public testing::Test {
 protected:
  engine::Frame frame(const test::PacketSpec& spec, size_t payload = 0) {
    const Bytes bytes(payload, 0x5a);
    wire::Packet packet = spec.packet;
    packet.src_ip = ours.endpoints[0].address;
    packet.dst_ip = theirs.endpoints[0].address;
    packet.udp_src_port = ours.source_ports[0];
    packet.payload = bytes;
    engine::Frame frame = pool.allocate();
    frame.set_size(wire::emit_frame(packet, frame.storage()));
    return frame;
  }
  engine::Frame ack(uint32_t psn) { return frame(test::ack(test::psn(psn))); }
  engine::Frame send(uint32_t psn, size_t size) {
    return frame(test::send_only(test::psn(psn)), size);
  }
  /// Returns the PSNs of the packets that arrived, in one vector for each datagram.
  std::vector<std::vector<uint32_t>> arrived(size_t first_size) {
    std::vector<std::vector<uint32_t>> all;
    Bytes bytes(65536);
    const int socket = theirs.endpoints[0].receive.get();
    for (ssize_t size; (size = recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT)) > 0;) {
      all.emplace_back();
      for (size_t at = 0; at < static_cast<size_t>(size); at += first_size) {
        all.back().push_back(uint32_t{bytes[at + 9]} << 16 | uint32_t{bytes[at + 10]} << 8 |
                             bytes[at + 11]);
      }
    }
    return all;
  }

  static constexpr size_t kShort = 64;
  static constexpr size_t kShortSize = wire::Bth::kSize + kShort + wire::kIcrcSize;

  UdpSockets ours = loopback_sockets(1), theirs = loopback_sockets(2);
  UdpCounters counters;
  engine::FramePool pool;
  UdpSender sender{ours, counters};
};

using Arrived = std::vector<std::vector<uint32_t>>;

TEST_F(UdpSenderTest, AnAcknowledgementLeavesWithTheMessageThatAnswers) {
  sender.add(ack(1));
  EXPECT_TRUE(sender.holds_back(kStart));
  sender.add(send(2, kShort));
  EXPECT_FALSE(sender.holds_back(kStart + 1us));
  EXPECT_EQ(sender.flush(), -1);
  EXPECT_EQ(counters.sends, 1u);
  EXPECT_EQ(arrived(kShortSize), (Arrived{{2, 1}}));
}

TEST_F(UdpSenderTest, AnAcknowledgementWaitsForNoLongerThanItTakesToSendIt) {
  sender.add(ack(1));
  EXPECT_TRUE(sender.holds_back(kStart));
  EXPECT_TRUE(sender.holds_back(kStart + 1499ns));
  EXPECT_FALSE(sender.holds_back(kStart + 1500ns));
  EXPECT_EQ(sender.flush(), -1);
  EXPECT_EQ(arrived(kShortSize), (Arrived{{1}}));
  sender.add(ack(2));
  EXPECT_TRUE(sender.holds_back(kStart + 2us)) << "each has its own time";
}

TEST_F(UdpSenderTest, ManyAcknowledgementsDoNotWait) {
  for (uint32_t i = 0; i < 5; ++i) sender.add(ack(i));
  EXPECT_FALSE(sender.holds_back(kStart));
  EXPECT_EQ(sender.flush(), -1);
  EXPECT_EQ(counters.sends, 1u);
}

TEST_F(UdpSenderTest, MessagesDoNotWait) {
  sender.add(send(1, kShort));
  EXPECT_FALSE(sender.holds_back(kStart));
  sender.add(ack(2));
  EXPECT_FALSE(sender.holds_back(kStart));
  EXPECT_EQ(sender.flush(), -1);
  EXPECT_EQ(arrived(kShortSize), (Arrived{{1, 2}}));
}

// A responder's answers must stay in the order of the requests.
TEST_F(UdpSenderTest, NoResponseOvertakesAnAcknowledgement) {
  sender.add(ack(1));
  sender.add(frame(test::packet(wire::Opcode::kRcReadResponseOnly, test::psn(2)), kShort));
  EXPECT_FALSE(sender.holds_back(kStart));
  EXPECT_EQ(sender.flush(), -1);
  EXPECT_EQ(counters.sends, 1u);
  EXPECT_EQ(arrived(kShortSize + 4), (Arrived{{1}, {2}}));  // an AETH more
}

TEST_F(UdpSenderTest, APeerThatNeverAnswersIsSeldomWaitedFor) {
  const auto waits = [&](uint32_t psn) {
    sender.add(ack(psn));
    const bool held = sender.holds_back(kStart);
    if (held) {
      EXPECT_FALSE(sender.holds_back(kStart + 2us));
    }
    EXPECT_EQ(sender.flush(), -1);
    return held;
  };
  for (uint32_t i = 0; i < 8; ++i) EXPECT_TRUE(waits(i)) << i;
  uint32_t held = 0;
  for (uint32_t i = 0; i < 160; ++i) held += waits(8 + i);
  EXPECT_EQ(held, 10u);
  while (!waits(0)) {
  }
  sender.add(ack(1));
  while (!sender.holds_back(kStart)) {  // adds acknowledgements until the sender holds one back
    EXPECT_EQ(sender.flush(), -1);
    sender.add(ack(1));
  }
  sender.add(send(2, kShort));
  EXPECT_FALSE(sender.holds_back(kStart));
  EXPECT_EQ(sender.flush(), -1);
  EXPECT_TRUE(waits(3)) << "an answer came";
}

TEST_F(UdpSenderTest, FullDatagramsLeaveBeforeTheRest) {
  constexpr size_t kLarge = 4096, kLargeSize = wire::Bth::kSize + kLarge + wire::kIcrcSize;
  for (uint32_t i = 0; i < 16; ++i) {
    EXPECT_FALSE(sender.has_many()) << i;
    sender.add(send(i, kLarge));
  }
  EXPECT_TRUE(sender.has_many());
  EXPECT_EQ(sender.flush_full(), -1);
  EXPECT_EQ(arrived(kLargeSize), (Arrived{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}}));
  sender.add(send(16, kLarge));
  EXPECT_EQ(sender.flush_full(), -1);
  EXPECT_EQ(counters.sends, 1u) << "more may come that leaves with it";
  EXPECT_EQ(sender.flush(), -1);
  EXPECT_EQ(arrived(kLargeSize), (Arrived{{15, 16}}));
  EXPECT_TRUE(sender.is_empty());
}

// The first packet of a WRITE has a RETH, so it is longer than the others by 16 bytes.
TEST_F(UdpSenderTest, BothDatagramsOfAWriteLeaveInOneSystemCall) {
  for (uint32_t message = 0; message < 3; ++message) {
    sender.add(send(16 * message, 4096 + 16));
    for (uint32_t i = 1; i < 16; ++i) sender.add(send(16 * message + i, 4096));
    EXPECT_TRUE(sender.has_many());
    EXPECT_EQ(sender.flush_full(), -1);
    EXPECT_TRUE(sender.is_empty());
    EXPECT_EQ(counters.sends, message + 1);
    EXPECT_EQ(arrived(65536), (Arrived{{16 * message}, {16 * message + 2}}));
  }
}

}  // namespace
}  // namespace rocemu::daemon
