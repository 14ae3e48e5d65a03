// Tests the end of a connection (IBTA vol 1, 12.9): DREQ, DREP and timewait. Also tests requests
// for features that RoCE does not have.
#include <gtest/gtest.h>

#include "tests/support/cm_script.h"

namespace rocemu::test {
namespace {

using engine::Counter;
using wire::CmRejected;
using wire::CmRejectReason;

TEST(CmRelease, IsDreqDrepAndTimewait) {
  CmScript s;
  s.at(0ms).reach_established_active();
  s.at(1s).app_disconnects().expect_sent_mads(
      {{.transaction_id = uint64_t{2} << 32 | s.id().value, .message = s.our_dreq()}});
  s.at(2s).wire_delivers(s.peer_drep()).expect_told({EventKind::kDisconnectReply});
  s.at(2s + kCmTimewait - 1ns).expect_silence();
  EXPECT_TRUE(s.manager().exists(s.id()));
  s.at(2s + kCmTimewait).expect_told({EventKind::kTimewaitExit});
  EXPECT_EQ(s.last_event().context, CmScript::kContext);
  EXPECT_FALSE(s.manager().exists(s.id()));
  EXPECT_EQ(s.manager().size(), 0u);
}

TEST(CmRelease, ADreqIsAnsweredWhenTheConsumerAnswers) {
  CmScript s;
  s.at(0ms).reach_established_passive();
  wire::CmDreq dreq = s.peer_dreq();
  dreq.private_data.fill(0x44);
  s.at(1s)
      .wire_delivers({.transaction_id = 77, .message = dreq})
      .expect_told({EventKind::kDisconnectRequest});
  EXPECT_FALSE(s.last_event().answered);
  EXPECT_EQ(std::get<wire::CmDreq>(*s.last_event().message), dreq);
  s.at(50s).expect_silence();
  s.app_answers_disconnect().expect_sent_mads({{.transaction_id = 77, .message = s.our_drep()}});
  s.at(50s + kCmTimewait).expect_told({EventKind::kTimewaitExit});
}

TEST(CmRelease, HasPrivateDataBothWays) {
  const std::vector<uint8_t> data = pattern(225);
  CmScript s;
  s.at(0ms).reach_established_active();
  s.app([&](auto& manager) {
    EXPECT_EQ(manager.disconnect(s.id(), std::span(data).first(221)), EINVAL);
    EXPECT_EQ(manager.disconnect(s.id(), std::span(data).first(220)), 0);
  });
  wire::CmDreq dreq = s.our_dreq();
  std::copy_n(data.begin(), 220, dreq.private_data.begin());
  s.expect_sent({dreq});

  CmScript t;
  t.at(0ms).reach_established_passive();
  t.wire_delivers(t.peer_dreq()).expect_told({EventKind::kDisconnectRequest});
  t.app([&](auto& manager) {
    EXPECT_EQ(manager.answer_disconnect(t.id(), data), EINVAL);
    EXPECT_EQ(manager.answer_disconnect(t.id(), std::span(data).first(224)), 0);
  });
  wire::CmDrep drep = t.our_drep();
  std::copy_n(data.begin(), 224, drep.private_data.begin());
  t.expect_sent({drep});
}

TEST(CmRelease, IsOnlyForAnEstablishedConnection) {
  CmScript s;
  const auto refused = [&](int line = __builtin_LINE()) {
    s.app([&](auto& manager) {
       EXPECT_EQ(manager.disconnect(s.id()), EINVAL) << "line " << line;
       EXPECT_EQ(manager.answer_disconnect(s.id()), EINVAL) << "line " << line;
     }).expect_silence(line);
  };
  refused();
  s.app_connects().expect_sent({s.our_req()});
  refused();
  s.wire_delivers(s.peer_rep()).expect_told({EventKind::kReply});
  refused();
  s.app_is_ready().expect_sent({s.our_rtu()});
  s.app_disconnects().expect_sent({s.our_dreq()});
  refused();
  s.wire_delivers(s.peer_drep()).expect_told({EventKind::kDisconnectReply});
  refused();
}

// ---- Lost and repeated messages ----

TEST(CmRelease, ADreqIsRepeatedUntilItsRetriesAreUsedUp) {
  CmScript s;
  s.at(0ms).reach_established_active();
  s.app_disconnects().expect_sent({s.our_dreq()});
  for (int i = 1; i <= 15; ++i) s.at(i * kCmTimeout).expect_sent({s.our_dreq()});
  s.at(16 * kCmTimeout).expect_told({EventKind::kDisconnectError});
  s.at(16 * kCmTimeout + kCmTimewait).expect_told({EventKind::kTimewaitExit});
}

TEST(CmRelease, ARepeatedDreqIsAnsweredAgainInTimewait) {
  CmScript s;
  s.at(0ms).reach_established_passive();
  s.wire_delivers(s.peer_dreq()).expect_told({EventKind::kDisconnectRequest});
  // the program has not answered the first DREQ yet
  s.wire_delivers(s.peer_dreq()).expect_silence();
  s.app_answers_disconnect().expect_sent({s.our_drep()});
  s.at(1s).wire_delivers({.transaction_id = 99, .message = s.peer_dreq()});
  s.expect_sent_mads({{.transaction_id = 99, .message = s.our_drep()}});
}

// A DREQ for a connection that does not exist is answered, since the peer only wants the connection
// not to exist.
TEST(CmRelease, ADreqForNoConnectionIsAnswered) {
  CmScript s;
  s.at(0ms).wire_delivers({.transaction_id = 5, .message = s.peer_dreq()});
  s.expect_sent_mads({{.transaction_id = 5, .message = s.our_drep()}});
  s.reach_established_active();
  wire::CmDreq dreq = s.peer_dreq();
  dreq.local_comm_id ^= 1;  // the ID of another peer's connection
  wire::CmDrep drep = s.our_drep();
  drep.remote_comm_id = dreq.local_comm_id;
  s.wire_delivers(dreq).expect_sent({drep});
  s.app_disconnects().expect_sent({s.our_dreq()});  // ours still stands
}

TEST(CmRelease, ADreqForAnotherQpIsDropped) {
  CmScript s;
  s.at(0ms).reach_established_active();
  wire::CmDreq dreq = s.peer_dreq();
  dreq.remote_qpn ^= 1;
  s.wire_delivers(dreq).expect_silence().expect_counter(Counter::kMadsDropped, 1);
}

TEST(CmRelease, AnUnexpectedDrepIsDropped) {
  CmScript s;
  s.at(0ms).wire_delivers(s.peer_drep()).expect_silence();
  s.reach_established_active();
  s.wire_delivers(s.peer_drep()).expect_silence();
  s.app_disconnects().expect_sent({s.our_dreq()});
  wire::CmDrep drep = s.peer_drep();
  drep.local_comm_id ^= 1;
  s.wire_delivers(drep).expect_silence();
  s.wire_delivers(s.peer_drep()).expect_told({EventKind::kDisconnectReply});
  s.wire_delivers(s.peer_drep()).expect_silence();
  s.expect_counter(Counter::kMadsDropped, 4);
}

TEST(CmRelease, TwoDreqsThatCrossAreBothAnswered) {
  CmScript s;
  s.at(0ms).reach_established_active();
  s.app_disconnects().expect_sent({s.our_dreq()});
  s.wire_delivers({.transaction_id = 42, .message = s.peer_dreq()})
      .expect_sent_mads({{.transaction_id = 42, .message = s.our_drep()}})
      .expect_told({EventKind::kDisconnectRequest});
  EXPECT_TRUE(s.last_event().answered);
  s.wire_delivers(s.peer_drep()).expect_silence();
  s.at(kCmTimewait).expect_told({EventKind::kTimewaitExit});
}

TEST(CmRelease, ADreqInsteadOfALostRtuEndsTheConnection) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  s.app_accepts().expect_sent({s.our_rep()});
  s.wire_delivers(s.peer_dreq()).expect_told({EventKind::kDisconnectRequest});
  s.at(100s).expect_silence();  // the REP is not repeated
  s.app_answers_disconnect().expect_sent({s.our_drep()});
}

TEST(CmRelease, ADreqBeforeTheReplyIsDropped) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  wire::CmDreq dreq = s.peer_dreq();
  dreq.remote_qpn = 0;
  s.wire_delivers(dreq).expect_silence();
  s.app_accepts().expect_sent({s.our_rep()});
}

TEST(CmRelease, ARejInsteadOfADrepEndsTheConnection) {
  CmScript s;
  s.at(0ms).reach_established_active();
  s.app_disconnects().expect_sent({s.our_dreq()});
  s.wire_delivers(s.peer_rej(CmRejectReason::kInvalidCommId, CmRejected::kNoMessage))
      .expect_told({EventKind::kRejected});
  s.at(kCmTimewait).expect_told({EventKind::kTimewaitExit});
}

// The time in timewait is at most 34 s, even if the peer states a longer packet lifetime.
TEST(CmRelease, TimewaitHasAnEnd) {
  CmScript s;
  s.at(0ms).app_listens();
  wire::CmReq req = s.peer_req();
  req.primary.local_ack_timeout = 31;
  s.wire_delivers(req).expect_told({EventKind::kRequest});
  s.app_accepts().expect_sent({s.our_rep()});
  s.wire_delivers(s.peer_rtu()).expect_told({EventKind::kEstablished});
  s.wire_delivers(s.peer_dreq()).expect_told({EventKind::kDisconnectRequest});
  s.app_answers_disconnect().expect_sent({s.our_drep()});
  s.at(engine::Duration(int64_t{4096} << 23)).expect_told({EventKind::kTimewaitExit});
}

// ---- Destroyed ----

TEST(CmRelease, AConnectionThatIsDestroyedSendsADreqAndRepeatsIt) {
  CmScript s;
  s.at(0ms).reach_established_active();
  s.app_destroys().expect_sent({s.our_dreq()});
  s.at(kCmTimeout).expect_sent({s.our_dreq()});
  s.wire_delivers(s.peer_drep()).expect_silence();
  EXPECT_EQ(s.manager().size(), 1u);
  s.at(kCmTimeout + kCmTimewait).expect_silence();
  EXPECT_EQ(s.manager().size(), 0u);
}

TEST(CmRelease, ADreqForAConnectionThatIsBeingDestroyedIsAnswered) {
  CmScript s;
  s.at(0ms).reach_established_active();
  s.app_destroys().expect_sent({s.our_dreq()});
  s.wire_delivers(s.peer_dreq()).expect_sent({s.our_drep()}).expect_silence();
}

TEST(CmRelease, ADreqThatIsDestroyedUnansweredIsAnswered) {
  CmScript s;
  s.at(0ms).reach_established_passive();
  s.wire_delivers(s.peer_dreq()).expect_told({EventKind::kDisconnectRequest});
  s.app_destroys().expect_sent({s.our_drep()});
  s.wire_delivers(s.peer_dreq()).expect_sent({s.our_drep()});
  s.at(kCmTimewait).expect_silence();
  EXPECT_EQ(s.manager().size(), 0u);
}

TEST(CmRelease, AConnectionThatIsDestroyedAfterItsDreqEndsByItself) {
  CmScript s;
  s.at(0ms).reach_established_active();
  s.app_disconnects().expect_sent({s.our_dreq()});
  s.app_destroys().expect_silence();
  for (int i = 1; i <= 15; ++i) s.at(i * kCmTimeout).expect_sent({s.our_dreq()});
  s.at(1000s).expect_silence();
  EXPECT_EQ(s.manager().size(), 0u);
}

TEST(CmRelease, AConnectionThatIsDestroyedInTimewaitSendsNothing) {
  CmScript s;
  s.at(0ms).reach_established_active();
  s.app_disconnects().expect_sent({s.our_dreq()});
  s.wire_delivers(s.peer_drep()).expect_told({EventKind::kDisconnectReply});
  s.app_destroys().expect_silence();
  s.app([&](auto& manager) { manager.destroy(s.id()); }).expect_silence();
  s.at(1000s).expect_silence();
  EXPECT_EQ(s.manager().size(), 0u);
}

// ---- Alternate paths: RoCE has none (annex A17) ----

wire::CmLap peer_lap(const CmScript& s) {
  return {.local_comm_id = CmScript::kPeerId,
          .remote_comm_id = s.id().value,
          .remote_qpn = CmScript::kOurQpn,
          .remote_cm_response_timeout = 20};
}

TEST(CmAlternatePath, IsRefusedWithAnApr) {
  CmScript s;
  s.at(0ms).reach_established_passive();
  wire::CmApr apr{.local_comm_id = s.id().value,
                  .remote_comm_id = CmScript::kPeerId,
                  .status = static_cast<uint8_t>(wire::AprStatus::kNotSupported)};
  s.wire_delivers({.transaction_id = 8, .message = peer_lap(s)});
  s.expect_sent_mads({{.transaction_id = 8, .message = apr}});
  s.expect_told({EventKind::kAlternatePathRequest});
  wire::CmLap lap = peer_lap(s);
  lap.remote_qpn ^= 1;
  apr.status = static_cast<uint8_t>(wire::AprStatus::kQpnMismatch);
  s.wire_delivers(lap).expect_sent({apr}).expect_told({EventKind::kAlternatePathRequest});
}

TEST(CmAlternatePath, IsRejectedWithoutAConnection) {
  CmScript s;
  s.at(0ms).wire_delivers(peer_lap(s));
  s.expect_sent({s.our_rej(CmRejectReason::kInvalidCommId, CmRejected::kNoMessage)});
  s.app_connects().expect_sent({s.our_req()});
  s.wire_delivers(s.peer_rep()).expect_told({EventKind::kReply});
  s.wire_delivers(peer_lap(s)).expect_silence();  // the connection is not established yet
}

TEST(CmAlternatePath, AnUnrequestedAnswerIsDropped) {
  CmScript s;
  s.at(0ms).reach_established_active();
  s.wire_delivers(wire::CmApr{.local_comm_id = CmScript::kPeerId, .remote_comm_id = s.id().value});
  s.expect_silence().expect_counter(Counter::kMadsDropped, 1);
}

}  // namespace
}  // namespace rocemu::test
