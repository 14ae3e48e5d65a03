// Tests the marks that congested switches set, and the packets that report them to senders (IBTA
// vol 1, annex A17.9).
#include "emulator/engine/transport/congestion.h"

#include <gtest/gtest.h>

#include "tests/support/script.h"

namespace rocemu::test {
namespace {

using engine::Counter;

constexpr uint8_t kMarked = 0x03;  // RFC 3168: "congestion experienced"

PacketSpec cnp() {
  PacketSpec spec;
  spec.packet.bth.opcode = wire::Opcode::kCnp;
  spec.packet.bth.becn = true;
  return spec;
}

TEST(Congestion, AMarkedPacketIsTakenAndItsSenderTold) {
  Script s;
  s.at(0ms)
      .app_posts_recv(1)
      .wire_delivers(send_only(psn(0)).traffic_class(kMarked))
      .expect({cnp(), received(1), ack(psn(0))});
  s.expect_counter(Counter::kCongestionMarks, 1).expect_counter(Counter::kCnpsSent, 1);
}

TEST(Congestion, OnlyCapableOfBeingMarkedIsNoMark) {
  for (const uint8_t ecn : std::initializer_list<uint8_t>{0x01, 0x02, 0xfc}) {
    Script s;
    s.at(0ms)
        .app_posts_recv(1)
        .wire_delivers(send_only(psn(0)).traffic_class(ecn))
        .expect({received(1), ack(psn(0))});
    s.expect_counter(Counter::kCongestionMarks, 0);
  }
}

TEST(Congestion, AMarkedAcknowledgementCountsAsWell) {
  Script s;
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  s.wire_delivers(ack(psn(0)).traffic_class(kMarked)).expect({cnp(), completion(1)});
}

TEST(Congestion, TheSenderIsToldOnceInAnInterval) {
  Script s;
  s.at(0ms).app_posts_recv(1).app_posts_recv(2).app_posts_recv(3);
  s.wire_delivers(send_only(psn(0)).traffic_class(kMarked))
      .expect({cnp(), received(1), ack(psn(0))});
  s.at(engine::congestion::kNotificationInterval - 1ns)
      .wire_delivers(send_only(psn(1)).traffic_class(kMarked))
      .expect({received(2), ack(psn(1))});
  s.at(engine::congestion::kNotificationInterval)
      .wire_delivers(send_only(psn(2)).traffic_class(kMarked))
      .expect({cnp(), received(3), ack(psn(2))});
  s.expect_counter(Counter::kCongestionMarks, 3).expect_counter(Counter::kCnpsSent, 2);
}

TEST(Congestion, ANotificationIsTakenFromThePeerOnly) {
  Script s;
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  s.wire_delivers(cnp()).expect_silence();
  s.expect_counter(Counter::kCnpsReceived, 1);
  s.wire_delivers(cnp().from(wire::IpAddress::from_v4(10, 0, 0, 3))).expect_silence();
  s.expect_counter(Counter::kCnpsReceived, 1).expect_counter(Counter::kDroppedWrongSource, 1);
  s.wire_delivers(ack(psn(0))).expect({completion(1)});
}

/// If a marked CNP were answered with another CNP, the answer could be marked and answered, too,
/// and so on without end.
TEST(Congestion, AMarkedNotificationIsNotAnswered) {
  Script s;
  s.at(0ms).wire_delivers(cnp().traffic_class(kMarked)).expect_silence();
  s.expect_counter(Counter::kCnpsReceived, 1).expect_counter(Counter::kCongestionMarks, 0);
}

}  // namespace
}  // namespace rocemu::test
