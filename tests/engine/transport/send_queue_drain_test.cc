// Tests SQD, the state in which the send queue drains (IBTA vol 1, 10.3.1.4), and the ways out of
// it.
#include <gtest/gtest.h>

#include "tests/support/script.h"

namespace rocemu::test {
namespace {

using abi::EventType;
using abi::QpState;
using abi::WcStatus;

constexpr engine::Duration kTimeout = ack_timeout(14);

const Expected kDrained = event(EventType::kSqDrained, Endpoint::kQpHandle);

void drain(Script& s, bool notify, int line = __builtin_LINE()) {
  abi::QpAttr attr{};
  attr.qp_state = static_cast<uint32_t>(QpState::kSqd);
  attr.en_sqd_async_notify = notify ? 1 : 0;
  s.app_modifies(attr, abi::kAttrState | abi::kAttrEnSqdAsyncNotify, line);
}

// ibv_get_async_event(3), IBV_EVENT_SQ_DRAINED: "drained of outstanding messages in progress".
TEST(SendQueueDrain, RaisesSqDrainedOnceWhenTheLastMessageInProgressIsAcknowledged) {
  Script s;
  s.at(0ms).app_posts_send(1, 2048).app_posts_send(2).expect(
      {send_first(psn(0)), send_last(psn(1)), send_only(psn(2))});
  drain(s, true);
  s.expect_silence();
  EXPECT_EQ(s.client().query_qp(s.qpn()).sq_draining, 1);
  s.at(1ms).wire_delivers(ack(psn(1))).expect({completion(1)});
  s.at(2ms).wire_delivers(ack(psn(2))).expect({completion(2), kDrained});
  EXPECT_EQ(s.client().query_qp(s.qpn()).sq_draining, 0);
  s.at(3ms).wire_delivers(ack(psn(2))).expect_silence();
  s.at(10s).expect_silence().expect_state(QpState::kSqd);
}

TEST(SendQueueDrain, RaisesSqDrainedAtOnceWhenNothingIsInProgress) {
  Script s;
  s.at(0ms);
  drain(s, true);
  s.expect({kDrained});
}

TEST(SendQueueDrain, IsSilentWhenTheEventWasNotAskedFor) {
  Script s;
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  drain(s, false);
  s.at(1ms).wire_delivers(ack(psn(0))).expect({completion(1)});
}

// "Enable SQD.drained async notification" is an attribute of each change to SQD. A change without
// the attribute causes no event.
TEST(SendQueueDrain, DoesNotRememberTheWishForTheEventFromTheTimeBefore) {
  Script s;
  s.at(0ms);
  drain(s, true);
  s.expect({kDrained});
  s.app_sets_state(QpState::kRts).app_sets_state(QpState::kSqd).expect_silence();
}

TEST(SendQueueDrain, RaisesTheEventEachTimeItIsAskedFor) {
  Script s;
  for (int i = 0; i < 3; ++i) {
    s.at(i * 1ms);
    drain(s, true);
    s.expect({kDrained});
    s.app_sets_state(QpState::kRts).expect_silence();
  }
}

TEST(SendQueueDrain, HoldsBackNewRequestsUntilRts) {
  Script s;
  s.at(0ms).app_sets_state(QpState::kSqd).app_posts_send(1).app_posts_send(2).expect_silence();
  s.at(1s).expect_silence();
  s.app_sets_state(QpState::kRts).expect({send_only(psn(0)), send_only(psn(1))});
  s.wire_delivers(ack(psn(1))).expect({completion(1), completion(2)});
}

TEST(SendQueueDrain, RepeatsOnlyRequestsInProgress) {
  Script s;
  s.at(0ms).app_posts_send(1, 2048).expect({send_first(psn(0)), send_last(psn(1))});
  drain(s, true);
  s.app_posts_send(2).expect_silence();
  s.at(kTimeout).expect({send_first(psn(0)), send_last(psn(1))});
  s.at(kTimeout + 1ms).wire_delivers(sequence_nak(psn(1))).expect({send_last(psn(1))});
  s.at(kTimeout + 2ms).wire_delivers(ack(psn(1))).expect({completion(1), kDrained});
  s.at(1s).app_sets_state(QpState::kRts).expect({send_only(psn(2))});
  s.wire_delivers(ack(psn(2))).expect({completion(2)});
}

TEST(SendQueueDrain, WaitsForTheReceiverToo) {
  Script s;
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  drain(s, true);
  s.at(1ms).wire_delivers(rnr_nak(psn(0), 1)).expect_silence();
  s.at(1010us).expect({send_only(psn(0))});
  s.at(2ms).wire_delivers(ack(psn(0))).expect({completion(1), kDrained});
}

TEST(SendQueueDrain, FailsWhenTheRetriesAreUsedUp) {
  ScriptOptions options;
  options.connection.retry_cnt = 0;
  Script s(options);
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  drain(s, true);
  s.app_posts_send(2);
  s.at(kTimeout)
      .expect({failed(1, WcStatus::kRetryExcErr), flushed(2)})
      .expect_state(QpState::kErr);
}

TEST(SendQueueDrain, FlushesWhatItHeldBackOnTheWayToTheErrorState) {
  Script s;
  s.at(0ms).app_sets_state(QpState::kSqd).app_posts_send(1).app_posts_send(2);
  s.app_sets_state(QpState::kErr).expect({flushed(1), flushed(2)});
}

TEST(SendQueueDrain, ContinuesToReceive) {
  Script s;
  s.at(0ms).app_posts_recv(1).app_sets_state(QpState::kSqd);
  s.wire_delivers(send_only(psn(0)).with({1, 2, 3}))
      .expect({received(1).bytes(3), ack(psn(0)).with_msn(1)})
      .expect_received({1, 2, 3});
}

// IBTA vol 1, table "QP State Transition Properties", SQD to SQD: timeout and retry counts may be
// changed, and the new values apply from then on.
TEST(SendQueueDrain, AppliesTheRetryCountsThatWereChangedMeanwhile) {
  ScriptOptions options;
  options.connection.retry_cnt = 0;
  options.connection.rnr_retry = 0;
  Script s(options);
  s.at(0ms).app_sets_state(QpState::kSqd);
  abi::QpAttr attr{};
  attr.timeout = 10;
  attr.retry_cnt = 2;
  attr.rnr_retry = 1;
  s.app_modifies(attr, abi::kAttrTimeout | abi::kAttrRetryCnt | abi::kAttrRnrRetry);
  s.app_sets_state(QpState::kRts).app_posts_send(1).expect({send_only(psn(0))});
  s.at(1ms).wire_delivers(rnr_nak(psn(0), 1)).expect_silence();
  s.at(1010us).expect({send_only(psn(0))});
  s.at(1010us + ack_timeout(10)).expect({send_only(psn(0))});
  s.at(1010us + 2 * ack_timeout(10)).expect({send_only(psn(0))});
  s.at(1010us + 3 * ack_timeout(10)).expect({failed(1, WcStatus::kRetryExcErr)});
}

TEST(SendQueueDrain, FinishesALongMessageThatItInterrupted) {
  ScriptOptions options;
  options.connection.mtu = abi::Mtu::k256;
  Script s(options);
  s.at(0ms);
  // The step that posts the request sends 256 frames. The state changes before the rest is sent.
  const auto wqe = send_wqe({.wr_id = 1, .sges = {s.app().send_sge(256 * 256, 0)}}, options.cap);
  const auto more = send_wqe({.wr_id = 2, .sges = {s.app().send_sge(256 * 256, 0)}}, options.cap);
  engine::Outputs outputs;
  engine::Engine& engine = s.bench().engine();
  const engine::QpNumber qp{s.qpn()};
  engine.step(s.bench().now(), engine::PostSend{s.client().id(), qp, wqe}, outputs);
  ASSERT_EQ(outputs.list.size(), 256u);
  outputs.clear();
  s.app_sets_state(QpState::kSqd).expect_silence();
  s.bench().step(engine::PostSend{s.client().id(), qp, more});
  s.expect_silence();
  s.wire_delivers(ack(psn(255))).expect({completion(1)});
}

}  // namespace
}  // namespace rocemu::test
