// Tests the part of a network that the daemon's loop uses (network_port.h).
#include "emulator/daemon/net/udp_network.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/daemon/net/loopback_sockets.h"
#include "tests/support/packets.h"

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;

constexpr engine::Instant kStart{1s};

class UdpNetworkTest : public testing::Test {
 protected:
  UdpNetworkTest() {
    std::vector<UdpSockets> sockets;
    sockets.push_back(loopback_sockets(1));
    ours = sockets[0].endpoints[0].address;
    source_port = sockets[0].source_ports[0];
    engine::DeviceConfig device{};
    device.name = "rocemu0";
    device.addresses = {ours};
    network.emplace(
        loop, std::vector{device}, std::move(sockets), [] {}, [](const auto&) {},
        [](auto, bool) {});
  }

  engine::Frame frame(const test::PacketSpec& spec) {
    wire::Packet packet = spec.packet;
    packet.src_ip = ours;
    packet.dst_ip = theirs.endpoints[0].address;
    packet.udp_src_port = source_port;
    engine::Frame frame = pool.allocate();
    frame.set_size(wire::emit_frame(packet, frame.storage()));
    return frame;
  }

  EventLoop loop;
  engine::FramePool pool;
  UdpSockets theirs = loopback_sockets(2);
  wire::IpAddress ours;
  uint16_t source_port = 0;
  std::optional<UdpNetwork> network;
};

// A lone acknowledgement is held back for a moment, because the program that got the message may
// reply, and both can then leave in one system call. While it waits, flush() returns false: the
// program may need the daemon's processor to post its reply.
TEST_F(UdpNetworkTest, WhileAnAcknowledgementWaitsThereIsNothingToDo) {
  network->transmit({0}, frame(test::ack(test::psn(1))));
  EXPECT_FALSE(network->flush(kStart));
  EXPECT_TRUE(network->holds_back());
  EXPECT_TRUE(network->flush(kStart + 10us));
  EXPECT_FALSE(network->holds_back());
}

TEST_F(UdpNetworkTest, AMessageIsHeldBackByNothing) {
  network->transmit({0}, frame(test::send_only(test::psn(1))));
  EXPECT_TRUE(network->flush(kStart));
  EXPECT_FALSE(network->holds_back());
}

}  // namespace
}  // namespace rocemu::daemon
