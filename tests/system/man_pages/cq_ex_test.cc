// Tests ibv_create_cq_ex(3) and ibv_query_rt_values_ex(3), sentence by sentence.
#include <arpa/inet.h>

#include <ctime>

#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

using CqExPtr = std::unique_ptr<ibv_cq_ex, decltype([](ibv_cq_ex* cq) {
                                  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
                                })>;

uint64_t read_clock(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

constexpr uint64_t kClocks =
    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

class CreateCqEx : public VerbsTest {
 protected:
  static ibv_cq_init_attr_ex attributes(uint64_t wc_flags = 0) {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = 64;
    attr.wc_flags = wc_flags;
    return attr;
  }

  /// Returns the errno of the creation, or 0.
  int create_error(ibv_cq_init_attr_ex attr) {
    errno = 0;
    const CqExPtr cq(ibv_create_cq_ex(context.get(), &attr));
    return cq == nullptr ? errno : 0;
  }
};

// "Minimum number of entries required for CQ"; "may create a CQ with size greater than or equal to
// the requested size. Check the cqe attribute in the returned CQ for the actual size."
TEST_F(CreateCqEx, HasAtLeastTheEntriesRequired) {
  ibv_cq_init_attr_ex attr = attributes();
  attr.cq_context = this;
  const CqExPtr cq(ibv_create_cq_ex(context.get(), &attr));
  ASSERT_NE(cq, nullptr);
  EXPECT_GE(cq->cqe, 64);
  EXPECT_EQ(cq->cq_context, this);
  EXPECT_EQ(ibv_cq_ex_to_cq(cq.get())->cqe, cq->cqe);
}

// ibv_create_cq_ex(3): "or NULL if the request fails"
TEST_F(CreateCqEx, FailsForSizesThatCannotBe) {
  ibv_device_attr device{};
  ASSERT_EQ(ibv_query_device(context.get(), &device), 0);
  ibv_cq_init_attr_ex attr = attributes();
  attr.cqe = 0;
  EXPECT_EQ(create_error(attr), EINVAL);
  attr.cqe = static_cast<uint32_t>(device.max_cqe) + 1;
  EXPECT_EQ(create_error(attr), EINVAL);
}

// comp_vector: "Must be >= 0 and < context->num_comp_vectors."
TEST_F(CreateCqEx, FailsForACompletionVectorThatDoesNotExist) {
  ibv_cq_init_attr_ex attr = attributes();
  attr.comp_vector = static_cast<uint32_t>(context->num_comp_vectors) - 1;
  EXPECT_EQ(create_error(attr), 0);
  ++attr.comp_vector;
  EXPECT_EQ(create_error(attr), EINVAL);
}

// "The wc_flags that should be returned": a RoCE device can return those that exist for RoCE.
TEST_F(CreateCqEx, OffersTheFieldsOfRoceDevices) {
  EXPECT_EQ(create_error(attributes(IBV_WC_STANDARD_FLAGS | kClocks)), 0);
  for (const uint64_t flag :
       {IBV_WC_EX_WITH_CVLAN, IBV_WC_EX_WITH_FLOW_TAG, IBV_WC_EX_WITH_TM_INFO}) {
    EXPECT_EQ(create_error(attributes(flag)), EOPNOTSUPP) << flag;
  }
  EXPECT_EQ(create_error(attributes(uint64_t{1} << 40)), EOPNOTSUPP);
}

TEST_F(CreateCqEx, RefusesUnknownAttributes) {
  ibv_cq_init_attr_ex attr = attributes();
  attr.comp_mask = 1u << 2;
  EXPECT_EQ(create_error(attr), EOPNOTSUPP);
  // IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN is refused, since completions are never overwritten.
  attr = attributes();
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  EXPECT_EQ(create_error(attr), EOPNOTSUPP);
  attr.flags = 1u << 7;
  EXPECT_EQ(create_error(attr), EOPNOTSUPP);
  // comp_mask is a "compatibility mask": members whose bit is not set are ignored.
  attr.comp_mask = 0;
  EXPECT_EQ(create_error(attr), 0);
}

// "Parent domain to be used by this CQ": a protection domain that is no parent domain is refused.
TEST_F(CreateCqEx, AcceptsOnlyAParentDomain) {
  ibv_cq_init_attr_ex attr = attributes();
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  EXPECT_EQ(create_error(attr), EINVAL);
  attr.parent_domain = pd.get();
  EXPECT_EQ(create_error(attr), EINVAL);
  ibv_parent_domain_init_attr init{};
  init.pd = pd.get();
  const PdPtr parent(ibv_alloc_parent_domain(context.get(), &init));
  ASSERT_NE(parent, nullptr);
  attr.parent_domain = parent.get();
  EXPECT_EQ(create_error(attr), 0);
}

/// Two connected QPs; the receiver's completions go to an extended CQ.
class PollCqEx : public CreateCqEx {
 protected:
  void connect_to(ibv_cq_init_attr_ex attr) {
    cq.reset(ibv_create_cq_ex(context.get(), &attr));
    ASSERT_NE(cq, nullptr) << std::strerror(errno);
    send_cq = create_cq();
    sender = create_qp(send_cq.get(), send_cq.get());
    receiver = create_qp(ibv_cq_ex_to_cq(cq.get()), ibv_cq_ex_to_cq(cq.get()));
    ASSERT_TRUE(sender && receiver);
    ASSERT_NO_FATAL_FAILURE(connect(sender.get(), receiver.get()));
  }

  void deliver(uint64_t wr_id, uint32_t length = 16) {
    ASSERT_EQ(post_recv(receiver.get(), wr_id), 0);
    ASSERT_EQ(post_send(sender.get(), wr_id, IBV_SEND_SIGNALED, length), 0);
    ASSERT_EQ(poll_for(send_cq.get(), 1).size(), 1u);
    settle();
  }

  int start_poll() {
    ibv_poll_cq_attr attr{};
    return ibv_start_poll(cq.get(), &attr);
  }

  CqExPtr cq;
  CqPtr send_cq;
  QpPtr sender, receiver;
};

// "When no completions are available on the CQ, ENOENT is returned, but the CQ remains in a valid
// state."
TEST_F(PollCqEx, OfAnEmptyCqSaysSoAndCanBeRepeated) {
  ASSERT_NO_FATAL_FAILURE(connect_to(attributes()));
  EXPECT_EQ(start_poll(), ENOENT);
  EXPECT_EQ(start_poll(), ENOENT);
  ASSERT_NO_FATAL_FAILURE(deliver(7));
  ASSERT_EQ(start_poll(), 0);
  EXPECT_EQ(cq->wr_id, 7u);
  EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
  ibv_end_poll(cq.get());
}

TEST_F(PollCqEx, WithAnExtensionThatIsNotKnownFails) {
  ASSERT_NO_FATAL_FAILURE(connect_to(attributes()));
  ibv_poll_cq_attr attr{.comp_mask = 1};
  EXPECT_EQ(ibv_start_poll(cq.get(), &attr), EINVAL);
  EXPECT_EQ(start_poll(), ENOENT);
}

// "start_poll and next_poll advances this iterator"; "After calling this function, the user should
// start a new batch by calling start_poll."
TEST_F(PollCqEx, GoesThroughTheCompletionsInBatches) {
  ASSERT_NO_FATAL_FAILURE(connect_to(attributes()));
  for (uint64_t i = 1; i <= 4; ++i) ASSERT_NO_FATAL_FAILURE(deliver(i));
  ASSERT_EQ(start_poll(), 0);
  EXPECT_EQ(cq->wr_id, 1u);
  ASSERT_EQ(ibv_next_poll(cq.get()), 0);
  EXPECT_EQ(cq->wr_id, 2u);
  ibv_end_poll(cq.get());
  ASSERT_EQ(start_poll(), 0);
  EXPECT_EQ(cq->wr_id, 3u);
  ASSERT_EQ(ibv_next_poll(cq.get()), 0);
  EXPECT_EQ(cq->wr_id, 4u);
  EXPECT_EQ(ibv_next_poll(cq.get()), ENOENT);
  ibv_end_poll(cq.get());
  EXPECT_EQ(start_poll(), ENOENT);
}

// Polling a batch frees entries of the CQ, so more completions than it holds can pass through it.
TEST_F(PollCqEx, FreesTheEntriesOfTheCq) {
  ibv_cq_init_attr_ex attr = attributes();
  attr.cqe = 2;
  ASSERT_NO_FATAL_FAILURE(connect_to(attr));
  for (uint64_t i = 0; i < 3 * static_cast<uint64_t>(cq->cqe); ++i) {
    ASSERT_NO_FATAL_FAILURE(deliver(i));
    ASSERT_EQ(start_poll(), 0);
    ASSERT_EQ(cq->wr_id, i);
    ibv_end_poll(cq.get());
  }
}

TEST_F(PollCqEx, HasTheFieldsOfAReceive) {
  ASSERT_NO_FATAL_FAILURE(connect_to(attributes(IBV_WC_STANDARD_FLAGS)));
  ASSERT_EQ(post_recv(receiver.get(), 5), 0);
  ibv_sge entry = sge(0, 123);
  ibv_send_wr wr{};
  wr.sg_list = &entry;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.imm_data = htonl(0xcafe0102);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(sender.get(), &wr, &bad), 0);
  ASSERT_EQ(poll_for(send_cq.get(), 1).size(), 1u);
  settle();
  ASSERT_EQ(start_poll(), 0);
  EXPECT_EQ(cq->wr_id, 5u);
  EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_wc_read_opcode(cq.get()), IBV_WC_RECV);
  EXPECT_EQ(ibv_wc_read_byte_len(cq.get()), 123u);
  EXPECT_EQ(ntohl(ibv_wc_read_imm_data(cq.get())), 0xcafe0102u);
  EXPECT_EQ(ibv_wc_read_wc_flags(cq.get()), unsigned{IBV_WC_WITH_IMM});
  EXPECT_EQ(ibv_wc_read_qp_num(cq.get()), receiver->qp_num);
  EXPECT_EQ(ibv_wc_read_slid(cq.get()), 0u);
  EXPECT_EQ(ibv_wc_read_sl(cq.get()), 0);
  EXPECT_EQ(ibv_wc_read_dlid_path_bits(cq.get()), 0);
  ibv_end_poll(cq.get());
}

TEST_F(PollCqEx, HasTheVendorErrorOfAFailure) {
  ASSERT_NO_FATAL_FAILURE(connect_to(attributes()));
  ASSERT_EQ(post_recv(receiver.get(), 5, 1, 8), 0);  // shorter than the message
  ASSERT_EQ(post_send(sender.get(), 1, 0, 100), 0);
  ASSERT_EQ(poll_for(send_cq.get(), 1).size(), 1u);
  settle();
  ASSERT_EQ(start_poll(), 0);
  EXPECT_EQ(cq->status, IBV_WC_LOC_LEN_ERR);
  EXPECT_NE(ibv_wc_read_vendor_err(cq.get()), 0u);
  ibv_end_poll(cq.get());
}

// These are all one clock: "Get the completion timestamp from the current completion in HCA clock
// units", "and convert it from HCA clock units to wall clock nanoseconds", and the device's "HW raw
// clock".
TEST_F(PollCqEx, ReadsTimestampsOfTheDevicesClockAndTheWallClock) {
  ASSERT_NO_FATAL_FAILURE(connect_to(attributes(kClocks)));
  const auto raw_clock = [&] {
    ibv_values_ex values{};
    values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    EXPECT_EQ(ibv_query_rt_values_ex(context.get(), &values), 0);
    EXPECT_EQ(values.comp_mask, unsigned{IBV_VALUES_MASK_RAW_CLOCK});
    return static_cast<uint64_t>(values.raw_clock.tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(values.raw_clock.tv_nsec);
  };
  const uint64_t wall_before = read_clock(CLOCK_REALTIME);
  const uint64_t raw_before = raw_clock();
  for (uint64_t i = 0; i < 2; ++i) ASSERT_NO_FATAL_FAILURE(deliver(i));
  const uint64_t raw_after = raw_clock();
  const uint64_t wall_after = read_clock(CLOCK_REALTIME);
  ASSERT_EQ(start_poll(), 0);
  const uint64_t first = ibv_wc_read_completion_ts(cq.get());
  const uint64_t first_wall = ibv_wc_read_completion_wallclock_ns(cq.get());
  ASSERT_EQ(ibv_next_poll(cq.get()), 0);
  const uint64_t second = ibv_wc_read_completion_ts(cq.get());
  ibv_end_poll(cq.get());
  EXPECT_LE(raw_before, first);
  EXPECT_LT(first, second);
  EXPECT_LE(second, raw_after);
  // The two clocks cannot be read at exactly the same time, so their difference may be off by 50
  // ms.
  constexpr uint64_t kSlack = 50'000'000;
  EXPECT_LE(wall_before, first_wall + kSlack);
  EXPECT_LE(first_wall, wall_after + kSlack);
}

// ibv_query_device_ex(3): "Completion timestamp mask (0 = unsupported)", "The frequency (in kHZ) of
// the HCA (0 = unsupported)".
TEST_F(PollCqEx, TheDeviceSaysHowItsClockTicks) {
  ibv_device_attr_ex attr{};
  ASSERT_EQ(ibv_query_device_ex(context.get(), nullptr, &attr), 0);
  EXPECT_EQ(attr.completion_timestamp_mask, UINT64_MAX);
  EXPECT_EQ(attr.hca_core_clock, 1'000'000u);  // nanoseconds
}

// ibv_query_rt_values_ex(3): "has to query this value somehow and mark the queried values in the
// comp_mask field"
TEST_F(PollCqEx, OnlyKnownRealTimeValuesAreMarked) {
  ibv_values_ex values{};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK | IBV_VALUES_MASK_RESERVED;
  EXPECT_EQ(ibv_query_rt_values_ex(context.get(), &values), 0);
  EXPECT_EQ(values.comp_mask, unsigned{IBV_VALUES_MASK_RAW_CLOCK});
}

// "This CQ is used from a single threaded, thus no locking is required"
TEST_F(PollCqEx, WorksWithoutLocks) {
  ibv_cq_init_attr_ex attr = attributes();
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
  ASSERT_NO_FATAL_FAILURE(connect_to(attr));
  ASSERT_NO_FATAL_FAILURE(deliver(3));
  ASSERT_EQ(start_poll(), 0);
  EXPECT_EQ(cq->wr_id, 3u);
  ibv_end_poll(cq.get());
}

// ibv_poll_cq(3), ibv_req_notify_cq(3), and events also work with an extended CQ.
TEST_F(PollCqEx, IsACqToAllOtherVerbs) {
  const ChannelPtr channel = create_channel();
  ibv_cq_init_attr_ex attr = attributes();
  attr.channel = channel.get();
  ASSERT_NO_FATAL_FAILURE(connect_to(attr));
  ibv_cq* plain = ibv_cq_ex_to_cq(cq.get());
  ASSERT_EQ(ibv_req_notify_cq(plain, 0), 0);
  ASSERT_NO_FATAL_FAILURE(deliver(3));
  EXPECT_EQ(take_event(channel.get()), plain);
  EXPECT_EQ(poll_for(plain, 1).at(0).wr_id, 3u);
  EXPECT_EQ(start_poll(), ENOENT);
  receiver.reset();
  cq.reset();
}

// As with ibv_poll_cq(3), completions from the time before a QP was destroyed or reset are not
// found.
TEST_F(PollCqEx, DoesNotFindTheCompletionsOfAQpThatIsGone) {
  ASSERT_NO_FATAL_FAILURE(connect_to(attributes()));
  ASSERT_NO_FATAL_FAILURE(deliver(1));
  receiver.reset();
  EXPECT_EQ(start_poll(), ENOENT);
}

}  // namespace
}  // namespace rocemu::system_test
