// Tests which packets the responder accepts, where it puts their data, and what it answers (IBTA
// vol 1, 9.7.4, 9.7.5.1).
#include <gtest/gtest.h>

#include "tests/support/script.h"

namespace rocemu::test {
namespace {

using abi::EventType;
using abi::Mtu;
using abi::QpState;
using abi::WcOpcode;
using abi::WcStatus;
using engine::Counter;
using wire::NakCode;

ScriptOptions mtu(Mtu value) {
  ScriptOptions options;
  options.connection.mtu = value;
  return options;
}

// ---- Receiving --------------------------------------------------------------------------------

TEST(Responder, PlacesAMessageCompletesAndAcknowledges) {
  Script s;
  s.at(0ms).app_posts_recv(5);
  s.at(1ms)
      .wire_delivers(send_only(psn(0)).with({1, 2, 3, 4, 5}))
      .expect({received(5).bytes(5).wqe_count(1), ack(psn(0)).with_msn(1)})
      .expect_received({1, 2, 3, 4, 5});
}

TEST(Responder, TakesAnEmptyMessage) {
  Script s;
  s.at(0ms).app_posts_recv_list({.wr_id = 1});
  s.wire_delivers(send_only(psn(0))).expect({received(1).bytes(0), ack(psn(0)).with_msn(1)});
}

class ResponderAtMtu : public testing::TestWithParam<Mtu> {};

TEST_P(ResponderAtMtu, PutsThePacketsOfAMessageTogether) {
  const uint32_t size = abi::mtu_bytes(GetParam());
  const auto message = pattern(3 * size + 5);
  Script s(mtu(GetParam()));
  s.at(0ms).app_posts_recv(1, 4 * size);
  const auto part = [&](uint32_t i) {
    return std::vector<uint8_t>(message.begin() + i * size,
                                message.begin() + std::min(3 * size + 5, (i + 1) * size));
  };
  s.wire_delivers(send_first(psn(0)).with(part(0))).expect_silence();
  s.wire_delivers(send_middle(psn(1)).with(part(1))).expect_silence();
  s.wire_delivers(send_middle(psn(2)).with(part(2))).expect_silence();
  s.wire_delivers(send_last(psn(3)).with(part(3)))
      .expect({received(1).bytes(3 * size + 5), ack(psn(3)).with_msn(1)})
      .expect_received(message);
}

INSTANTIATE_TEST_SUITE_P(AtEveryPathMtu, ResponderAtMtu,
                         testing::Values(Mtu::k256, Mtu::k512, Mtu::k1024, Mtu::k2048, Mtu::k4096));

// IBTA vol 1, 9.7.5.1.2: an ACK is sent when AckReq requests it, on any packet.
TEST(Responder, AcknowledgesWhenAckReqSaysSo) {
  Script s(mtu(Mtu::k256));
  s.at(0ms).app_posts_recv(1).app_posts_recv(2);
  s.wire_delivers(send_first(psn(0)).of_length(256).ack_req(true))
      .expect({ack(psn(0)).with_msn(0)});
  s.wire_delivers(send_last(psn(1)).of_length(1).ack_req(false)).expect({received(1)});
  s.wire_delivers(send_only(psn(2)).of_length(1)).expect({received(2), ack(psn(2)).with_msn(2)});
}

// IBTA vol 1, 9.7.7.1: the MSN counts completed messages, in 24 bits.
TEST(Responder, CountsMessagesInTheMsn) {
  ScriptOptions options;
  options.connection.rq_psn = 0xfffffe;
  Script s(options);
  for (uint32_t i = 0; i < 10; ++i) {
    s.at(i * 1ms).app_posts_recv(i);
    s.wire_delivers(send_only(psn(0xfffffe + i)))
        .expect({received(i).wqe_count(i + 1), ack(psn(0xfffffe + i)).with_msn(i + 1)});
  }
}

TEST(Responder, ScattersOverTheListInOrder) {
  Script s;
  const auto message = pattern(100);
  s.at(0ms).app_posts_recv_list({.wr_id = 1,
                                 .sges = {s.app().recv_sge(10, 500), s.app().recv_sge(0),
                                          s.app().recv_sge(80, 1), s.app().recv_sge(50, 1000)}});
  s.wire_delivers(send_only(psn(0)).with(message))
      .expect({received(1).bytes(100), ack(psn(0))})
      .expect_received({message.begin(), message.begin() + 10}, 500)
      .expect_received({message.begin() + 10, message.begin() + 90}, 1)
      .expect_received({message.begin() + 90, message.end()}, 1000);
}

TEST(Responder, ScattersPacketsAcrossTheListsEntries) {
  Script s(mtu(Mtu::k256));
  const auto message = pattern(600);
  s.at(0ms).app_posts_recv_list(
      {.wr_id = 1,
       .sges = {s.app().recv_sge(200), s.app().recv_sge(300, 1000), s.app().recv_sge(100, 2000)}});
  s.wire_delivers(send_first(psn(0)).with({message.begin(), message.begin() + 256}));
  s.wire_delivers(send_middle(psn(1)).with({message.begin() + 256, message.begin() + 512}));
  s.wire_delivers(send_last(psn(2)).with({message.begin() + 512, message.end()}))
      .expect({received(1).bytes(600), ack(psn(2))})
      .expect_received({message.begin(), message.begin() + 200})
      .expect_received({message.begin() + 200, message.begin() + 500}, 1000)
      .expect_received({message.begin() + 500, message.end()}, 2000);
}

TEST(Responder, FillsABufferToItsLastByteAndNotBeyond) {
  Script s;
  s.at(0ms).app_posts_recv(1, 8, 100);
  s.wire_delivers(send_only(psn(0)).with(std::vector<uint8_t>(8, 0xff)))
      .expect({received(1).bytes(8), ack(psn(0))})
      .expect_received(std::vector<uint8_t>(8, 0xff), 100)
      .expect_received({0}, 99)
      .expect_received({0}, 108);
}

// ibv_poll_cq(3): imm_data is in network byte order, and valid with IBV_WC_WITH_IMM.
TEST(Responder, HandsImmediateDataOn) {
  Script s(mtu(Mtu::k256));
  s.at(0ms).app_posts_recv(1).app_posts_recv(2).app_posts_recv(3);
  s.wire_delivers(send_only_imm(psn(0), 0xdeadbeef))
      .expect({received(1).imm(0xdeadbeef).bytes(0), ack(psn(0))});
  s.wire_delivers(send_first(psn(1)).of_length(256)).expect_silence();
  s.wire_delivers(send_last_imm(psn(2), 1).of_length(3))
      .expect({received(2).imm(1).bytes(259), ack(psn(2))});
  s.wire_delivers(send_only(psn(3))).expect({received(3), ack(psn(3))});
}

TEST(Responder, NamesTheSenderInTheCompletion) {
  Script s;
  s.at(0ms).app_posts_recv(1).wire_delivers(send_only(psn(0)));
  const auto& done = std::get<engine::Completion>(s.bench().log.at(0).output);
  EXPECT_EQ(done.cqe.src_qp, Script::kPeerQpn);
  EXPECT_EQ(done.cqe.qp_num, s.qpn());
  EXPECT_EQ(done.cq.value, s.app().recv_cq);
  EXPECT_EQ(done.cqe.wc_flags & abi::kWcGrh, 0u);  // connected QPs report no GRH
  s.expect({received(1), ack(psn(0))});
}

TEST(Responder, ReceivesInEveryStateThatReceives) {
  for (const QpState state : {QpState::kRtr, QpState::kRts, QpState::kSqd}) {
    ScriptOptions options;
    options.state = state;
    Script s(options);
    s.at(0ms).app_posts_recv(1).wire_delivers(send_only(psn(0)).of_length(4));
    std::vector<Expected> expected = {received(1).bytes(4), ack(psn(0)).with_msn(1)};
    if (state == QpState::kRtr) {
      expected.insert(expected.begin(), event(EventType::kCommEst, Endpoint::kQpHandle));
    }
    s.expect_list(expected);
  }
}

// ibv_post_recv(3): receives may already be posted in INIT.
TEST(Responder, UsesReceivesThatWerePostedInInit) {
  ScriptOptions options;
  options.state = QpState::kInit;
  Script s(options);
  s.at(0ms).app_posts_recv(1).expect_silence();
  const Transition to_rtr =
      transition_to(QpState::kRtr, {}, address_vector(s.peer_ip()), Script::kPeerQpn);
  s.app_modifies(to_rtr.attr, to_rtr.mask);
  s.wire_delivers(send_only(psn(0)).of_length(4))
      .expect(
          {event(EventType::kCommEst, Endpoint::kQpHandle), received(1).wqe_count(1), ack(psn(0))});
}

// ibv_get_async_event(3), IBV_EVENT_COMM_EST; IBTA vol 1, 11.6.3.1 "communication established".
TEST(Responder, RaisesCommEstOnceOnTheFirstPacketInRtr) {
  ScriptOptions options = mtu(Mtu::k256);
  options.state = QpState::kRtr;
  Script s(options);
  s.at(0ms).app_posts_recv(1).app_posts_recv(2).app_posts_recv(3);
  s.wire_delivers(send_first(psn(0)).of_length(256))
      .expect({event(EventType::kCommEst, Endpoint::kQpHandle)});
  s.wire_delivers(send_last(psn(1)).of_length(1)).expect({received(1), ack(psn(1))});
  s.wire_delivers(send_only(psn(2))).expect({received(2), ack(psn(2))});
  const Transition to_rts = transition_to(QpState::kRts, {}, {}, 0);
  s.app_modifies(to_rts.attr, to_rts.mask);
  s.wire_delivers(send_only(psn(3))).expect({received(3), ack(psn(3))});
}

TEST(Responder, RaisesNoCommEstInRts) {
  Script s;
  s.at(0ms).app_posts_recv(1).wire_delivers(send_only(psn(0))).expect({received(1), ack(psn(0))});
}

// ---- Duplicates -------------------------------------------------------------------------------

// IBTA vol 1, C9-105: a duplicate SEND is acknowledged again and not executed. The acknowledgement
// names the newest PSN.
TEST(Responder, AcknowledgesADuplicateAgainWithoutExecutingIt) {
  Script s;
  s.at(0ms).app_posts_recv(1).app_posts_recv(2);
  s.wire_delivers(send_only(psn(0)).with({1, 1, 1})).expect({received(1), ack(psn(0)).with_msn(1)});
  s.wire_delivers(send_only(psn(0)).with({9, 9, 9}))
      .expect({ack(psn(0)).with_msn(1)})
      .expect_received({1, 1, 1})
      .expect_counter(Counter::kDuplicateRequests, 1);
  s.wire_delivers(send_only(psn(1)).with({2})).expect({received(2), ack(psn(1)).with_msn(2)});
  s.wire_delivers(send_only(psn(0)).with({9})).expect({ack(psn(1)).with_msn(2)});
}

TEST(Responder, TakesDuplicatesInTheMiddleOfAMessage) {
  Script s(mtu(Mtu::k256));
  s.at(0ms).app_posts_recv(1);
  const auto message = pattern(600);
  s.wire_delivers(send_first(psn(0)).with({message.begin(), message.begin() + 256}));
  s.wire_delivers(send_middle(psn(1)).with({message.begin() + 256, message.begin() + 512}));
  s.expect_silence();
  s.wire_delivers(send_first(psn(0)).with(std::vector<uint8_t>(256)))
      .expect({ack(psn(1)).with_msn(0)});
  s.wire_delivers(send_last(psn(2)).with({message.begin() + 512, message.end()}))
      .expect({received(1).bytes(600), ack(psn(2)).with_msn(1)})
      .expect_received(message);
}

TEST(Responder, TakesDuplicatesOverThePsnWrap) {
  ScriptOptions options;
  options.connection.rq_psn = 0xffffff;
  Script s(options);
  s.at(0ms).app_posts_recv(1).app_posts_recv(2);
  s.wire_delivers(send_only(psn(0xffffff))).expect({received(1), ack(psn(0xffffff))});
  s.wire_delivers(send_only(psn(0))).expect({received(2), ack(psn(0))});
  s.wire_delivers(send_only(psn(0xffffff))).expect({ack(psn(0)).with_msn(2)});
}

// IBTA vol 1, 9.7.2: of the 2^24 PSNs, the 2^23 before the expected one are duplicates; the others
// are ahead of it.
TEST(Responder, TakesTheHalfCircleBeforeTheExpectedPsnAsDuplicates) {
  Script s;
  s.at(0ms);
  s.wire_delivers(send_only(psn(0x800000))).expect({ack(psn(0xffffff))});
  s.wire_delivers(send_only(psn(0x7fffff))).expect({sequence_nak(psn(0))});
  s.expect_counter(Counter::kDuplicateRequests, 1).expect_counter(Counter::kOutOfSequence, 1);
}

// ---- Out of sequence --------------------------------------------------------------------------

// IBTA vol 1, 9.7.5.2.3 and C9-114: the responder sends one NAK with the expected PSN, and then
// nothing until that PSN arrives.
TEST(Responder, NaksAGapOnceUntilTheExpectedPsnComes) {
  Script s;
  s.at(0ms).app_posts_recv(1).app_posts_recv(2).app_posts_recv(3);
  s.wire_delivers(send_only(psn(0))).expect({received(1), ack(psn(0)).with_msn(1)});
  s.wire_delivers(send_only(psn(2))).expect({sequence_nak(psn(1)).with_msn(1)});
  s.wire_delivers(send_only(psn(3))).wire_delivers(send_only(psn(4))).expect_silence();
  s.wire_delivers(send_only(psn(2))).expect_silence();
  s.expect_counter(Counter::kSequenceNaksSent, 1).expect_counter(Counter::kOutOfSequence, 4);
  s.wire_delivers(send_only(psn(1))).expect({received(2), ack(psn(1)).with_msn(2)});
  s.wire_delivers(send_only(psn(3))).expect({sequence_nak(psn(2)).with_msn(2)});
  s.wire_delivers(send_only(psn(2))).expect({received(3), ack(psn(2)).with_msn(3)});
}

TEST(Responder, AcknowledgesDuplicatesWhileANakIsOutstanding) {
  Script s;
  s.at(0ms).app_posts_recv(1);
  s.wire_delivers(send_only(psn(0))).expect({received(1), ack(psn(0))});
  s.wire_delivers(send_only(psn(2))).expect({sequence_nak(psn(1))});
  s.wire_delivers(send_only(psn(0))).expect({ack(psn(0)).with_msn(1)});
  s.wire_delivers(send_only(psn(2))).expect_silence();
}

// ---- Receiver not ready -----------------------------------------------------------------------

// IBTA vol 1, 9.7.5.2.8: the NAK contains the packet's PSN and min_rnr_timer.
TEST(Responder, AnswersReceiverNotReadyUntilAReceiveIsPosted) {
  ScriptOptions options;
  options.connection.min_rnr_timer = 17;
  Script s(options);
  s.at(0ms).wire_delivers(send_only(psn(0)).of_length(4)).expect({rnr_nak(psn(0), 17).with_msn(0)});
  s.at(1ms).wire_delivers(send_only(psn(0)).of_length(4)).expect({rnr_nak(psn(0), 17).with_msn(0)});
  s.expect_counter(Counter::kRnrNaksSent, 2);
  s.at(2ms).app_posts_recv(1).expect_silence();
  s.wire_delivers(send_only(psn(0)).of_length(4)).expect({received(1), ack(psn(0)).with_msn(1)});
}

TEST(Responder, IsSilentAboutWhatFollowsARequestItWasNotReadyFor) {
  Script s(mtu(Mtu::k256));
  s.at(0ms).wire_delivers(send_first(psn(0)).of_length(256)).expect({rnr_nak(psn(0), 12)});
  s.wire_delivers(send_last(psn(1)).of_length(1)).expect_silence();
  s.app_posts_recv(1);
  s.wire_delivers(send_last(psn(1)).of_length(1)).expect_silence();
  s.wire_delivers(send_first(psn(0)).of_length(256)).expect_silence();
  s.wire_delivers(send_last(psn(1)).of_length(1)).expect({received(1).bytes(257), ack(psn(1))});
}

TEST(Responder, NaksGapsAgainAfterItBecameReady) {
  Script s;
  s.at(0ms).wire_delivers(send_only(psn(0))).expect({rnr_nak(psn(0), 12)});
  s.app_posts_recv(1).wire_delivers(send_only(psn(0))).expect({received(1), ack(psn(0))});
  s.wire_delivers(send_only(psn(2))).expect({sequence_nak(psn(1))});
}

TEST(Responder, SendsTheMinRnrTimerThatWasSetLast) {
  Script s;
  abi::QpAttr attr{};
  attr.min_rnr_timer = 3;
  s.at(0ms).app_modifies(attr, abi::kAttrMinRnrTimer);
  s.wire_delivers(send_only(psn(0))).expect({rnr_nak(psn(0), 3)});
}

// ---- RESET ------------------------------------------------------------------------------------

TEST(Responder, ForgetsAHalfReceivedMessageInReset) {
  Script s(mtu(Mtu::k256));
  s.at(0ms).app_posts_recv(1).app_posts_recv(2);
  s.wire_delivers(send_first(psn(0)).of_length(256)).expect_silence();
  // ibv_modify_qp(3): a change to RESET removes posted requests without completions.
  s.app_sets_state(QpState::kReset).expect_silence();
  s.app_connects(QpState::kRts);
  s.wire_delivers(send_only(psn(0)).of_length(1)).expect({rnr_nak(psn(0), 12).with_msn(0)});
  s.app_posts_recv(3);
  s.wire_delivers(send_only(psn(0)).of_length(1))
      .expect({received(3).bytes(1).wqe_count(3).generation(2), ack(psn(0)).with_msn(1)});
}

}  // namespace
}  // namespace rocemu::test
