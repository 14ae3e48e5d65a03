// Tests ibv_poll_cq(3), sentence by sentence.
#include <arpa/inet.h>

#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

class PollCq : public ConnectedTest {};

// "returns the first num_entries (or all available completions if the CQ contains fewer than this
// number)"
TEST_F(PollCq, ReturnsUpToNumEntries) {
  for (uint64_t i = 0; i < 5; ++i) deliver_message(i);
  std::array<ibv_wc, 8> wc{};
  EXPECT_EQ(ibv_poll_cq(cq.get(), 2, wc.data()), 2);
  EXPECT_EQ(wc[0].wr_id, 0u);
  EXPECT_EQ(wc[1].wr_id, 1u);
  EXPECT_EQ(ibv_poll_cq(cq.get(), 8, wc.data()), 3);
  EXPECT_EQ(wc[0].wr_id, 2u);
  EXPECT_EQ(wc[2].wr_id, 4u);
}

// "On success, returns a non-negative value equal to the number of completions found."
TEST_F(PollCq, ReturnsZeroForAnEmptyCq) {
  ibv_wc wc{};
  EXPECT_EQ(ibv_poll_cq(cq.get(), 1, &wc), 0);
}

// "Each polled completion is removed from the CQ and cannot be returned to it."
TEST_F(PollCq, APolledCompletionIsRemoved) {
  deliver_message(7);
  ibv_wc wc{};
  EXPECT_EQ(ibv_poll_cq(cq.get(), 1, &wc), 1);
  EXPECT_EQ(wc.wr_id, 7u);
  EXPECT_EQ(ibv_poll_cq(cq.get(), 1, &wc), 0);
}

// Checks the members of struct ibv_wc after a receive.
TEST_F(PollCq, DescribesASuccessfulReceive) {
  ASSERT_EQ(post_recv(receiver.get(), 0x123456789abcdef0), 0);
  ASSERT_EQ(post_send(sender.get(), 1, IBV_SEND_SIGNALED, 777), 0);
  const ibv_wc wc = poll_for(cq.get(), 1).at(0);
  EXPECT_EQ(wc.wr_id, 0x123456789abcdef0u);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
  EXPECT_EQ(wc.byte_len, 777u);
  EXPECT_EQ(wc.qp_num, receiver->qp_num);
  // "IBV_WC_WITH_IMM: immediate data value is valid": this message has none. "IBV_WC_GRH: valid
  // only for UD".
  EXPECT_EQ(wc.wc_flags, 0u);
}

// Checks the members of struct ibv_wc after a send.
TEST_F(PollCq, DescribesASuccessfulSend) {
  ASSERT_EQ(post_recv(receiver.get(), 1), 0);
  ASSERT_EQ(post_send(sender.get(), 42), 0);
  const ibv_wc wc = poll_for(other_cq.get(), 1).at(0);
  EXPECT_EQ(wc.wr_id, 42u);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_SEND);
  EXPECT_EQ(wc.qp_num, sender->qp_num);
}

// "imm_data: immediate data (in network byte order)", "IBV_WC_WITH_IMM: immediate data value is
// valid".
TEST_F(PollCq, DeliversImmediateDataInNetworkByteOrder) {
  ASSERT_EQ(post_recv(receiver.get(), 1), 0);
  ibv_sge entry = sge(0, 4);
  ibv_send_wr wr{};
  wr.sg_list = &entry;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.imm_data = htonl(0xcafe0102);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(sender.get(), &wr, &bad), 0);
  const ibv_wc wc = poll_for(cq.get(), 1).at(0);
  EXPECT_EQ(wc.wc_flags, unsigned{IBV_WC_WITH_IMM});
  EXPECT_EQ(ntohl(wc.imm_data), 0xcafe0102u);
}

// "If the completion status is other than IBV_WC_SUCCESS, only the following attributes are valid:
// wr_id, status, qp_num, and vendor_err."
TEST_F(PollCq, AnUnsuccessfulCompletionTellsWrIdStatusQpNumAndVendorError) {
  // A receive of 8 bytes for a message of 100 bytes: IBTA vol 1, 9.9.3 "local length error".
  ASSERT_EQ(post_recv(receiver.get(), 11, 1, 8), 0);
  ASSERT_EQ(post_send(sender.get(), 22, 0, 100), 0);
  const ibv_wc at_receiver = poll_for(cq.get(), 1).at(0);
  EXPECT_EQ(at_receiver.wr_id, 11u);
  EXPECT_EQ(at_receiver.status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(at_receiver.qp_num, receiver->qp_num);
  EXPECT_NE(at_receiver.vendor_err, 0u);
  // The send was not signaled, but it failed, so it has a completion.
  const ibv_wc at_sender = poll_for(other_cq.get(), 1).at(0);
  EXPECT_EQ(at_sender.wr_id, 22u);
  EXPECT_EQ(at_sender.status, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(at_sender.qp_num, sender->qp_num);
  EXPECT_NE(at_sender.vendor_err, 0u);
}

class OverrunCq : public VerbsTest {
 protected:
  /// Overruns a CQ for `capacity` completions by one completion. The completions are those of
  /// receives that are flushed in the error state.
  void overrun(int capacity) {
    cq = create_cq(capacity);
    qp = create_qp(cq.get(), cq.get());
    ASSERT_NO_FATAL_FAILURE(to_init(qp.get()));
    for (int i = 0; i <= cq->cqe; ++i) ASSERT_EQ(post_recv(qp.get(), static_cast<uint64_t>(i)), 0);
    ASSERT_NO_FATAL_FAILURE(to_error(qp.get()));
  }

  CqPtr cq;
  QpPtr qp;
};

// "In case of a CQ overrun, the async event IBV_EVENT_CQ_ERR will be triggered".
TEST_F(OverrunCq, RaisesCqErrOnce) {
  ASSERT_NO_FATAL_FAILURE(overrun(3));
  const ibv_async_event event = take_async_event();
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, cq.get());
  settle();
  EXPECT_FALSE(readable(context->async_fd));
}

// After an overrun, "the CQ cannot be used". "On failure, a negative value is returned."
TEST_F(OverrunCq, MakesPollCqFail) {
  ASSERT_NO_FATAL_FAILURE(overrun(3));
  EXPECT_EQ(take_async_event().event_type, IBV_EVENT_CQ_ERR);
  ibv_wc wc{};
  EXPECT_LT(ibv_poll_cq(cq.get(), 1, &wc), 0);
}

// IBTA vol 1, 10.2.6 and 11.6.3.1: when a CQ overruns, the QPs that use it fail.
TEST_F(OverrunCq, TakesTheQpsOfTheCqWithIt) {
  CqPtr small = create_cq(2);
  CqPtr large = create_cq();
  QpPtr sender = create_qp(large.get(), large.get());
  QpPtr receiver = create_qp(small.get(), small.get());
  ASSERT_NO_FATAL_FAILURE(connect(sender.get(), receiver.get()));
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(post_recv(receiver.get(), i), 0);
    ASSERT_EQ(post_send(sender.get(), i), 0);
  }
  ibv_async_event event = take_async_event();
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, small.get());
  event = take_async_event();
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(event.element.qp, receiver.get());
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(receiver.get(), &attr, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_ERR);
}

// IBTA vol 1, 9.9.3, class G: of messages that are posted together, those that were received are
// acknowledged. The message whose completion did not fit is not acknowledged, and the receiver
// answers nothing any more.
TEST_F(OverrunCq, LeavesTheMessageUnacknowledged) {
  CqPtr small = create_cq(2);
  CqPtr large = create_cq();
  QpPtr sender = create_qp(large.get(), large.get());
  QpPtr receiver = create_qp(small.get(), small.get());
  ASSERT_NO_FATAL_FAILURE(connect(sender.get(), receiver.get()));
  ibv_sge entry = sge(0, 4);
  ibv_send_wr wrs[5] = {};
  for (uint64_t i = 0; i < 5; ++i) {
    ASSERT_EQ(post_recv(receiver.get(), i), 0);
    wrs[i].wr_id = i;
    wrs[i].next = i < 4 ? &wrs[i + 1] : nullptr;
    wrs[i].sg_list = &entry;
    wrs[i].num_sge = 1;
    wrs[i].opcode = IBV_WR_SEND;
    wrs[i].send_flags = IBV_SEND_SIGNALED;
  }
  const auto room = static_cast<size_t>(small->cqe);
  ASSERT_LT(room, 5u);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(sender.get(), wrs, &bad), 0);
  const auto done = poll_for(large.get(), 5);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(done.at(i).status, i < room    ? IBV_WC_SUCCESS
                                 : i == room ? IBV_WC_RETRY_EXC_ERR
                                             : IBV_WC_WR_FLUSH_ERR)
        << i;
  }
}

// "The user should consume work completions at a rate that prevents CQ overrun": if a CQ is emptied
// in time, it can take any number of completions.
TEST_F(PollCq, ACqThatIsEmptiedDoesNotOverrun) {
  CqPtr small = create_cq(1);
  CqPtr large = create_cq();
  QpPtr a = create_qp(large.get(), large.get());
  QpPtr b = create_qp(small.get(), small.get());
  ASSERT_NO_FATAL_FAILURE(connect(a.get(), b.get()));
  for (uint64_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(post_recv(b.get(), i), 0);
    ASSERT_EQ(post_send(a.get(), i), 0);
    ASSERT_EQ(poll_for(large.get(), 1).size(), 1u);
    ASSERT_EQ(poll_for(small.get(), 1).at(0).wr_id, i);
  }
  EXPECT_FALSE(readable(context->async_fd));
}

// More receives are posted than the CQ has room for. A polled completion frees its entry
// immediately, even if the device has not noticed the poll yet.
TEST_F(PollCq, ACqSmallerThanItsReceiveQueueDoesNotOverrunIfEmptied) {
  CqPtr small = create_cq(1);
  CqPtr large = create_cq();
  QpPtr a = create_qp(large.get(), large.get());
  QpPtr b = create_qp(small.get(), small.get());
  ASSERT_NO_FATAL_FAILURE(connect(a.get(), b.get()));
  for (int round = 0; round < 50; ++round) {
    for (uint64_t i = 0; i < kQueueDepth; ++i) ASSERT_EQ(post_recv(b.get(), i), 0);
    for (uint64_t i = 0; i < kQueueDepth; ++i) {
      ASSERT_EQ(post_send(a.get(), i), 0);
      ASSERT_EQ(poll_for(large.get(), 1).size(), 1u);
      ASSERT_EQ(poll_for(small.get(), 1).at(0).wr_id, i);
    }
  }
  EXPECT_FALSE(readable(context->async_fd));
}

}  // namespace
}  // namespace rocemu::system_test
