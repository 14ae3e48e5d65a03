// Tests that datagrams become frames in one burst, each with its headers before it.
#include "emulator/daemon/net/udp_receiver.h"

#include <gtest/gtest.h>

#include <vector>

#include "emulator/daemon/net/udp_sender.h"
#include "tests/daemon/net/loopback_sockets.h"
#include "tests/support/array_memory.h"
#include "tests/support/packets.h"
#include "wire/identification.h"

namespace rocemu::daemon {
namespace {

using Bytes = std::vector<uint8_t>;

class UdpReceiverTest : public testing::Test {
 protected:
  /// Sends SENDs with payloads of these sizes.
  void send(const std::vector<size_t>& sizes, uint8_t traffic_class = 0, uint8_t hop_limit = 64) {
    for (const size_t size : sizes) {
      const Bytes payload = test::pattern(size, next_psn);
      wire::Packet packet = test::send_only(test::psn(next_psn++)).packet;
      packet.src_ip = ours.endpoints[0].address;
      packet.dst_ip = theirs.endpoints[0].address;
      packet.udp_src_port = ours.source_ports[0];
      packet.traffic_class = traffic_class;
      packet.hop_limit = hop_limit;
      packet.payload = payload;
      engine::Frame frame = pool.allocate();
      frame.set_size(wire::emit_frame(packet, frame.storage()));
      sender.add(std::move(frame));
    }
    EXPECT_EQ(sender.flush(), -1);
  }
  /// Checks each frame that arrived, and returns the sizes of the bursts.
  std::vector<size_t> receive() {
    std::vector<size_t> bursts;
    const auto take = [&](std::span<const engine::ReceivedFrame> frames) {
      bursts.push_back(frames.size());
      for (const engine::ReceivedFrame& frame : frames) {
        EXPECT_TRUE(wire::find_identification(frame.bytes));
        const auto packet = wire::parse_frame(frame.bytes);
        ASSERT_TRUE(packet) << name(packet.error());
        EXPECT_EQ(packet->bth.psn, test::psn(expected_psn));
        EXPECT_EQ(Bytes(packet->payload.begin(), packet->payload.end()),
                  test::pattern(packet->payload.size(), expected_psn));
        ++expected_psn;
        classes.push_back(packet->traffic_class);
        hop_limits.push_back(packet->hop_limit);
      }
    };
    while (receiver.receive(
               *buffers, [] {}, take) != 0) {
    }
    return bursts;
  }

  UdpSockets ours = loopback_sockets(1), theirs = loopback_sockets(2);
  UdpCounters counters;
  engine::FramePool pool;
  UdpSender sender{ours, counters};
  ReceiveBuffersPointer buffers = make_receive_buffers();
  UdpReceiver receiver{{0}, {},      theirs.endpoints[0].address, theirs.endpoints[0].receive.get(),
                       {},  counters};
  uint32_t next_psn = 0, expected_psn = 0;
  std::vector<int> classes, hop_limits;
};

TEST_F(UdpReceiverTest, FramesOfOneSizeAreOneBurst) {
  // in the first burst, the receiver does not expect this size yet
  for (int again = 0; again < 3; ++again) {
    send(std::vector<size_t>(15, 4096));
    EXPECT_EQ(receive(), (std::vector<size_t>{15}));
  }
  EXPECT_EQ(counters.receives, 3u);
}

TEST_F(UdpReceiverTest, DatagramsThatCameTogetherAreOneBurst) {
  send(std::vector<size_t>(45, 4096));
  EXPECT_EQ(counters.sends, 1u);
  EXPECT_EQ(receive(), (std::vector<size_t>{45}));
}

// The first packet of an RDMA WRITE has one more header, so its size differs.
TEST_F(UdpReceiverTest, PiecesOfOtherSizesThanExpectedAreWholeAsWell) {
  for (int again = 0; again < 3; ++again) {
    std::vector<size_t> sizes(16, 1024);
    sizes[0] = 1040;
    send(sizes);
    EXPECT_EQ(receive(), (std::vector<size_t>{16}));
  }
  for (const size_t size : {4096u, 8u, 1008u, 64u, 2048u, 4096u, 1000u}) {
    send(std::vector<size_t>(15, size));
    send({size / 2});
    EXPECT_EQ(receive(), (std::vector<size_t>{16})) << size;
    send({4096});
    EXPECT_EQ(receive(), (std::vector<size_t>{1})) << size;
  }
}

TEST_F(UdpReceiverTest, ABurstHasALimitedSize) {
  send(std::vector<size_t>(512, 64));
  const auto bursts = receive();
  size_t all = 0;
  for (const size_t burst : bursts) all += burst;
  EXPECT_EQ(all, 512u);
  EXPECT_EQ(bursts.front(), 256u);
}

TEST_F(UdpReceiverTest, EachFrameHasItsOwnTrafficClassAndHopLimit) {
  send({64, 64}, 0x68, 9);
  send({64}, 0x02, 64);
  send({64}, 0x68, 64);
  send({64}, 0x68, 255);
  receive();
  EXPECT_EQ(classes, (std::vector<int>{0x68, 0x68, 0x02, 0x68, 0x68}));
  EXPECT_EQ(hop_limits, (std::vector<int>{9, 9, 64, 64, 255}));
}

TEST_F(UdpReceiverTest, FramesOfTwoTrafficClassesKeepTheirOrder) {
  const auto add = [&](uint8_t traffic_class) {
    wire::Packet packet = test::send_only(test::psn(next_psn++)).packet;
    packet.src_ip = ours.endpoints[0].address;
    packet.dst_ip = theirs.endpoints[0].address;
    packet.udp_src_port = ours.source_ports[0];
    packet.traffic_class = traffic_class;
    engine::Frame frame = pool.allocate();
    frame.set_size(wire::emit_frame(packet, frame.storage()));
    sender.add(std::move(frame));
  };
  for (const uint8_t traffic_class : Bytes{1, 1, 2, 1, 2, 2}) add(traffic_class);
  EXPECT_EQ(sender.flush(), -1);
  EXPECT_EQ(counters.sends, 4u) << "a socket is told between them";
  receive();
  EXPECT_EQ(classes, (std::vector<int>{1, 1, 2, 1, 2, 2}));
}

}  // namespace
}  // namespace rocemu::daemon
