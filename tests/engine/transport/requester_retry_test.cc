// Tests acknowledgements, loss, and how often the requester tries (IBTA vol 1, 9.7.5, 9.7.6).
#include <gtest/gtest.h>

#include "tests/support/script.h"

namespace rocemu::test {
namespace {

using abi::Mtu;
using abi::QpState;
using abi::WcStatus;
using engine::Counter;
using engine::VendorError;
using wire::NakCode;

constexpr engine::Duration kTimeout = ack_timeout(14);

// ---- Acknowledgements -------------------------------------------------------------------------

// IBTA vol 1, 9.7.5.1.2 (coalesced acknowledge): an ACK acknowledges all PSNs up to its own.
TEST(Requester, CompletesAllMessagesThatOneAckCovers) {
  Script s;
  s.at(0ms).app_posts_send(1).app_posts_send(2, 3000).app_posts_send(3).expect(
      {send_only(psn(0)), send_first(psn(1)), send_middle(psn(2)), send_last(psn(3)),
       send_only(psn(4))});
  s.at(1ms).wire_delivers(ack(psn(3)).with_msn(2)).expect({completion(1), completion(2)});
  s.at(2ms).wire_delivers(ack(psn(4)).with_msn(3)).expect({completion(3)});
}

TEST(Requester, DoesNotCompleteAMessageThatIsAcknowledgedInPart) {
  Script s;
  s.at(0ms).app_posts_send(1, 3072).expect(
      {send_first(psn(0)), send_middle(psn(1)), send_last(psn(2))});
  s.at(10ms).wire_delivers(ack(psn(0))).expect_silence();
  s.at(20ms).wire_delivers(ack(psn(1))).expect_silence();
  // Acknowledged packets are not sent again, and each acknowledgement restarted the timer.
  s.at(20ms + kTimeout).expect({send_last(psn(2))});
  s.at(100ms).wire_delivers(ack(psn(2))).expect({completion(1)});
}

// IBTA vol 1, 9.7.5.1.4 (ghost acknowledge): a PSN that was never sent changes nothing.
TEST(Requester, IgnoresAGhostAck) {
  Script s;
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  s.at(1ms).wire_delivers(ack(psn(1))).expect_silence().expect_counter(Counter::kGhostAcks, 1);
  s.at(1ms).wire_delivers(ack(psn(0x7fffff))).expect_silence();
  s.at(1ms).wire_delivers(nak(psn(1), NakCode::kRemoteAccessError)).expect_silence();
  s.at(1ms).wire_delivers(rnr_nak(psn(1), 1)).expect_silence();
  s.expect_counter(Counter::kGhostAcks, 4);
  s.at(2ms).wire_delivers(ack(psn(0))).expect({completion(1)});
}

TEST(Requester, IgnoresAStaleAck) {
  Script s;
  s.at(0ms).app_posts_send(1).app_posts_send(2).expect({send_only(psn(0)), send_only(psn(1))});
  s.at(1ms).wire_delivers(ack(psn(0))).expect({completion(1)});
  s.at(2ms).wire_delivers(ack(psn(0))).expect_silence();
  s.at(2ms).wire_delivers(nak(psn(0), NakCode::kRemoteOperationalError)).expect_silence();
  s.at(2ms).wire_delivers(rnr_nak(psn(0), 1)).expect_silence();
  s.at(2ms).wire_delivers(ack(psn(0xffffff))).expect_silence();
  s.expect_counter(Counter::kStaleAcks, 4);
  s.at(3ms).wire_delivers(ack(psn(1))).expect({completion(2)});
}

TEST(Requester, IgnoresAnAckWhenNothingWasSent) {
  Script s;
  s.at(0ms).wire_delivers(ack(psn(0))).wire_delivers(ack(psn(0xffffff))).expect_silence();
  s.at(1ms).app_posts_send(1).expect({send_only(psn(0))});
  s.at(2ms).wire_delivers(ack(psn(0))).expect({completion(1)});
}

// IBTA vol 1, 9.7.5.1.1: the credit count of an ACK is only advice, which a requester may ignore.
TEST(Requester, TakesAcksWithAnyCreditCount) {
  Script s;
  for (uint32_t i = 0; i < 32; ++i) {
    s.at(i * 1ms).app_posts_send(i).expect({send_only(psn(i))});
    s.wire_delivers(response(psn(i), static_cast<uint8_t>(i))).expect({completion(i)});
  }
}

// A NAK acknowledges the packets before its PSN (IBTA vol 1, 9.7.5.1.3).
TEST(Requester, TakesANakAsAnAckOfTheMessagesBeforeIt) {
  Script s;
  s.at(0ms).app_posts_send(1).app_posts_send(2).app_posts_send(3).expect(
      {send_only(psn(0)), send_only(psn(1)), send_only(psn(2))});
  s.at(1ms)
      .wire_delivers(sequence_nak(psn(2)))
      .expect({completion(1), completion(2), send_only(psn(2))});
  s.at(2ms).wire_delivers(ack(psn(2))).expect({completion(3)});
}

// IBTA vol 1, 9.7.5.2.8: reserved syndromes have no meaning and are ignored.
TEST(Requester, IgnoresReservedSyndromes) {
  Script s;
  s.at(0ms).app_posts_send(1).app_posts_send(2).expect({send_only(psn(0)), send_only(psn(1))});
  for (const unsigned syndrome : {0x40u, 0x5fu, 0x64u, 0x65u, 0x7fu, 0x80u, 0xa0u, 0xe1u, 0xffu}) {
    s.wire_delivers(response(psn(1), static_cast<uint8_t>(syndrome))).expect_silence();
  }
  s.at(1ms).wire_delivers(ack(psn(1))).expect({completion(1), completion(2)});
}

// ---- The ACK timer ----------------------------------------------------------------------------

// IBTA vol 1, 9.7.6.1.3 and ibv_modify_qp(3) timeout: 4.096 us * 2^timeout, here exact to the
// nanosecond.
TEST(Requester, RetransmitsWhenNoAckArrivesBeforeTheTimeout) {
  for (uint8_t code = 1; code <= 31; ++code) {
    ScriptOptions options;
    options.connection.timeout = code;
    Script s(options);
    s.at(0ms).app_posts_send(7).expect({send_only(psn(0))});
    s.at(ack_timeout(code) - 1ns).expect_silence();
    s.at(ack_timeout(code)).expect({send_only(psn(0))}).expect_counter(Counter::kAckTimeouts, 1);
    s.expect_counter(Counter::kRetransmittedFrames, 1);
    s.at(2 * ack_timeout(code) - 1ns).wire_delivers(ack(psn(0))).expect({completion(7)});
    s.at(1000 * ack_timeout(code)).expect_silence();
  }
}

// Timeouts that were not calculated by our formula: 14 is 67.1 ms, 18 is 1.07 s, 1 is 8.192 us.
TEST(Requester, HasTheTimeoutsOfTheManual) {
  EXPECT_EQ(ack_timeout(1), 8192ns);
  EXPECT_EQ(ack_timeout(14), 67108864ns);
  EXPECT_EQ(ack_timeout(18), 1073741824ns);
  EXPECT_EQ(ack_timeout(31), 8796093022208ns);
}

TEST(Requester, WaitsForeverWithTimeoutZero) {
  ScriptOptions options;
  options.connection.timeout = 0;
  Script s(options);
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  EXPECT_EQ(s.bench().engine().next_deadline(), std::nullopt);
  s.at(24h).expect_silence();
  s.at(25h).wire_delivers(ack(psn(0))).expect({completion(1)});
}

// ibv_modify_qp(3), retry_cnt: 7 means seven retries and has no special meaning.
TEST(Requester, GivesUpAfterRetryCntRetries) {
  for (uint8_t retries = 0; retries <= 7; ++retries) {
    ScriptOptions options;
    options.connection.retry_cnt = retries;
    Script s(options);
    s.at(0ms).app_posts_recv(9).app_posts_send(1).app_posts_send(2).expect(
        {send_only(psn(0)), send_only(psn(1))});
    for (int i = 1; i <= retries; ++i) {
      s.at(i * kTimeout).expect({send_only(psn(0)), send_only(psn(1))});
    }
    s.at((retries + 1) * kTimeout)
        .expect({failed(1, WcStatus::kRetryExcErr).vendor(VendorError::kAckTimeout).wqe_count(1),
                 flushed(2).wqe_count(2), flushed(9)})
        .expect_state(QpState::kErr);
    EXPECT_EQ(s.bench().engine().next_deadline(), std::nullopt);
  }
}

// IBTA vol 1, 9.7.6.1.3: the retry counter is reset when an acknowledgement makes progress.
TEST(Requester, CountsRetriesAnewAfterProgress) {
  ScriptOptions options;
  options.connection.retry_cnt = 1;
  Script s(options);
  s.at(0ms).app_posts_send(1, 2048).expect({send_first(psn(0)), send_last(psn(1))});
  s.at(kTimeout).expect({send_first(psn(0)), send_last(psn(1))});
  s.at(kTimeout + 1ms).wire_delivers(ack(psn(0))).expect_silence();
  s.at(2 * kTimeout + 1ms).expect({send_last(psn(1))});
  s.at(2 * kTimeout + 2ms).wire_delivers(ack(psn(1))).expect({completion(1)});
  s.at(1s).app_posts_send(2).expect({send_only(psn(2))});
  s.at(1s + kTimeout).expect({send_only(psn(2))});
  s.at(1s + 2 * kTimeout).expect({failed(2, WcStatus::kRetryExcErr)});
}

TEST(Requester, CountsRetriesOnWhenAStaleAckComes) {
  ScriptOptions options;
  options.connection.retry_cnt = 1;
  Script s(options);
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  s.at(1ms).wire_delivers(ack(psn(0))).expect({completion(1)});
  s.at(10ms).app_posts_send(2).expect({send_only(psn(1))});
  s.at(10ms + kTimeout).expect({send_only(psn(1))});
  s.at(20ms + kTimeout).wire_delivers(ack(psn(0))).expect_silence();
  s.at(10ms + 2 * kTimeout).expect({failed(2, WcStatus::kRetryExcErr)});
}

// The timer belongs to the oldest request that waits for an answer. New posts must not restart it,
// or a dead peer would be detected late.
TEST(Requester, TimesOutAlthoughTheApplicationKeepsPosting) {
  ScriptOptions options;
  options.connection.retry_cnt = 0;
  Script s(options);
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  s.at(30ms).app_posts_send(2).expect({send_only(psn(1))});
  s.at(60ms).app_posts_send(3).expect({send_only(psn(2))});
  s.at(kTimeout).expect({failed(1, WcStatus::kRetryExcErr), flushed(2), flushed(3)});
}

TEST(Requester, StopsTheTimerWhenNothingIsOutstanding) {
  Script s;
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  s.at(1ms).wire_delivers(ack(psn(0))).expect({completion(1)});
  s.at(10 * kTimeout).expect_silence().expect_counter(Counter::kAckTimeouts, 0);
  s.app_posts_send(2).expect({send_only(psn(1))});
  s.at(11 * kTimeout - 1ns).expect_silence();
  s.at(11 * kTimeout).expect({send_only(psn(1))});
  s.at(11 * kTimeout).wire_delivers(ack(psn(1))).expect({completion(2)});
}

// ---- Go-back-N --------------------------------------------------------------------------------

// IBTA vol 1, 9.7.5.2.3 (PSN sequence error): packets are sent again from the PSN that the NAK
// names.
TEST(Requester, GoesBackToThePsnOfASequenceNak) {
  Script s;
  s.at(0ms).app_posts_send(1).app_posts_send(2, 4096).app_posts_send(3).expect(
      {send_only(psn(0)), send_first(psn(1)), send_middle(psn(2)), send_middle(psn(3)),
       send_last(psn(4)), send_only(psn(5))});
  s.at(1ms)
      .wire_delivers(sequence_nak(psn(3)))
      .expect({completion(1), send_middle(psn(3)), send_last(psn(4)), send_only(psn(5))});
  s.expect_counter(Counter::kSequenceNaksReceived, 1);
  s.at(2ms).wire_delivers(ack(psn(5))).expect({completion(2), completion(3)});
}

TEST(Requester, RetransmitsTheRightBytesOfAMessage) {
  ScriptOptions options;
  options.connection.mtu = Mtu::k256;
  Script s(options);
  const auto bytes = pattern(1000);
  s.app().fill_send_buffer(bytes);
  s.at(0ms).app_posts_send(1, 1000).expect(
      {send_first(psn(0)), send_middle(psn(1)), send_middle(psn(2)), send_last(psn(3))});
  s.at(1ms)
      .wire_delivers(sequence_nak(psn(2)))
      .expect({send_middle(psn(2)).with({bytes.begin() + 512, bytes.begin() + 768}),
               send_last(psn(3)).with({bytes.begin() + 768, bytes.end()})});
  s.at(2ms).wire_delivers(ack(psn(3))).expect({completion(1)});
}

TEST(Requester, GoesBackOverThePsnWrap) {
  ScriptOptions options;
  options.connection.sq_psn = 0xfffffd;
  Script s(options);
  s.at(0ms).app_posts_send(1, 2048).app_posts_send(2, 2048).app_posts_send(3).expect(
      {send_first(psn(0xfffffd)), send_last(psn(0xfffffe)), send_first(psn(0xffffff)),
       send_last(psn(0)), send_only(psn(1))});
  s.at(kTimeout).expect({send_first(psn(0xfffffd)), send_last(psn(0xfffffe)),
                         send_first(psn(0xffffff)), send_last(psn(0)), send_only(psn(1))});
  s.at(kTimeout + 1ms)
      .wire_delivers(sequence_nak(psn(0xffffff)))
      .expect({completion(1), send_first(psn(0xffffff)), send_last(psn(0)), send_only(psn(1))});
  s.at(kTimeout + 2ms).wire_delivers(ack(psn(0))).expect({completion(2)});
  s.at(2 * kTimeout + 2ms).expect({send_only(psn(1))});
  s.at(2 * kTimeout + 3ms).wire_delivers(ack(psn(1))).expect({completion(3)});
}

TEST(Requester, CountsSequenceNaksAsRetries) {
  ScriptOptions options;
  options.connection.retry_cnt = 2;
  Script s(options);
  s.at(0ms).app_posts_send(1).app_posts_send(2).expect({send_only(psn(0)), send_only(psn(1))});
  s.at(1ms).wire_delivers(sequence_nak(psn(0))).expect({send_only(psn(0)), send_only(psn(1))});
  s.at(2ms).wire_delivers(sequence_nak(psn(0))).expect({send_only(psn(0)), send_only(psn(1))});
  s.at(3ms)
      .wire_delivers(sequence_nak(psn(0)))
      .expect(
          {failed(1, WcStatus::kRetryExcErr).vendor(VendorError::kSequenceRetries), flushed(2)});
}

TEST(Requester, RestartsTheTimerWhenItGoesBack) {
  Script s;
  s.at(0ms).app_posts_send(1).app_posts_send(2).expect({send_only(psn(0)), send_only(psn(1))});
  s.at(50ms).wire_delivers(sequence_nak(psn(0))).expect({send_only(psn(0)), send_only(psn(1))});
  s.at(50ms + kTimeout - 1ns).expect_silence();
  s.at(50ms + kTimeout).expect({send_only(psn(0)), send_only(psn(1))});
  s.at(50ms + kTimeout + 1ms).wire_delivers(ack(psn(1))).expect({completion(1), completion(2)});
}

TEST(Requester, SendsNewRequestsAfterTheRepeatedOnes) {
  ScriptOptions options;
  options.connection.mtu = Mtu::k256;
  Script s(options);
  s.at(0ms).app_posts_send(1, 512).expect({send_first(psn(0)), send_last(psn(1))});
  s.at(1ms)
      .wire_delivers(sequence_nak(psn(0)))
      .app_posts_send(2)
      .expect({send_first(psn(0)), send_last(psn(1)), send_only(psn(2))});
  s.at(2ms).wire_delivers(ack(psn(2))).expect({completion(1), completion(2)});
}

// A message of 300 packets is sent again in two engine steps. Between them, an ACK of packets of
// the first transmission arrives.
class RequesterInterrupted : public testing::Test {
 protected:
  static ScriptOptions options() {
    ScriptOptions out;
    out.connection.mtu = Mtu::k256;
    out.buffer_size = 300 * 256;
    return out;
  }
  Script s{options()};

  void SetUp() override {
    s.at(0ms).app_posts_send(1, 300 * 256).app_posts_send(2);
    s.bench().log.clear();
    // The first step of the retransmission sends 256 frames.
    const auto bytes = s.frame(sequence_nak(psn(0)));
    engine::Outputs outputs;
    const engine::ReceivedFrame nak{engine::DeviceIndex{0}, bytes};
    s.bench().engine().step(s.bench().now(), engine::ReceivedFrames{{&nak, 1}}, outputs);
    ASSERT_EQ(outputs.list.size(), 256u);
    EXPECT_EQ(Expected(send_middle(psn(255))).mismatch(outputs.list.back()), "");
  }
  std::vector<Expected> rest_from(uint32_t first) {
    std::vector<Expected> rest;
    for (uint32_t i = first; i < 299; ++i) rest.push_back(send_middle(psn(i)));
    rest.push_back(send_last(psn(299)));
    rest.push_back(send_only(psn(300)));
    return rest;
  }
};

TEST_F(RequesterInterrupted, ContinuesAfterTheAcknowledgedPart) {
  s.wire_delivers(ack(psn(279))).expect_list(rest_from(280));
  s.wire_delivers(ack(psn(300))).expect({completion(1), completion(2)});
}

TEST_F(RequesterInterrupted, ContinuesWhereItWasIfLessWasAcknowledged) {
  s.wire_delivers(ack(psn(100))).expect_list(rest_from(256));
  s.wire_delivers(ack(psn(300))).expect({completion(1), completion(2)});
}

TEST_F(RequesterInterrupted, ContinuesWithTheNextMessageIfThisOneWasAcknowledged) {
  s.wire_delivers(ack(psn(299))).expect({completion(1), send_only(psn(300))});
  s.wire_delivers(ack(psn(300))).expect({completion(2)});
}

TEST_F(RequesterInterrupted, ContinuesWithNewRequestsIfAllWasAcknowledged) {
  s.wire_delivers(ack(psn(300))).expect({completion(1), completion(2)});
  s.app_posts_send(3).expect({send_only(psn(301))});
  s.wire_delivers(ack(psn(301))).expect({completion(3)});
}

// IBTA vol 1, 9.7.6.1.3: the timeout is for a request that requested an acknowledgement. Here a
// slow machine sends the message's last packet, which requests the acknowledgement, long after its
// first one.
TEST(Requester, DoesNotTimeOutWhileItIsStillSendingAMessage) {
  ScriptOptions options;
  options.connection.mtu = Mtu::k256;
  options.connection.retry_cnt = 1;
  options.buffer_size = 300 * 256;
  Script s(options);
  s.at(0ms);
  engine::Engine& engine = s.bench().engine();
  const auto wqe = send_wqe({.wr_id = 1, .sges = {s.app().send_sge(300 * 256)}}, options.cap);
  const auto step = [&](engine::Duration at, const engine::Input& input) {
    engine::Outputs outputs;
    engine.step(engine::Instant(at), input, outputs);
    return outputs.list.size();
  };
  EXPECT_EQ(step(0ms, engine::PostSend{s.client().id(), engine::QpNumber{s.qpn()}, wqe}), 256u);
  EXPECT_EQ(step(100ms, engine::Tick{}), 44u);
  EXPECT_EQ(engine.next_deadline(), engine::Instant(100ms + kTimeout));
  EXPECT_EQ(step(100ms + kTimeout, engine::Tick{}), 256u);
  EXPECT_EQ(step(300ms, engine::Tick{}), 44u);
  s.at(300ms).expect_counter(Counter::kAckTimeouts, 1);
  s.wire_delivers(ack(psn(299))).expect({completion(1)});
}

// ---- Receiver not ready -----------------------------------------------------------------------

// IBTA vol 1, 9.7.5.2.8, table "Encoding for RNR NAK timer field" (ibv_modify_qp(3)
// min_rnr_timer), in hundredths of a millisecond.
TEST(Requester, WaitsForTheRnrTimerOfTheNak) {
  constexpr std::array<int64_t, 32> kHundredthsOfMs = {
      65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
      48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
      2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  for (uint8_t code = 0; code < 32; ++code) {
    const engine::Duration wait{kHundredthsOfMs[code] * 10'000};
    Script s;
    s.at(0ms).app_posts_send(1, 2048).expect({send_first(psn(0)), send_last(psn(1))});
    s.at(1ms).wire_delivers(rnr_nak(psn(0), code)).expect_silence();
    s.at(1ms + wait - 1ns).expect_silence();
    s.at(1ms + wait).expect({send_first(psn(0)), send_last(psn(1))});
    s.at(2ms + wait).wire_delivers(ack(psn(1))).expect({completion(1)});
    s.expect_counter(Counter::kRnrNaksReceived, 1).expect_counter(Counter::kAckTimeouts, 0);
  }
}

// ibv_modify_qp(3), rnr_retry.
TEST(Requester, GivesUpAfterRnrRetryRetries) {
  for (uint8_t retries = 0; retries <= 6; ++retries) {
    ScriptOptions options;
    options.connection.rnr_retry = retries;
    Script s(options);
    s.at(0ms).app_posts_send(1).app_posts_send(2).expect({send_only(psn(0)), send_only(psn(1))});
    for (int i = 0; i < retries; ++i) {
      s.at(i * 10ms + 5ms).wire_delivers(rnr_nak(psn(0), 1)).expect_silence();
      s.at(i * 10ms + 5ms + 10us).expect({send_only(psn(0)), send_only(psn(1))});
    }
    s.at(retries * 10ms + 5ms)
        .wire_delivers(rnr_nak(psn(0), 1))
        .expect({failed(1, WcStatus::kRnrRetryExcErr).vendor(VendorError::kRnrRetries), flushed(2)})
        .expect_state(QpState::kErr);
  }
}

TEST(Requester, RetriesForeverWithRnrRetrySeven) {
  Script s;
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  for (int i = 1; i <= 100; ++i) {
    s.at(i * 1ms).wire_delivers(rnr_nak(psn(0), 1)).expect_silence();
    s.at(i * 1ms + 10us).expect({send_only(psn(0))});
  }
  s.at(101ms).wire_delivers(ack(psn(0))).expect({completion(1)});
}

TEST(Requester, CountsRnrRetriesAnewAfterProgress) {
  ScriptOptions options;
  options.connection.rnr_retry = 1;
  Script s(options);
  s.at(0ms).app_posts_send(1).app_posts_send(2).expect({send_only(psn(0)), send_only(psn(1))});
  s.at(1ms).wire_delivers(rnr_nak(psn(0), 1)).expect_silence();
  s.at(1010us).expect({send_only(psn(0)), send_only(psn(1))});
  s.at(2ms).wire_delivers(rnr_nak(psn(1), 1)).expect({completion(1)});
  s.at(2010us).expect({send_only(psn(1))});
  s.at(3ms).wire_delivers(rnr_nak(psn(1), 1)).expect({failed(2, WcStatus::kRnrRetryExcErr)});
}

// Packets after a request that found no receive WQE also cause NAKs (Linux rxe sends a PSN sequence
// error for them). These must not make the requester send before the RNR timer has expired.
TEST(Requester, KeepsWaitingWhenASequenceNakFollowsAnRnrNak) {
  ScriptOptions options;
  options.connection.retry_cnt = 0;  // the NAKs do not count as retries, either
  Script s(options);
  s.at(0ms).app_posts_send(1, 2048).expect({send_first(psn(0)), send_last(psn(1))});
  s.at(1ms).wire_delivers(rnr_nak(psn(0), 14)).expect_silence();
  s.at(1ms).wire_delivers(sequence_nak(psn(0))).expect_silence();
  s.at(1ms).wire_delivers(rnr_nak(psn(0), 14)).expect_silence();
  s.at(1ms + 1280us - 1ns).expect_silence();
  s.at(1ms + 1280us).expect({send_first(psn(0)), send_last(psn(1))});
  s.at(3ms).wire_delivers(ack(psn(1))).expect({completion(1)});
}

TEST(Requester, CountsSeveralRnrNaksOfOneDelayOnce) {
  ScriptOptions options;
  options.connection.rnr_retry = 1;
  Script s(options);
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  s.at(1ms).wire_delivers(rnr_nak(psn(0), 14)).expect_silence();
  s.at(2ms).wire_delivers(rnr_nak(psn(0), 14)).expect_silence();
  s.at(1ms + 1280us).expect({send_only(psn(0))});
  s.at(3ms).wire_delivers(ack(psn(0))).expect({completion(1)});
}

TEST(Requester, HoldsBackRequestsPostedDuringAnRnrWait) {
  Script s;
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  s.at(1ms).wire_delivers(rnr_nak(psn(0), 14)).app_posts_send(2).expect_silence();
  s.at(1ms + 1280us).expect({send_only(psn(0)), send_only(psn(1))});
  s.at(3ms).wire_delivers(ack(psn(1))).expect({completion(1), completion(2)});
}

// After an RNR NAK, the network can still deliver an ACK for the same message: another copy of the
// message found a receive WQE.
TEST(Requester, ContinuesAfterAnAckDuringAnRnrWait) {
  Script s;
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  s.at(1ms).wire_delivers(rnr_nak(psn(0), 14)).expect_silence();
  s.at(1ms + 100us).wire_delivers(ack(psn(0))).expect({completion(1)});
  s.at(1ms + 200us).app_posts_send(2).expect_silence();
  s.at(1ms + 1280us).expect({send_only(psn(1))});
  s.at(3ms).wire_delivers(ack(psn(1))).expect({completion(2)});
}

TEST(Requester, DoesNotTimeOutWhileItWaitsForTheReceiver) {
  ScriptOptions options;
  options.connection.timeout = 1;  // 8.192 us, far less than the RNR delay
  options.connection.retry_cnt = 0;
  Script s(options);
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  s.at(5us).wire_delivers(rnr_nak(psn(0), 31)).expect_silence();
  s.at(491520us + 5us).expect({send_only(psn(0))});
  s.at(491520us + 6us).wire_delivers(ack(psn(0))).expect({completion(1)});
}

// ---- NAKs after which the QP fails -------------------------------------------------------------

// IBTA vol 1, 9.7.5.2.4 to 9.7.5.2.6: NAK codes; 11.6.2: the completion's status for each.
TEST(Requester, CompletesWithTheStatusThatAnErrorNakMeans) {
  struct Case {
    NakCode code;
    WcStatus status;
    VendorError vendor;
  };
  for (const auto& [code, status, vendor] :
       {Case{NakCode::kInvalidRequest, WcStatus::kRemInvReqErr, VendorError::kNakInvalidRequest},
        Case{NakCode::kRemoteAccessError, WcStatus::kRemAccessErr, VendorError::kNakRemoteAccess},
        Case{NakCode::kRemoteOperationalError, WcStatus::kRemOpErr,
             VendorError::kNakRemoteOperational}}) {
    Script s;
    s.at(0ms).app_posts_recv(9).app_posts_send(1).app_posts_send(2, 2048).app_posts_send(3).expect(
        {send_only(psn(0)), send_first(psn(1)), send_last(psn(2)), send_only(psn(3))});
    s.at(1ms)
        .wire_delivers(nak(psn(1), code))
        .expect(
            {completion(1), failed(2, status).vendor(vendor).wqe_count(2), flushed(3), flushed(9)})
        .expect_state(QpState::kErr)
        .expect_counter(Counter::kErrorNaksReceived, 1);
    EXPECT_EQ(s.bench().engine().next_deadline(), std::nullopt);
    s.at(2ms).wire_delivers(ack(psn(3))).expect_silence();
    s.at(10s).expect_silence();
  }
}

TEST(Requester, FailsTheMessageThatTheNakPointsInto) {
  Script s;
  s.at(0ms).app_posts_send(1, 3072).app_posts_send(2).expect(
      {send_first(psn(0)), send_middle(psn(1)), send_last(psn(2)), send_only(psn(3))});
  s.at(1ms)
      .wire_delivers(nak(psn(1), NakCode::kRemoteOperationalError))
      .expect({failed(1, WcStatus::kRemOpErr), flushed(2)});
}

// ---- Windows ----------------------------------------------------------------------------------

// IBTA vol 1, 9.7.2: fewer than 2^23 PSNs may be outstanding. A requester that waits for a free PSN
// must have requested an acknowledgement before, or it waits for ever (here timeout is 0, so no
// timer runs).
TEST(Requester, AsksForAnAckWhenItHasToWaitForRoom) {
  ScriptOptions options;
  options.connection.mtu = Mtu::k256;
  options.connection.timeout = 0;
  options.buffer_size = (size_t{1} << 28) + 256;  // 2^20 + 1 packets
  Script s(options);
  s.at(0ms);
  const auto wqe =
      send_wqe({.wr_id = 1, .sges = {s.app().send_sge(static_cast<uint32_t>(options.buffer_size))}},
               options.cap);
  engine::Outputs outputs;
  engine::Engine& engine = s.bench().engine();
  engine.step(s.bench().now(), engine::PostSend{s.client().id(), engine::QpNumber{s.qpn()}, wqe},
              outputs);
  std::optional<wire::Bth> last;
  uint32_t frames = 0;
  for (;;) {
    for (const engine::Output& output : outputs.list) {
      const auto& sent = std::get<engine::TransmitFrame>(output);
      last = wire::parse_frame(sent.frame.bytes())->bth;
      ++frames;
    }
    outputs.clear();
    if (!engine.next_deadline()) break;
    engine.step(s.bench().now(), engine::Tick{}, outputs);
  }
  ASSERT_TRUE(last);
  EXPECT_LT(frames, 1u << 23);
  EXPECT_EQ(last->psn, psn(frames - 1));
  EXPECT_TRUE(last->ack_req);
  s.wire_delivers(ack(last->psn)).expect({send_last(psn(1 << 20)).of_length(256)});
  s.wire_delivers(ack(psn(1 << 20))).expect({completion(1)});
}

}  // namespace
}  // namespace rocemu::test
