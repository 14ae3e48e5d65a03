// Tests a device that is also connected to a network outside the fabric: which frames from there it
// accepts, and how it handles them.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/event_channel.h"
#include "tests/support/script.h"
#include "wire/identification.h"

namespace rocemu::test {
namespace {

using abi::ucma::EventType;
using engine::Counter;

ScriptOptions outside() {
  ScriptOptions options;
  options.outside = true;
  return options;
}

std::vector<uint8_t> with_identification(Script& s, uint16_t identification) {
  auto bytes = s.frame(send_only(psn(0)).of_length(64));
  wire::change_identification(bytes, identification);
  return bytes;
}

void deliver_with_unknown_identification(Script& s, std::vector<uint8_t> bytes) {
  wire::write_identification(bytes, 0);
  s.bench().step(engine::ReceivedFrame{engine::DeviceIndex{0}, bytes, false});
}

// By annex A17.3.3 the ICRC covers the IPv4 identification, but a UDP socket does not report it.
TEST(Outside, AFrameWithAnyIdentificationIsTakenIfItIsNotKnown) {
  for (const int number : {0, 1, 0x4711, 0xffff}) {
    const auto identification = static_cast<uint16_t>(number);
    Script s(outside());
    s.at(0ms).app_posts_recv(1);
    deliver_with_unknown_identification(s, with_identification(s, identification));
    s.expect({received(1), ack(psn(0))});
  }
}

TEST(Outside, AFrameWithAnotherIdentificationIsRefusedIfItIsKnown) {
  Script s(outside());
  auto bytes = with_identification(s, 0x4711);
  wire::write_identification(bytes, 0x4712);
  s.at(0ms).app_posts_recv(1).wire_delivers_bytes(bytes).expect_silence();
  s.expect_counter(Counter::kDroppedBadIcrc, 1);
}

TEST(Outside, ADamagedFrameIsRefusedAlthoughItsIdentificationIsNotKnown) {
  Script s(outside());
  auto bytes = with_identification(s, 0x4711);
  bytes[70] ^= 1;
  s.at(0ms).app_posts_recv(1);
  deliver_with_unknown_identification(s, bytes);
  s.expect_silence().expect_counter(Counter::kDroppedBadIcrc, 1);
}

TEST(Outside, TheTraceShowsTheIdentificationThatWasFound) {
  ScriptOptions options = outside();
  options.trace_frames = true;
  Script s(options);
  const auto bytes = with_identification(s, 0x4711);
  s.at(0ms).app_posts_recv(1);
  deliver_with_unknown_identification(s, bytes);
  ASSERT_FALSE(s.bench().log.empty());
  const auto traced = std::get<engine::FrameTrace>(s.bench().log[0].output).frame.bytes();
  EXPECT_TRUE(std::ranges::equal(traced, bytes));
  s.bench().log.clear();
}

// Frames from the fabric's own devices stay inside.
TEST(Outside, AFrameThatClaimsToBeFromAnAddressOfTheFabricIsDropped) {
  Script s(outside());
  s.at(0ms).app_posts_recv(1);
  s.wire_delivers(send_only(psn(0)).from(s.device_ip())).expect_silence();
  s.expect_counter(Counter::kDroppedWrongSource, 1);
}

TEST(Outside, SourcePortsComeFromTheDevicesList) {
  ScriptOptions options = outside();
  options.source_ports = {50001, 50002, 50003};
  Script s(options);
  s.at(0ms).app_posts_send(1);
  const auto& sent = std::get<engine::TransmitFrame>(s.bench().log.at(0).output);
  const uint16_t port = wire::parse_frame(sent.frame.bytes())->udp_src_port;
  EXPECT_TRUE(std::ranges::count(options.source_ports, port) == 1) << port;
  s.bench().log.clear();
}

// ---- The amount of data in flight: hosts outside the fabric have limited buffers ----

ScriptOptions outside_with_large_buffers() {
  ScriptOptions options = outside();
  options.buffer_size = 1 << 19;
  options.recv_access = abi::kAccessLocalWrite | abi::kAccessRemoteRead;
  options.connection.mtu = abi::Mtu::k256;
  return options;
}

/// Returns the headers of the request packets that the device has sent since the last call.
std::vector<wire::Bth> sent(Script& s) {
  std::vector<wire::Bth> headers;
  for (const Timed& got : s.bench().log) {
    if (const auto* frame = std::get_if<engine::TransmitFrame>(&got.output)) {
      headers.push_back(wire::parse_frame(frame->frame.bytes())->bth);
    }
  }
  s.bench().log.clear();
  return headers;
}

TEST(Outside, ALongMessageWaitsForAcknowledgementsThatItAsksForOnItsWay) {
  Script s(outside_with_large_buffers());
  s.at(0ms).app_posts_send(1, 256 * 200);
  const auto first = sent(s);
  ASSERT_EQ(first.size(), 16u);
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].ack_req, i == 15) << i;
  s.wire_delivers(ack(psn(15)));
  EXPECT_EQ(sent(s).size(), 32u);
  s.wire_delivers(ack(psn(31)));  // half of them
  EXPECT_EQ(sent(s).size(), 32u);
  s.wire_delivers(ack(psn(79)));
  EXPECT_EQ(sent(s).size(), 96u);
  // After a loss, the send window is small again, and starts with the lost packet.
  s.wire_delivers(nak(psn(80), wire::NakCode::kPsnSequenceError));
  const auto again = sent(s);
  ASSERT_EQ(again.size(), 16u);
  EXPECT_EQ(again[0].psn, psn(80));
  s.wire_delivers(ack(psn(95)));
  EXPECT_EQ(sent(s).size(), 32u);
  s.wire_delivers(ack(psn(127)));
  EXPECT_EQ(sent(s).size(), 64u);
  s.wire_delivers(ack(psn(191)));
  EXPECT_EQ(sent(s).size(), 8u);
  s.wire_delivers(ack(psn(199))).expect({completion(1)});
}

// After a timeout, the receiver may have all packets and only had no time to acknowledge them. The
// requester sends one packet to find out, and the acknowledgement opens the window again.
TEST(Outside, AfterATimeoutOnePacketRequestsAnAcknowledgement) {
  Script s(outside_with_large_buffers());
  s.at(0ms).app_posts_send(1, 256 * 200);
  s.wire_delivers(ack(psn(15)));
  EXPECT_EQ(sent(s).size(), 48u);
  s.at(ack_timeout(14));
  const auto again = sent(s);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].psn, psn(16));
  EXPECT_TRUE(again[0].ack_req);
  s.wire_delivers(ack(psn(47)));  // it had
  const auto rest = sent(s);
  ASSERT_EQ(rest.size(), 33u);
  EXPECT_EQ(rest[0].psn, psn(48));
}

// IBTA vol 1, 9.7.6.1.3: a timeout takes between T and 4 T, where T is 4.096 us * 2^timeout.
TEST(Outside, TimeoutsComeLaterAndLater) {
  Script s(outside());
  s.at(0ms).app_posts_send(1, 100);
  EXPECT_EQ(sent(s).size(), 1u);
  engine::Duration time = 0ms;
  for (const int factor : {1, 2, 4, 4, 4, 4, 4}) {
    time += factor * ack_timeout(14);
    s.at(time - 1ns);
    EXPECT_EQ(sent(s).size(), 0u) << factor;
    s.at(time);
    EXPECT_EQ(sent(s).size(), 1u) << factor;
  }
  s.at(time + 4 * ack_timeout(14)).expect({completion(1).status(abi::WcStatus::kRetryExcErr)});
}

TEST(Outside, ALongReadIsRequestedInParts) {
  Script s(outside_with_large_buffers());
  s.at(0ms).app_posts({.wr_id = 1,
                       .opcode = abi::WrOpcode::kRdmaRead,
                       .sges = {s.app().recv_sge(256 * 200)},
                       .remote_address = 0x1000,
                       .rkey = 7});
  const auto answer = [&](uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i) {
      const auto opcode = i == begin     ? wire::Opcode::kRcReadResponseFirst
                          : i == end - 1 ? wire::Opcode::kRcReadResponseLast
                                         : wire::Opcode::kRcReadResponseMiddle;
      s.wire_delivers(packet(opcode, psn(i)).of_length(256));
    }
  };
  const auto request = [&](uint32_t n, uint64_t va, uint32_t length) {
    PacketSpec spec = packet(wire::Opcode::kRcReadRequest, psn(n));
    spec.packet.reth = {.va = va, .rkey = 7, .dma_length = length};
    return spec;
  };
  s.expect({request(0, 0x1000, 256 * 16)});
  answer(0, 16);
  s.expect({request(16, 0x1000 + 256 * 16, 256 * 32)});
  answer(16, 48);
  s.expect({request(48, 0x1000 + 256 * 48, 256 * 64)});
  answer(48, 112);
  s.expect({request(112, 0x1000 + 256 * 112, 256 * 88)});
  answer(112, 200);
  s.expect({completion(1).opcode(abi::WcOpcode::kRdmaRead)});
}

TEST(Outside, ALongReadContinuesWhereItsResponseWasLost) {
  Script s(outside_with_large_buffers());
  s.at(0ms).app_posts({.wr_id = 1,
                       .opcode = abi::WrOpcode::kRdmaRead,
                       .sges = {s.app().recv_sge(256 * 200)},
                       .remote_address = 0x1000,
                       .rkey = 7});
  s.wire_delivers(packet(wire::Opcode::kRcReadResponseFirst, psn(0)).of_length(256));
  EXPECT_EQ(sent(s).size(), 1u);
  s.at(ack_timeout(14));
  // The requester asks for one packet first. Each later request is for as many packets as have
  // arrived: 1, 2, 4 and 8.
  for (uint32_t begin = 1, count = 1; begin < 16; begin += count, count *= 2) {
    const auto again = sent(s);
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].psn, psn(begin));
    for (uint32_t i = begin; i < begin + count; ++i) {
      s.wire_delivers(packet(count == 1               ? wire::Opcode::kRcReadResponseOnly
                             : i == begin             ? wire::Opcode::kRcReadResponseFirst
                             : i == begin + count - 1 ? wire::Opcode::kRcReadResponseLast
                                                      : wire::Opcode::kRcReadResponseMiddle,
                             psn(i))
                          .of_length(256));
    }
  }
  const auto rest = sent(s);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].psn, psn(16));
}

// ---- Multicast: the network is notified of the first and the last member of a device ----

constexpr wire::IpAddress kGroup = wire::IpAddress::from_v4(239, 1, 2, 3);

struct Members {
  Members()
      : bench(fabric()), app(bench, engine::ClientId{1}, engine::DeviceIndex{0}, datagrams()) {
    second = app.client.create_qp({.pd = app.pd,
                                   .send_cq = app.send_cq,
                                   .recv_cq = app.recv_cq,
                                   .type = abi::QpType::kUd,
                                   .cap = EndpointOptions{}.cap});
    bench.log.clear();
  }
  static engine::FabricConfig fabric() {
    engine::FabricConfig config = engine::default_fabric(1);
    config.devices[0].outside = true;
    return config;
  }
  static EndpointOptions datagrams() {
    EndpointOptions options;
    options.connection.type = abi::QpType::kUd;
    return options;
  }
  int change(abi::Op op, uint32_t qpn) {
    abi::Request::Body body{};
    body.mcast.qpn = qpn;
    std::copy(kGroup.bytes.begin(), kGroup.bytes.end(), body.mcast.gid);
    return app.client.command(op, body).error;
  }
  /// Returns the notifications that the network got since the last call.
  std::vector<bool> told() {
    std::vector<bool> changes;
    for (const Timed& got : bench.log) {
      if (const auto* change = std::get_if<engine::GroupChange>(&got.output)) {
        EXPECT_EQ(change->group, kGroup);
        changes.push_back(change->member);
      }
    }
    bench.log.clear();
    return changes;
  }

  Bench bench;
  Endpoint app;
  uint32_t second;
};

TEST(Outside, TheFirstMemberJoinsAndTheLastLeaves) {
  Members m;
  ASSERT_EQ(m.change(abi::Op::kAttachMcast, m.app.qpn), 0);
  EXPECT_EQ(m.told(), std::vector<bool>{true});
  ASSERT_EQ(m.change(abi::Op::kAttachMcast, m.second), 0);
  ASSERT_EQ(m.change(abi::Op::kAttachMcast, m.second), 0);
  ASSERT_EQ(m.change(abi::Op::kDetachMcast, m.app.qpn), 0);
  EXPECT_EQ(m.told(), std::vector<bool>{});
  ASSERT_EQ(m.change(abi::Op::kDetachMcast, m.second), 0);
  EXPECT_EQ(m.told(), std::vector<bool>{false});
}

TEST(Outside, AGroupIsLeftWithItsLastProgram) {
  Members m;
  ASSERT_EQ(m.change(abi::Op::kAttachMcast, m.app.qpn), 0);
  ASSERT_EQ(m.change(abi::Op::kAttachMcast, m.second), 0);
  m.told();
  m.bench.detach(m.app.client.id());
  EXPECT_EQ(m.told(), std::vector<bool>{false});
}

// ---- rdma_cm ----

struct ResolvesOutside : testing::Test {
  static engine::FabricConfig fabric() {
    engine::FabricConfig config = engine::default_fabric(2);
    config.devices[0].addresses = {wire::IpAddress::from_v4(10, 1, 0, 1)};
    config.devices[1].addresses = {wire::IpAddress::from_v4(10, 2, 0, 1)};
    for (auto& device : config.devices) device.outside = true;
    return config;
  }
  CmBench bench{fabric()};
  EventChannel channel{bench, 1};
};

// The engine cannot find out whether any host has an address: only the connection manager's
// timeouts show that none has.
TEST_F(ResolvesOutside, AnUnknownAddressIsTakenToBeOnTheNetwork) {
  const uint32_t id = channel.create_id(1);
  ASSERT_EQ(channel.resolve(id, ip("10.2.0.9", 7471)), 0);
  EXPECT_EQ(channel.next_event().event, EventType::kAddrResolved);
  EXPECT_EQ(channel.source(id).address, ip("10.2.0.1").address);
}

TEST_F(ResolvesOutside, ABoundIdKeepsItsSource) {
  const uint32_t id = channel.create_id(1);
  ASSERT_EQ(channel.bind(id, ip("10.1.0.1")), 0);
  ASSERT_EQ(channel.resolve(id, ip("10.2.0.9", 7471)), 0);
  EXPECT_EQ(channel.next_event().event, EventType::kAddrResolved);
  EXPECT_EQ(channel.source(id).address, ip("10.1.0.1").address);
}

TEST_F(ResolvesOutside, WithoutAnAddressOfThatFamilyNoHostCanBeReached) {
  const uint32_t id = channel.create_id(1);
  ASSERT_EQ(channel.resolve(id, ip("2001:db8::9", 7471), 10), 0);
  bench.run_for(std::chrono::milliseconds(10));
  EXPECT_EQ(channel.next_event().event, EventType::kAddrError);
}

}  // namespace
}  // namespace rocemu::test
