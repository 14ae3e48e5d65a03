// Tests repeated frames in a capture: they have a reason only if the capture shows it. The ACK
// timeout is 4.096 us * 2^code (IBTA vol 1, 9.7.6.1.3); RNR timers are those of table 45.
#include "emulator/timeline/reading/capture_repeats.h"

#include <gmock/gmock.h>

#include <array>

#include "emulator/timeline/reading/frame_follower.h"
#include "tests/support/packets.h"
#include "wire/cm/mad.h"

namespace rocemu::timeline {
namespace {

using namespace std::chrono_literals;
using test::ack;
using test::PacketSpec;
using test::psn;
using test::rnr_nak;
using test::send_only;
using test::sequence_nak;

constexpr uint32_t kLeftQpn = 0x11, kRightQpn = 0x22;

class Repeats : public testing::Test {
 protected:
  Repeats() { frames_.set_peer({"10.0.0.1", kLeftQpn}, {"10.0.0.2", kRightQpn}); }

  std::string look_at(engine::Duration at, wire::Packet packet) {
    Happening& frame = frames_.add(engine::Instant(at), packet, {}, 0);
    repeats_.look_at(packet, frame);
    EXPECT_EQ(frame.tone == Tone::kAgain && frame.is_request,
              frame.reason.starts_with("again") || frame.reason.starts_with("retransmission"))
        << frame.reason;
    return frame.reason;
  }
  /// Adds a request from left to right. Returns the reason that is shown for it.
  std::string request(engine::Duration at, const PacketSpec& spec) {
    wire::Packet packet = addressed(spec, 1, 2);
    packet.bth.dest_qpn = kRightQpn;
    return look_at(at, packet);
  }
  std::string response(engine::Duration at, const PacketSpec& spec) {
    wire::Packet packet = addressed(spec, 2, 1);
    packet.bth.dest_qpn = kLeftQpn;
    return look_at(at, packet);
  }
  std::string mad(engine::Duration at, const wire::CmMessage& message, uint8_t from, uint8_t to) {
    std::array<uint8_t, wire::kMadSize> bytes{};
    wire::emit({.transaction_id = 1, .message = message}, bytes);
    wire::Packet packet = addressed({}, from, to);
    packet.bth.opcode = wire::Opcode::kUdSendOnly;
    packet.bth.dest_qpn = wire::kGsiQpn;
    packet.payload = bytes;
    return look_at(at, packet);
  }
  /// Adds a REQ with this code of the ACK timeout, and a REP with this code of the ACK delay.
  void connect(uint8_t timeout, uint8_t delay) {
    wire::CmReq req;
    req.local_comm_id = 7;
    req.local_qpn = kLeftQpn;
    req.primary.local_ack_timeout = timeout;
    mad(0ms, req, 1, 2);
    wire::CmRep rep;
    rep.local_comm_id = 8;
    rep.remote_comm_id = 7;
    rep.local_qpn = kRightQpn;
    rep.target_ack_delay = delay;
    mad(0ms, rep, 2, 1);
  }

  Timeline timeline_;

 private:
  static wire::Packet addressed(const PacketSpec& spec, uint8_t from, uint8_t to) {
    wire::Packet packet = spec.packet;
    packet.src_ip = wire::IpAddress::from_v4(10, 0, 0, from);
    packet.dst_ip = wire::IpAddress::from_v4(10, 0, 0, to);
    return packet;
  }

  FrameFollower frames_{timeline_};
  CaptureRepeats repeats_;
};

TEST_F(Repeats, AreCopiesOrRetransmissionsIfNoReasonIsKnown) {
  EXPECT_EQ(request(0ms, send_only(psn(0))), "");
  EXPECT_EQ(request(0ms, send_only(psn(0))), "again (copy or retransmission)");
  EXPECT_EQ(request(67ms, send_only(psn(0))), "again (copy or retransmission)");
}

TEST_F(Repeats, AreRetransmissionsAfterTheAckTimeoutThatTheConnectionAgreedOn) {
  // Two packet lifetimes of 2^13 make 2^14. With the ACK delay of 2^5, the active side's ACK
  // timeout has code 14.
  connect(14, 5);
  request(10ms, send_only(psn(0)));
  EXPECT_EQ(request(78ms, send_only(psn(0))),
            "retransmission: no ACK for 68 ms, and the ACK timeout is 67.109 ms");
}

TEST_F(Repeats, ThatComeBeforeTheTimeoutOrLongAfterItAreNotExplainedByIt) {
  connect(14, 5);
  request(0ms, send_only(psn(0)));
  EXPECT_EQ(request(67ms, send_only(psn(0))), "again (copy or retransmission)");
  EXPECT_EQ(request(67ms + 269ms, send_only(psn(0))), "again (copy or retransmission)");
}

TEST_F(Repeats, CountTheTimeoutFromTheLastAck) {
  connect(14, 5);
  request(0ms, send_only(psn(0)));
  request(0ms, send_only(psn(1)));
  response(50ms, ack(psn(0)));
  EXPECT_EQ(request(70ms, send_only(psn(1))), "again (copy or retransmission)");
  response(80ms, ack(psn(0)));
  EXPECT_EQ(request(150ms, send_only(psn(1))),
            "retransmission: no ACK for 70 ms, and the ACK timeout is 67.109 ms");
}

TEST_F(Repeats, AfterASequenceNakAreTheRequestedPackets) {
  request(0ms, send_only(psn(0)));
  request(0ms, send_only(psn(1)));
  request(0ms, send_only(psn(2)));
  response(1ms, sequence_nak(psn(1)));
  EXPECT_EQ(request(1ms, send_only(psn(1))), "retransmission after NAK PSN sequence error");
  EXPECT_EQ(request(1ms, send_only(psn(2))), "again (copy or retransmission)");
}

TEST_F(Repeats, OfAnotherPacketThanTheNakNamesAreNotExplainedByIt) {
  request(0ms, send_only(psn(0)));
  request(0ms, send_only(psn(1)));
  response(1ms, sequence_nak(psn(1)));
  EXPECT_EQ(request(1ms, send_only(psn(0))), "again (copy or retransmission)");
}

TEST_F(Repeats, AfterAnRnrNakComeWhenItsTimerIsOver) {
  request(0ms, send_only(psn(0)));
  response(0ms, rnr_nak(psn(0), 12));  // 0.64 ms
  EXPECT_EQ(request(639us, send_only(psn(0))), "again (copy or retransmission)");
  response(1ms, rnr_nak(psn(0), 12));
  EXPECT_EQ(request(1ms + 640us, send_only(psn(0))), "retransmission after RNR NAK, timer 640 us");
}

TEST_F(Repeats, AreNotThoseThatAreSeenForTheFirstTime) {
  request(0ms, send_only(psn(0)));
  EXPECT_EQ(request(0ms, send_only(psn(2))), "");
  EXPECT_EQ(request(1ms, send_only(psn(1))),
            "arrived after later requests: it was overtaken, or is a retransmission of a "
            "frame that the capture lacks");
  EXPECT_EQ(request(2ms, send_only(psn(1))), "again (copy or retransmission)");
}

TEST_F(Repeats, AreFoundWherePsnsWrap) {
  request(0ms, send_only(psn(0xfffffe)));
  EXPECT_EQ(request(0ms, send_only(psn(0xffffff))), "");
  EXPECT_EQ(request(0ms, send_only(psn(0))), "");
  EXPECT_EQ(request(0ms, send_only(psn(0xffffff))), "again (copy or retransmission)");
}

TEST_F(Repeats, OfTheRestOfAReadAreKnownByItsEnd) {
  PacketSpec whole = test::packet(wire::Opcode::kRcReadRequest, psn(0));
  whole.packet.reth = {.va = 0x1000, .rkey = 5, .dma_length = 1024};
  PacketSpec rest = test::packet(wire::Opcode::kRcReadRequest, psn(1));
  rest.packet.reth = {.va = 0x1100, .rkey = 5, .dma_length = 768};
  request(0ms, whole);
  EXPECT_EQ(request(1ms, rest), "again (copy or retransmission)");
  // each READ has 4 responses of 256 bytes, so it takes 4 PSNs
  EXPECT_EQ(request(2ms, send_only(psn(4))), "");
}

TEST_F(Repeats, OfMessagesOfTheConnectionManagerAreNotExplained) {
  connect(14, 5);
  wire::CmReq req;
  req.local_comm_id = 7;
  EXPECT_EQ(mad(5s, req, 1, 2), "the same message again (copy or retransmission)");
}

}  // namespace
}  // namespace rocemu::timeline
