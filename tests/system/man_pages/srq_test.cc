// Tests ibv_create_srq(3), ibv_create_srq_ex(3), ibv_modify_srq(3), ibv_query_srq(3),
// ibv_post_srq_recv(3) and ibv_get_srq_num(3), sentence by sentence.
#include <atomic>
#include <thread>

#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

class SrqTest : public TransportTest {
 protected:
  static constexpr uint32_t kDepth = 8;

  SrqPtr make_srq(uint32_t max_wr = kDepth, uint32_t max_sge = 2) {
    ibv_srq_init_attr init{};
    init.srq_context = this;
    init.attr = {.max_wr = max_wr, .max_sge = max_sge, .srq_limit = 0};
    SrqPtr made(ibv_create_srq(pd.get(), &init));
    EXPECT_NE(made, nullptr) << std::strerror(errno);
    return made;
  }

  /// Connects two receivers that share `srq`, each with its sender.
  void connect_two_receivers() {
    srq = make_srq();
    for (int i = 0; i < 2; ++i) {
      senders[i] = make_qp({.cq = cq.get()});
      receivers[i] = make_qp({.cq = recv_cq.get(), .srq = srq.get()});
      ASSERT_NO_FATAL_FAILURE(bring_up_pair(senders[i].get(), receivers[i].get()));
    }
  }

  void SetUp() override {
    TransportTest::SetUp();
    recv_cq = create_cq(64);
  }

  /// Sends a message, and waits until it has arrived.
  void deliver(int from = 0) {
    ASSERT_EQ(post_send(senders[from].get(), 1), 0);
    ASSERT_EQ(next_status(), IBV_WC_SUCCESS);
  }

  int modify(ibv_srq_attr attr, int mask) { return ibv_modify_srq(srq.get(), &attr, mask); }
  ibv_srq_attr query() {
    ibv_srq_attr attr{};
    EXPECT_EQ(ibv_query_srq(srq.get(), &attr), 0);
    return attr;
  }

  CqPtr recv_cq;
  SrqPtr srq;
  QpPtr senders[2], receivers[2];
};

// "will update the srq_init_attr struct with the original values of the SRQ that was created; the
// values of max_wr and max_sge will be greater than or equal to the values requested", and
// "ibv_query_srq() gets the attributes".
TEST_F(SrqTest, CreateAndQueryReturnTheActualAttributes) {
  ibv_srq_init_attr init{};
  init.srq_context = &init;
  init.attr = {.max_wr = 5, .max_sge = 3, .srq_limit = 4};
  srq.reset(ibv_create_srq(pd.get(), &init));
  ASSERT_NE(srq, nullptr);
  EXPECT_GE(init.attr.max_wr, 5u);
  EXPECT_GE(init.attr.max_sge, 3u);
  EXPECT_EQ(srq->srq_context, &init);
  EXPECT_EQ(srq->pd, pd.get());
  EXPECT_EQ(srq->context, context.get());
  const ibv_srq_attr attr = query();
  EXPECT_EQ(attr.max_wr, init.attr.max_wr);
  EXPECT_EQ(attr.max_sge, init.attr.max_sge);
  EXPECT_EQ(attr.srq_limit, 0u) << "\"irrelevant for ibv_create_srq\"";
}

// "returns ... NULL if the request fails": it succeeds at the device's limits, and fails above
// them.
TEST_F(SrqTest, TheLimitsAreTheDevices) {
  ibv_device_attr device{};
  ASSERT_EQ(ibv_query_device(context.get(), &device), 0);
  const auto max_wr = static_cast<uint32_t>(device.max_srq_wr);
  const auto max_sge = static_cast<uint32_t>(device.max_srq_sge);
  ASSERT_GT(max_wr, 0u);
  ASSERT_GT(max_sge, 0u);
  const auto create = [&](uint32_t wr, uint32_t sge_count) {
    ibv_srq_init_attr init{};
    init.attr = {.max_wr = wr, .max_sge = sge_count, .srq_limit = 0};
    errno = 0;
    return SrqPtr(ibv_create_srq(pd.get(), &init));
  };
  EXPECT_NE(create(max_wr, 1), nullptr);
  EXPECT_NE(create(1, max_sge), nullptr);
  EXPECT_EQ(create(max_wr + 1, 1), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(create(1, max_sge + 1), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

// "ibv_destroy_srq() fails if any queue pair is still associated with this SRQ."
TEST_F(SrqTest, DestroyFailsWhileAQpUsesIt) {
  srq = make_srq();
  QpPtr qp = make_qp({.srq = srq.get()});
  EXPECT_EQ(ibv_destroy_srq(srq.get()), EBUSY);
  qp.reset();  // after this, the destructor of `srq` expects success
}

// ibv_dealloc_pd(3): "may fail if any other resource is still associated with the PD"
TEST_F(SrqTest, ItsProtectionDomainStays) {
  PdPtr other(ibv_alloc_pd(context.get()));
  ibv_srq_init_attr init{};
  init.attr = {.max_wr = 1, .max_sge = 1, .srq_limit = 0};
  srq.reset(ibv_create_srq(other.get(), &init));
  ASSERT_NE(srq, nullptr);
  EXPECT_EQ(ibv_dealloc_pd(other.get()), EBUSY);
  srq.reset();
}

// "posts the linked list of work requests": messages for different QPs use the requests in the
// order of the list.
TEST_F(SrqTest, ReceivesGoToWhicheverQpGetsAMessage) {
  ASSERT_NO_FATAL_FAILURE(connect_two_receivers());
  ibv_sge places[3] = {sge(1, kSlot), sge(2, kSlot), sge(3, kSlot)};
  ibv_recv_wr list[3]{};
  for (uint64_t i = 0; i < 3; ++i) {
    list[i] = {.wr_id = 10 + i,
               .next = i < 2 ? &list[i + 1] : nullptr,
               .sg_list = &places[i],
               .num_sge = 1};
  }
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_srq_recv(srq.get(), list, &bad), 0);
  std::strcpy(reinterpret_cast<char*>(slot(0)), "to whom it may");
  for (const int from : {0, 1, 0}) ASSERT_NO_FATAL_FAILURE(deliver(from));
  const auto found = poll_for(recv_cq.get(), 3);
  ASSERT_EQ(found.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found[i].status, IBV_WC_SUCCESS);
    EXPECT_EQ(found[i].wr_id, 10 + i);
    EXPECT_EQ(found[i].qp_num, receivers[i % 2]->qp_num);
    EXPECT_STREQ(reinterpret_cast<char*>(slot(1 + i)), "to whom it may");
  }
}

// "stops processing WRs from this list at the first failure (that can be detected immediately while
// requests are being posted), and returns this failing WR through bad_wr"
TEST_F(SrqTest, PostStopsAtTheFirstFailure) {
  ASSERT_NO_FATAL_FAILURE(connect_two_receivers());
  ibv_sge places[3] = {sge(1, kSlot), sge(1, 0), sge(1, 0)};
  ibv_recv_wr list[3]{};
  list[0] = {.wr_id = 1, .next = &list[1], .sg_list = places, .num_sge = 1};
  list[1] = {.wr_id = 2, .next = &list[2], .sg_list = places, .num_sge = 3};  // max_sge is 2
  list[2] = {.wr_id = 3, .next = nullptr, .sg_list = places, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_srq_recv(srq.get(), list, &bad), EINVAL);
  EXPECT_EQ(bad, &list[1]);
  ASSERT_NO_FATAL_FAILURE(deliver());
  EXPECT_EQ(poll_for(recv_cq.get(), 1).at(0).wr_id, 1u) << "what came before was posted";
}

// max_wr: "max number of outstanding work requests (WRs) in the SRQ"; a WR is outstanding until "a
// work completion has been retrieved".
TEST_F(SrqTest, IsFullUntilCompletionsAreRetrieved) {
  ASSERT_NO_FATAL_FAILURE(connect_two_receivers());
  const uint32_t depth = query().max_wr;
  for (uint32_t i = 0; i < depth; ++i) ASSERT_EQ(post_srq(srq.get(), i), 0);
  EXPECT_EQ(post_srq(srq.get(), 99), ENOMEM);
  for (const int from : {0, 1}) ASSERT_NO_FATAL_FAILURE(deliver(from));
  EXPECT_EQ(post_srq(srq.get(), 99), ENOMEM);
  EXPECT_EQ(poll_for(recv_cq.get(), 2).size(), 2u);
  EXPECT_EQ(post_srq(srq.get(), 99), 0);
  EXPECT_EQ(post_srq(srq.get(), 99), 0);
  EXPECT_EQ(post_srq(srq.get(), 99), ENOMEM);
}

// The WRs of an SRQ do not belong to the QP, so they remain when the QP is destroyed. Completions
// that can no longer be polled free their slots, too.
TEST_F(SrqTest, ContinuesWhenAQpIsDestroyed) {
  ASSERT_NO_FATAL_FAILURE(connect_two_receivers());
  const uint32_t depth = query().max_wr;
  for (uint32_t i = 0; i < depth; ++i) ASSERT_EQ(post_srq(srq.get(), i), 0);
  ASSERT_NO_FATAL_FAILURE(deliver(0));
  receivers[0].reset();
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(recv_cq.get(), 1, &wc), 0);
  EXPECT_EQ(post_srq(srq.get(), 99), 0);
  for (uint32_t i = 1; i < depth; ++i) ASSERT_NO_FATAL_FAILURE(deliver(1));
  EXPECT_EQ(poll_for(recv_cq.get(), depth - 1).size(), depth - 1);
}

// "Modifying the srq_limit arms the SRQ to produce an IBV_EVENT_SRQ_LIMIT_REACHED ... event once
// the number of WRs in the SRQ drops below srq_limit", and ibv_query_srq(3): "If the value returned
// for srq_limit is 0, then the SRQ limit reached event is not (or no longer) armed".
TEST_F(SrqTest, TheLimitEventComesOnceForEachTimeItIsArmed) {
  ASSERT_NO_FATAL_FAILURE(connect_two_receivers());
  for (uint64_t i = 0; i < 4; ++i) ASSERT_EQ(post_srq(srq.get(), i), 0);
  ASSERT_EQ(modify({.max_wr = 0, .max_sge = 0, .srq_limit = 3}, IBV_SRQ_LIMIT), 0);
  EXPECT_EQ(query().srq_limit, 3u);
  ASSERT_NO_FATAL_FAILURE(deliver());
  settle();
  EXPECT_FALSE(readable(context->async_fd)) << "3 are not below 3";
  ASSERT_NO_FATAL_FAILURE(deliver());
  const ibv_async_event event = take_async_event();
  EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event.element.srq, srq.get());
  EXPECT_EQ(query().srq_limit, 0u);
  ASSERT_NO_FATAL_FAILURE(deliver());
  settle();
  EXPECT_FALSE(readable(context->async_fd)) << "no longer armed";
  ASSERT_EQ(modify({.max_wr = 0, .max_sge = 0, .srq_limit = 1}, IBV_SRQ_LIMIT), 0);
  ASSERT_NO_FATAL_FAILURE(deliver());
  EXPECT_EQ(take_async_event().event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
}

// ibv_get_async_event(3): "destroying an object (CQ, SRQ or QP) will wait for all affiliated events
// for the object to be acknowledged"
TEST_F(SrqTest, DestroyWaitsForAcknowledgement) {
  srq = make_srq();
  ASSERT_EQ(modify({.max_wr = 0, .max_sge = 0, .srq_limit = 1}, IBV_SRQ_LIMIT), 0);
  ibv_async_event event{};
  // the SRQ has no requests, which is fewer than 1
  ASSERT_EQ(ibv_get_async_event(context.get(), &event), 0);
  ASSERT_EQ(event.element.srq, srq.get());
  std::atomic<bool> destroyed = false;
  std::thread destroyer([&] {
    srq.reset();
    destroyed = true;
  });
  for (int i = 0; i < 100; ++i) settle();
  EXPECT_FALSE(destroyed);
  ibv_ack_async_event(&event);
  destroyer.join();
}

TEST_F(SrqTest, AnUnreadEventGoesWithTheSrq) {
  srq = make_srq();
  ASSERT_EQ(modify({.max_wr = 0, .max_sge = 0, .srq_limit = 1}, IBV_SRQ_LIMIT), 0);
  settle();
  EXPECT_TRUE(readable(context->async_fd));
  srq.reset();
  EXPECT_FALSE(readable(context->async_fd));
}

// "srq_attr_mask ... is either 0 or the bitwise OR", "If any of the modify attributes is invalid,
// none of the attributes will be modified."
TEST_F(SrqTest, ModifyChangesAllOrNothing) {
  srq = make_srq();
  for (uint32_t i = 0; i < 4; ++i) ASSERT_EQ(post_srq(srq.get(), i), 0);
  EXPECT_EQ(modify({}, 0), 0);
  ASSERT_EQ(modify({.max_wr = 0, .max_sge = 0, .srq_limit = 2}, IBV_SRQ_LIMIT), 0);
  const ibv_srq_attr before = query();
  EXPECT_EQ(modify({.max_wr = 0, .max_sge = 0, .srq_limit = before.max_wr + 1}, IBV_SRQ_LIMIT),
            EINVAL);
  EXPECT_EQ(modify({.max_wr = 0, .max_sge = 0, .srq_limit = 1}, IBV_SRQ_LIMIT | 1 << 7), EINVAL);
  EXPECT_EQ(query().srq_limit, 2u);
  // "Not all devices support resizing SRQs. To check ... the IBV_DEVICE_SRQ_RESIZE bit": this
  // device does not.
  ibv_device_attr device{};
  ASSERT_EQ(ibv_query_device(context.get(), &device), 0);
  EXPECT_EQ(device.device_cap_flags & IBV_DEVICE_SRQ_RESIZE, 0u);
  EXPECT_NE(modify({.max_wr = 64, .max_sge = 0, .srq_limit = 1}, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT),
            0);
  EXPECT_EQ(query().max_wr, before.max_wr);
  EXPECT_EQ(query().srq_limit, 2u);
}

// ibv_create_qp(3): "will fail if it is asked to create QP of a type other than IBV_QPT_RC or
// IBV_QPT_UD associated with an SRQ".
TEST_F(SrqTest, IsForNeitherUcNorXrcQps) {
  srq = make_srq();
  for (const ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_XRC_SEND}) {
    errno = 0;
    EXPECT_EQ(try_qp({.type = type, .srq = srq.get()}), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
}

// "The attributes max_recv_wr and max_recv_sge are ignored by ibv_create_qp() if the QP is to be
// associated with an SRQ", and such a QP has no queue to post to.
TEST_F(SrqTest, ItsQpsHaveNoReceiveQueue) {
  srq = make_srq();
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq.get();
  init.srq = srq.get();
  init.qp_type = IBV_QPT_RC;
  init.cap = {.max_send_wr = 1,
              .max_recv_wr = ~0u,
              .max_send_sge = 1,
              .max_recv_sge = ~0u,
              .max_inline_data = 0};
  QpPtr qp(ibv_create_qp(pd.get(), &init));
  ASSERT_NE(qp, nullptr);
  ASSERT_NO_FATAL_FAILURE(to_init(qp.get()));
  EXPECT_EQ(post_recv(qp.get(), 1), EINVAL);
  ibv_qp_attr attr{};
  ibv_qp_init_attr queried{};
  ASSERT_EQ(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE, &queried), 0);
  EXPECT_EQ(queried.srq, srq.get());
  EXPECT_EQ(queried.qp_type, IBV_QPT_RC);
  EXPECT_EQ(queried.cap.max_recv_wr, 0u);
}

// ibv_get_async_event(3): "IBV_EVENT_QP_LAST_WQE_REACHED: last WQE reached on a QP associated with
// an SRQ".
TEST_F(SrqTest, AQpInErrorTellsOfItsLastWqe) {
  ASSERT_NO_FATAL_FAILURE(connect_two_receivers());
  ASSERT_NO_FATAL_FAILURE(to_error(receivers[0].get()));
  const ibv_async_event event = take_async_event();
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(event.element.qp, receivers[0].get());
}

// ibv_get_srq_num(3): "return srq number associated with the given XRC shared receive queue"
TEST_F(SrqTest, OnlyXrcSrqsHaveANumber) {
  srq = make_srq();
  uint32_t number = 0;
  EXPECT_EQ(ibv_get_srq_num(srq.get(), &number), EINVAL);
}

// ibv_create_srq_ex(3): "supporting both basic and xrc modes". It refuses tag matching, and bits
// that its comp_mask does not have.
TEST_F(SrqTest, CreateExMakesBasicSrqsAndRefusesTagMatching) {
  ibv_srq_init_attr_ex init{};
  init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  init.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
  init.srq_type = IBV_SRQT_BASIC;
  init.pd = pd.get();
  srq.reset(ibv_create_srq_ex(context.get(), &init));
  EXPECT_NE(srq, nullptr);
  init.srq_type = IBV_SRQT_TM;
  errno = 0;
  EXPECT_EQ(ibv_create_srq_ex(context.get(), &init), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  init.comp_mask |= IBV_SRQ_INIT_ATTR_RESERVED;
  EXPECT_EQ(ibv_create_srq_ex(context.get(), &init), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

// ibv_post_srq_ops(3) configures tag matching only.
TEST_F(SrqTest, HasNoOperationsOfTagMatching) {
  srq = make_srq();
  ibv_ops_wr wr{};
  ibv_ops_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_srq_ops(srq.get(), &wr, &bad), EOPNOTSUPP);
}

// Several threads may call functions of libibverbs at the same time.
TEST_F(SrqTest, ThreadsPostWhileAnotherPolls) {
  constexpr uint32_t kMessages = 400;
  ASSERT_NO_FATAL_FAILURE(connect_two_receivers());
  std::atomic<uint32_t> posted = 0;
  const auto fill = [&] {
    for (uint32_t mine = 0; mine < kMessages;) {
      if (post_srq(srq.get(), mine) == 0) {
        ++mine;
        ++posted;
      } else {
        std::this_thread::yield();
      }
    }
  };
  std::thread first(fill), second(fill);
  std::thread sending([&] {
    for (uint32_t sent = 0; sent < 2 * kMessages; ++sent) {
      ASSERT_EQ(post_send(senders[sent % 2].get(), sent), 0);
      ASSERT_EQ(next_status(), IBV_WC_SUCCESS);
    }
  });
  EXPECT_EQ(poll_for(recv_cq.get(), 2 * kMessages).size(), 2 * kMessages);
  for (std::thread* thread : {&first, &second, &sending}) thread->join();
  EXPECT_EQ(posted, 2 * kMessages);
}

}  // namespace
}  // namespace rocemu::system_test
