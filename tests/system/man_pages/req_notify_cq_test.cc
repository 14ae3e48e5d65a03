// Tests ibv_req_notify_cq(3), sentence by sentence.
#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

class ReqNotifyCq : public ConnectedTest {
 protected:
  int request(bool solicited_only) { return ibv_req_notify_cq(cq.get(), solicited_only ? 1 : 0); }
};

// "Upon the addition of a new CQ entry to cq, a completion event will be added to the completion
// channel associated with the CQ."
TEST_F(ReqNotifyCq, ANewCompletionAddsAnEventToTheCqsChannel) {
  ASSERT_EQ(request(false), 0);
  EXPECT_FALSE(event_pending(channel.get()));
  deliver_message(1);
  EXPECT_EQ(take_event(channel.get()), cq.get());
  EXPECT_EQ(poll_for(cq.get(), 1).at(0).wr_id, 1u);
}

// Conversely, a completion without a request causes no event.
TEST_F(ReqNotifyCq, WithoutARequestACompletionCausesNoEvent) {
  deliver_message(1);
  EXPECT_FALSE(event_pending(channel.get()));
}

// "If solicited_only is zero, a completion event is generated for any new CQE": here, the
// completion of an unsolicited receive.
TEST_F(ReqNotifyCq, ARequestForAnyFiresForAnUnsolicitedReceive) {
  ASSERT_EQ(request(false), 0);
  deliver_message(1, 0);
  EXPECT_EQ(take_event(channel.get()), cq.get());
}

// A request for any completion also fires for a solicited receive.
TEST_F(ReqNotifyCq, ARequestForAnyFiresForASolicitedReceive) {
  ASSERT_EQ(request(false), 0);
  deliver_message(1, IBV_SEND_SOLICITED);
  EXPECT_EQ(take_event(channel.get()), cq.get());
}

// A request for any completion also fires for a successful send.
TEST_F(ReqNotifyCq, ARequestForAnyFiresForASuccessfulSend) {
  ASSERT_EQ(request(false), 0);
  ASSERT_EQ(post_recv(sender.get(), 1), 0);
  ASSERT_EQ(post_send(receiver.get(), 1), 0);
  EXPECT_EQ(take_event(channel.get()), cq.get());
}

// "If solicited_only is non-zero, an event is only generated for a new CQE that is considered
// solicited": "a receive completion for a message with the Solicited Event header bit set".
TEST_F(ReqNotifyCq, ARequestForSolicitedFiresForAReceiveWithTheSolicitedBit) {
  ASSERT_EQ(request(true), 0);
  deliver_message(1, IBV_SEND_SOLICITED);
  EXPECT_EQ(take_event(channel.get()), cq.get());
}

// "... or if the status is not successful": here, a receive that failed.
TEST_F(ReqNotifyCq, ARequestForSolicitedFiresForAnUnsuccessfulReceive) {
  ASSERT_EQ(post_recv(receiver.get(), 1), 0);
  ASSERT_EQ(request(true), 0);
  to_error(receiver.get());
  EXPECT_EQ(take_event(channel.get()), cq.get());
  EXPECT_EQ(poll_for(cq.get(), 1).at(0).status, IBV_WC_WR_FLUSH_ERR);
}

// "... or if the status is not successful": here, a send that failed.
TEST_F(ReqNotifyCq, ARequestForSolicitedFiresForAnUnsuccessfulSend) {
  ASSERT_EQ(request(true), 0);
  to_error(receiver.get());
  ASSERT_EQ(post_send(receiver.get(), 1), 0);
  EXPECT_EQ(take_event(channel.get()), cq.get());
  EXPECT_EQ(poll_for(cq.get(), 1).at(0).status, IBV_WC_WR_FLUSH_ERR);
}

// "All other successful receive completions ... [are] unsolicited."
TEST_F(ReqNotifyCq, ARequestForSolicitedSleepsThroughAReceiveWithoutTheBit) {
  ASSERT_EQ(request(true), 0);
  deliver_message(1, 0);
  EXPECT_FALSE(event_pending(channel.get()));
  deliver_message(2, IBV_SEND_SOLICITED);  // the request is still in force
  EXPECT_EQ(take_event(channel.get()), cq.get());
}

// "... or any successful send completion is unsolicited", even if the message has the solicited
// bit.
TEST_F(ReqNotifyCq, ARequestForSolicitedSleepsThroughASuccessfulSend) {
  ASSERT_EQ(request(true), 0);
  ASSERT_EQ(post_recv(sender.get(), 1), 0);
  ASSERT_EQ(post_send(receiver.get(), 1, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED), 0);
  EXPECT_EQ(poll_for(cq.get(), 1).at(0).status, IBV_WC_SUCCESS);
  EXPECT_FALSE(event_pending(channel.get()));
}

// "The request for notification is one shot. Only one completion event will be generated for each
// call to ibv_req_notify_cq()."
TEST_F(ReqNotifyCq, IsOneShot) {
  ASSERT_EQ(request(false), 0);
  deliver_message(1);
  deliver_message(2);
  deliver_message(3);
  EXPECT_EQ(take_event(channel.get()), cq.get());
  EXPECT_FALSE(event_pending(channel.get()));
}

TEST_F(ReqNotifyCq, EachCallGivesOneEvent) {
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(request(false), 0);
    deliver_message(i);
    ASSERT_EQ(take_event(channel.get()), cq.get());
    ASSERT_FALSE(event_pending(channel.get()));
    ASSERT_EQ(poll_for(cq.get(), 1).at(0).wr_id, i);
  }
}

// Two requests before any completion are one request, which causes one event.
TEST_F(ReqNotifyCq, RepeatedRequestsDoNotAddUp) {
  ASSERT_EQ(request(false), 0);
  ASSERT_EQ(request(false), 0);
  deliver_message(1);
  EXPECT_EQ(take_event(channel.get()), cq.get());
  EXPECT_FALSE(event_pending(channel.get()));
}

// "for any NEW CQE": only completions added after the call count.
TEST_F(ReqNotifyCq, CompletionsAlreadyThereCauseNoEvent) {
  deliver_message(1);
  deliver_message(2, IBV_SEND_SOLICITED);
  ASSERT_EQ(request(false), 0);
  EXPECT_FALSE(event_pending(channel.get()));
  deliver_message(3);
  EXPECT_EQ(take_event(channel.get()), cq.get());
}

TEST_F(ReqNotifyCq, SolicitedCompletionsAlreadyThereCauseNoEvent) {
  deliver_message(1, IBV_SEND_SOLICITED);
  ASSERT_EQ(request(true), 0);
  EXPECT_FALSE(event_pending(channel.get()));
}

// IBTA vol 1, 11.4.2.2: a request for any completion widens an earlier request for solicited
// completions.
TEST_F(ReqNotifyCq, ARequestForAnyWidensAnEarlierOneForSolicited) {
  ASSERT_EQ(request(true), 0);
  ASSERT_EQ(request(false), 0);
  deliver_message(1, 0);
  EXPECT_EQ(take_event(channel.get()), cq.get());
}

// IBTA vol 1, 11.4.2.2: a request for solicited completions does not narrow an earlier request for
// any completion.
TEST_F(ReqNotifyCq, ARequestForSolicitedDoesNotNarrowAnEarlierOneForAny) {
  ASSERT_EQ(request(false), 0);
  ASSERT_EQ(request(true), 0);
  deliver_message(1, 0);
  EXPECT_EQ(take_event(channel.get()), cq.get());
  EXPECT_FALSE(event_pending(channel.get()));
}

// "returns 0 on success, or the value of errno on failure": a CQ that overran cannot notify any
// more.
TEST_F(ReqNotifyCq, ReturnsAnErrnoValueOnFailure) {
  CqPtr small = create_cq(1, channel.get());
  QpPtr qp = create_qp(small.get(), small.get());
  ASSERT_NO_FATAL_FAILURE(to_init(qp.get()));
  ASSERT_EQ(post_recv(qp.get(), 1), 0);
  ASSERT_EQ(post_recv(qp.get(), 2), 0);
  to_error(qp.get());  // two receives are flushed into a CQ for one completion
  EXPECT_EQ(take_async_event().event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(ibv_req_notify_cq(small.get(), 0), EIO);
}

}  // namespace
}  // namespace rocemu::system_test
