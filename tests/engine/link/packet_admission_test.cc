// Tests which frames reach a QP, and how dropped frames are counted (IBTA vol 1, 9.6).
#include <gtest/gtest.h>

#include "tests/support/script.h"

namespace rocemu::test {
namespace {

using abi::QpState;
using engine::Counter;
using wire::Opcode;

// All counters of dropped frames, so that a test sees which one increased and that no other did.
constexpr std::array kDrops = {Counter::kDroppedMalformed,   Counter::kDroppedBadIcrc,
                               Counter::kDroppedUnknownQp,   Counter::kDroppedWrongTransport,
                               Counter::kDroppedWrongSource, Counter::kDroppedWrongPkey,
                               Counter::kDroppedUnsupported};

void expect_only_drop(Script& s, Counter which, int line = __builtin_LINE()) {
  s.expect_silence(line);
  for (const Counter drop : kDrops) s.expect_counter(drop, drop == which ? 1 : 0, line);
}

TEST(PacketAdmission, TakesAGoodFrame) {
  Script s;
  s.at(0ms).app_posts_recv(1).wire_delivers(send_only(psn(0))).expect({received(1), ack(psn(0))});
  for (const Counter drop : kDrops) s.expect_counter(drop, 0);
  s.expect_counter(Counter::kFramesIn, 1).expect_counter(Counter::kFramesOut, 1);
}

TEST(PacketAdmission, DropsAFrameForAQpThatDoesNotExist) {
  for (const uint32_t number : {0u, 2u, 16u, 18u, 0xffffffu}) {
    Script s;
    s.at(0ms).app_posts_recv(1).wire_delivers(send_only(psn(0)).to_qp(number));
    expect_only_drop(s, Counter::kDroppedUnknownQp);
  }
}

TEST(PacketAdmission, DropsAFrameForAQpOfAnotherDevice) {
  Bench bench(engine::default_fabric(2));
  Endpoint app(bench, engine::ClientId{1}, engine::DeviceIndex{0}, {});
  const auto peer = wire::IpAddress::from_v4(10, 0, 0, 2);
  ASSERT_TRUE(bring_up(app.client, app.qpn, QpState::kRts, {}, address_vector(peer), 99));
  wire::Packet packet = send_only(psn(0)).packet;
  packet.src_ip = peer;
  packet.dst_ip = wire::IpAddress::from_v4(127, 0, 0, 1);
  packet.bth.dest_qpn = app.qpn;
  bench.step(engine::ReceivedFrame{engine::DeviceIndex{1}, frame_of(packet)});
  EXPECT_TRUE(bench.log.empty());
  EXPECT_EQ(counter(bench.engine(), Counter::kDroppedUnknownQp, 1), 1u);
  EXPECT_EQ(counter(bench.engine(), Counter::kDroppedUnknownQp, 0), 0u);
}

// IBTA vol 1, 10.3.1: no packets are received in RESET, INIT and ERR.
TEST(PacketAdmission, DropsAFrameInEveryStateThatDoesNotReceive) {
  for (const QpState state : {QpState::kReset, QpState::kInit, QpState::kErr}) {
    ScriptOptions options;
    options.state = state;
    for (const PacketSpec& spec : {send_only(psn(0)), ack(psn(0)), ack(psn(0xffffff))}) {
      Script s(options);
      s.at(0ms).wire_delivers(spec);
      expect_only_drop(s, Counter::kDroppedUnknownQp);
    }
  }
}

TEST(PacketAdmission, DropsAResponseBeforeRts) {
  ScriptOptions options;
  options.state = QpState::kRtr;
  Script s(options);
  s.at(0ms).wire_delivers(ack(psn(0)));
  expect_only_drop(s, Counter::kDroppedUnknownQp);
}

// IBTA vol 1, 9.6.1.2: the packet's transport must be that of the QP.
TEST(PacketAdmission, DropsAFrameOfAnotherTransport) {
  for (const Opcode opcode :
       {Opcode::kUcSendOnly, Opcode::kUdSendOnly, Opcode::kXrcSendOnly, Opcode::kXrcAck}) {
    Script s;
    s.at(0ms).app_posts_recv(1).wire_delivers(packet(opcode, psn(0)));
    expect_only_drop(s, Counter::kDroppedWrongTransport);
  }
}

// IBTA vol 1, 10.9.3: the low 15 bits of the packet's P_Key and of the port's must match, and one
// of the two keys must be that of a full member.
TEST(PacketAdmission, DropsAFrameOfAnotherPartition) {
  for (const uint16_t pkey : {uint16_t{0x8001}, uint16_t{0x0000}, uint16_t{0xfffe}}) {
    Script s;
    s.at(0ms).app_posts_recv(1).wire_delivers(send_only(psn(0)).pkey(pkey));
    expect_only_drop(s, Counter::kDroppedWrongPkey);
  }
}

TEST(PacketAdmission, TakesAFrameOfALimitedMember) {
  Script s;
  s.at(0ms)
      .app_posts_recv(1)
      .wire_delivers(send_only(psn(0)).pkey(0x7fff))
      .expect({received(1), ack(psn(0))});
}

// IBTA vol 1, 9.6.1.5.1: connected QPs accept packets from their peer only.
TEST(PacketAdmission, DropsAFrameFromAStranger) {
  Script s;
  s.at(0ms).app_posts_recv(1);
  s.wire_delivers(send_only(psn(0)).from(wire::IpAddress::from_v4(10, 0, 0, 3)));
  expect_only_drop(s, Counter::kDroppedWrongSource);
}

TEST(PacketAdmission, DropsAnAckFromAStranger) {
  Script s;
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  s.wire_delivers(ack(psn(0)).from(wire::IpAddress::from_v4(10, 0, 0, 3)));
  expect_only_drop(s, Counter::kDroppedWrongSource);
}

TEST(PacketAdmission, DropsAFrameForAnotherAddress) {
  Script s;
  s.at(0ms).app_posts_recv(1);
  s.wire_delivers(send_only(psn(0)).to(wire::IpAddress::from_v4(10, 0, 0, 9)));
  expect_only_drop(s, Counter::kDroppedWrongSource);
}

// IBTA annex A17.3.3: a frame whose invariant CRC is wrong is dropped silently.
TEST(PacketAdmission, DropsAFrameWithAWrongIcrc) {
  Script s;
  s.at(0ms).app_posts_recv(1);
  auto bytes = s.frame(send_only(psn(0)).of_length(8));
  bytes.back() ^= 1;
  s.wire_delivers_bytes(bytes);
  expect_only_drop(s, Counter::kDroppedBadIcrc);
}

TEST(PacketAdmission, DropsAFrameWhosePayloadWasChanged) {
  Script s;
  s.at(0ms).app_posts_recv(1);
  auto bytes = s.frame(send_only(psn(0)).of_length(8));
  bytes[bytes.size() - 6] ^= 1;
  s.wire_delivers_bytes(bytes);
  expect_only_drop(s, Counter::kDroppedBadIcrc);
}

TEST(PacketAdmission, CountsInvalidFramesAsMalformed) {
  Script whole;
  const auto bytes = whole.frame(send_only(psn(0)).of_length(8));
  for (size_t size = 0; size < bytes.size(); ++size) {
    Script s;
    s.at(0ms).app_posts_recv(1).wire_delivers_bytes(std::span(bytes).first(size));
    expect_only_drop(s, Counter::kDroppedMalformed);
  }
}

TEST(PacketAdmission, CountsAnUnknownOpcodeAsMalformed) {
  for (const unsigned opcode : {0x15u, 0x1fu, 0x2cu, 0x40u, 0x66u, 0xffu}) {
    Script s;
    s.at(0ms).app_posts_recv(1).wire_delivers(packet(static_cast<Opcode>(opcode), psn(0)));
    expect_only_drop(s, Counter::kDroppedMalformed);
  }
}

TEST(PacketAdmission, IgnoresThePaddingOfShortEthernetFrames) {
  Script s;
  s.at(0ms).app_posts_recv(1);
  auto bytes = s.frame(send_only(psn(0)).of_length(1));
  bytes.resize(bytes.size() + 10, 0);
  s.wire_delivers_bytes(bytes).expect({received(1).bytes(1), ack(psn(0))});
}

// IBTA vol 1, 9.2: reserved bits, FECN and BECN mean nothing for a QP, and on RoCE neither does
// MigReq.
TEST(PacketAdmission, TakesAFrameWhateverItsMigReqAndCongestionBits) {
  Script s;
  s.at(0ms).app_posts_recv(1);
  PacketSpec spec = send_only(psn(0));
  spec.packet.bth.mig_req = true;
  spec.packet.bth.fecn = true;
  spec.packet.bth.becn = true;
  s.wire_delivers(spec).expect({received(1), ack(psn(0))});
}

// FabricConfig::trace_frames.
TEST(PacketAdmission, TracesFramesInBothDirections) {
  ScriptOptions options;
  options.trace_frames = true;
  Script s(options);
  s.at(0ms).app_posts_recv(1).wire_delivers(send_only(psn(0)).of_length(3));
  ASSERT_EQ(s.bench().log.size(), 4u);
  const auto& in = std::get<engine::FrameTrace>(s.bench().log[0].output);
  const auto bytes = s.frame(send_only(psn(0)).of_length(3));
  EXPECT_TRUE(
      std::equal(bytes.begin(), bytes.end(), in.frame.bytes().begin(), in.frame.bytes().end()));
  EXPECT_TRUE(std::holds_alternative<engine::Completion>(s.bench().log[1].output));
  const auto& traced = std::get<engine::FrameTrace>(s.bench().log[2].output);
  const auto& sent = std::get<engine::TransmitFrame>(s.bench().log[3].output);
  EXPECT_TRUE(wire::check_icrc(traced.frame.bytes()));
  EXPECT_EQ(traced.frame.bytes().data(), sent.frame.bytes().data());
  s.bench().log.clear();
}

}  // namespace
}  // namespace rocemu::test
