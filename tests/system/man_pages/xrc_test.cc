// Tests the extended reliable connection, sentence by sentence: ibv_open_xrcd(3),
// ibv_create_srq_ex(3), ibv_create_qp_ex(3), ibv_open_qp(3) and ibv_get_srq_num(3).
#include <fcntl.h>

#include <cstdio>
#include <set>

#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

XrcdPtr open_xrcd(ibv_context* context, int fd, int oflags) {
  ibv_xrcd_init_attr init{};
  init.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  init.fd = fd;
  init.oflags = oflags;
  errno = 0;
  return XrcdPtr(ibv_open_xrcd(context, &init));
}

using FilePtr = std::unique_ptr<FILE, int (*)(FILE*)>;

class XrcdTest : public TransportTest {
 protected:
  FilePtr file{std::tmpfile(), &std::fclose};
  int fd() { return fileno(file.get()); }
};

// "O_CREAT: Indicates that an XRCD should be created and associated with the inode referenced by
// the given fd. If the XRCD exists, this flag has no effect".
TEST_F(XrcdTest, AFileNamesADomain) {
  EXPECT_EQ(open_xrcd(context.get(), fd(), 0), nullptr) << "there is none yet";
  const XrcdPtr first = open_xrcd(context.get(), fd(), O_CREAT);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->context, context.get());
  EXPECT_NE(open_xrcd(context.get(), fd(), O_CREAT), nullptr);
  EXPECT_NE(open_xrcd(context.get(), fd(), 0), nullptr);
}

// "If O_EXCL and O_CREAT are set, open will fail if an XRCD associated with the inode exists."
TEST_F(XrcdTest, ExclusiveCreationFailsIfThereIsOne) {
  const XrcdPtr first = open_xrcd(context.get(), fd(), O_CREAT | O_EXCL);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(open_xrcd(context.get(), fd(), O_CREAT | O_EXCL), nullptr);
}

// "If this is the last reference, the XRCD will be destroyed."
TEST_F(XrcdTest, TheLastReferenceEndsIt) {
  XrcdPtr first = open_xrcd(context.get(), fd(), O_CREAT);
  XrcdPtr second = open_xrcd(context.get(), fd(), 0);
  ASSERT_TRUE(first && second);
  first.reset();
  EXPECT_NE(open_xrcd(context.get(), fd(), 0), nullptr);
  second.reset();
  EXPECT_EQ(open_xrcd(context.get(), fd(), 0), nullptr);
}

// "If fd equals -1, no inode is associated with the XRCD."
TEST_F(XrcdTest, WithoutAFileEachIsItsOwn) {
  const XrcdPtr one = open_xrcd(context.get(), -1, O_CREAT);
  const XrcdPtr other = open_xrcd(context.get(), -1, O_CREAT);
  EXPECT_TRUE(one && other);
  EXPECT_EQ(open_xrcd(context.get(), -1, 0), nullptr);
}

TEST_F(XrcdTest, WantsAFileThatIsOpenAndAllItsArguments) {
  EXPECT_EQ(open_xrcd(context.get(), 987654, O_CREAT), nullptr);
  EXPECT_EQ(errno, EBADF);
  ibv_xrcd_init_attr init{};
  init.comp_mask = IBV_XRCD_INIT_ATTR_FD;
  init.fd = -1;
  EXPECT_EQ(ibv_open_xrcd(context.get(), &init), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

/// An XRC domain with an SRQ and a target QP, and an initiator QP that is connected to the target.
class XrcTest : public TransportTest {
 protected:
  void SetUp() override {
    TransportTest::SetUp();
    recv_cq = create_cq();
    xrcd = open_xrcd(context.get(), -1, O_CREAT);
    ASSERT_NE(xrcd, nullptr) << std::strerror(errno);
    srq = make_srq();
    ASSERT_NE(srq, nullptr);
    initiator = make_qp({.type = IBV_QPT_XRC_SEND});
    target = make_qp({.type = IBV_QPT_XRC_RECV, .xrcd = xrcd.get()});
    ASSERT_TRUE(initiator && target);
    ASSERT_NO_FATAL_FAILURE(bring_up_pair(initiator.get(), target.get()));
  }

  ibv_srq_init_attr_ex srq_wish() {
    ibv_srq_init_attr_ex init{};
    init.srq_context = this;
    init.attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0};
    init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                     IBV_SRQ_INIT_ATTR_CQ;
    init.srq_type = IBV_SRQT_XRC;
    init.pd = pd.get();
    init.xrcd = xrcd.get();
    init.cq = recv_cq.get();
    return init;
  }

  SrqPtr make_srq() {
    ibv_srq_init_attr_ex init = srq_wish();
    SrqPtr made(ibv_create_srq_ex(context.get(), &init));
    EXPECT_NE(made, nullptr) << std::strerror(errno);
    return made;
  }

  static uint32_t number_of(ibv_srq* one) {
    uint32_t number = 0;
    EXPECT_EQ(ibv_get_srq_num(one, &number), 0);
    return number;
  }

  int send_to(ibv_srq* to, uint64_t wr_id) {
    ibv_send_wr wr = request(IBV_WR_SEND, wr_id);
    wr.qp_type.xrc.remote_srqn = number_of(to);
    return post(initiator.get(), wr);
  }

  QpPtr open_qp(uint32_t number, ibv_xrcd* domain, ibv_qp_type type = IBV_QPT_XRC_RECV) {
    ibv_qp_open_attr attr{};
    attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE |
                     IBV_QP_OPEN_ATTR_CONTEXT;
    attr.qp_num = number;
    attr.xrcd = domain;
    attr.qp_type = type;
    attr.qp_context = this;
    errno = 0;
    return QpPtr(ibv_open_qp(context.get(), &attr));
  }

  CqPtr recv_cq;
  XrcdPtr xrcd;
  SrqPtr srq;
  QpPtr initiator, target;
};

TEST_F(XrcTest, AMessageGoesIntoTheSrqThatItNames) {
  const SrqPtr other = make_srq();
  ASSERT_NE(number_of(srq.get()), number_of(other.get()));
  ASSERT_EQ(post_srq(srq.get(), 10, 1), 0);
  ASSERT_EQ(post_srq(other.get(), 20, 2), 0);
  std::strcpy(reinterpret_cast<char*>(slot(0)), "by number");
  ASSERT_EQ(send_to(other.get(), 1), 0);
  ASSERT_EQ(send_to(srq.get(), 2), 0);
  const auto found = poll_for(recv_cq.get(), 2);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].wr_id, 20u);
  EXPECT_EQ(found[1].wr_id, 10u);
  for (const ibv_wc& wc : found) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_RECV);
    EXPECT_EQ(wc.qp_num, target->qp_num);
  }
  EXPECT_STREQ(reinterpret_cast<char*>(slot(2)), "by number");
  EXPECT_EQ(poll_for(cq.get(), 2).size(), 2u);
}

TEST_F(XrcTest, RdmaNeedsNoReceive) {
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    std::memset(slot(opcode == IBV_WR_RDMA_WRITE ? 0 : 3), 'x', 16);
    ibv_send_wr wr = request(opcode, 1);
    wr.wr.rdma = {reinterpret_cast<uint64_t>(slot(3)), remote_mr->rkey};
    wr.qp_type.xrc.remote_srqn = number_of(srq.get());
    ASSERT_EQ(post(initiator.get(), wr), 0);
    EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(slot(0), slot(3), 16), 0);
  }
}

// For the target QP, an SRQ of another XRC domain does not exist.
TEST_F(XrcTest, AMessageForAnUnknownSrqIsRefused) {
  ibv_send_wr wr = request(IBV_WR_SEND, 1);
  wr.qp_type.xrc.remote_srqn = 0xfffffe;
  ASSERT_EQ(post(initiator.get(), wr), 0);
  EXPECT_NE(next_status(), IBV_WC_SUCCESS);
}

// struct ibv_srq_init_attr_ex: an XRC SRQ is in a PD and an XRC domain, and has a CQ.
TEST_F(XrcTest, AnXrcSrqNeedsDomainsAndACq) {
  for (const uint32_t missing :
       {IBV_SRQ_INIT_ATTR_PD, IBV_SRQ_INIT_ATTR_XRCD, IBV_SRQ_INIT_ATTR_CQ}) {
    ibv_srq_init_attr_ex init = srq_wish();
    init.comp_mask &= ~missing;
    errno = 0;
    EXPECT_EQ(ibv_create_srq_ex(context.get(), &init), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
  EXPECT_EQ(srq->srq_context, this);
  EXPECT_EQ(srq->pd, pd.get());
  EXPECT_EQ(try_qp({.srq = srq.get()}), nullptr) << "an RC QP cannot use it";
}

// ibv_close_xrcd(3): "may fail if any other resource is still associated with the XRCD".
TEST_F(XrcTest, ADomainInUseIsNotClosed) {
  EXPECT_EQ(ibv_close_xrcd(xrcd.get()), EBUSY);
  target.reset();
  EXPECT_EQ(ibv_close_xrcd(xrcd.get()), EBUSY) << "the SRQ";
  srq.reset();
}

// ibv_open_xrcd(3), NOTES: "if any other resource is still associated with the XRCD being closed".
// Linux counts the SRQs and QPs of each opening (ib_uxrcd_object::refcnt, which uverbs_free_xrcd()
// checks), so it does not matter that the domain stays open elsewhere.
TEST_F(XrcTest, AnOpeningInUseIsNotClosedEvenIfTheFileIsOpenTwice) {
  const FilePtr file(std::tmpfile(), &std::fclose);
  XrcdPtr first = open_xrcd(context.get(), fileno(file.get()), O_CREAT);
  XrcdPtr second = open_xrcd(context.get(), fileno(file.get()), 0);
  ASSERT_TRUE(first && second);
  ibv_srq_init_attr_ex init = srq_wish();
  init.xrcd = first.get();
  SrqPtr in_first(ibv_create_srq_ex(context.get(), &init));
  ASSERT_NE(in_first, nullptr) << std::strerror(errno);
  EXPECT_EQ(ibv_close_xrcd(first.get()), EBUSY);
  second.reset();  // fails the test unless ibv_close_xrcd(3) succeeds: this opening has no resource
  EXPECT_EQ(ibv_close_xrcd(first.get()), EBUSY);
  in_first.reset();

  second = open_xrcd(context.get(), fileno(file.get()), 0);
  QpPtr created = make_qp({.type = IBV_QPT_XRC_RECV, .xrcd = first.get()});
  QpPtr opened = open_qp(created->qp_num, second.get());
  ASSERT_TRUE(created && opened);
  EXPECT_EQ(ibv_close_xrcd(first.get()), EBUSY);
  EXPECT_EQ(ibv_close_xrcd(second.get()), EBUSY) << "ibv_open_qp(3) associates the QP, too";
  opened.reset();
  second.reset();
  EXPECT_EQ(ibv_close_xrcd(first.get()), EBUSY);
  created.reset();
  first.reset();
}

// A creation that fails leaves nothing in the domain.
TEST_F(XrcTest, AfterAFailedCreationADomainCanBeClosed) {
  XrcdPtr other = open_xrcd(context.get(), -1, O_CREAT);
  ASSERT_NE(other, nullptr);
  ibv_srq_init_attr_ex init = srq_wish();
  init.xrcd = other.get();
  init.attr.max_wr = UINT32_MAX;
  EXPECT_EQ(ibv_create_srq_ex(context.get(), &init), nullptr);
  EXPECT_EQ(open_qp(0xfffffe, other.get()), nullptr);
  other.reset();  // fails the test unless ibv_close_xrcd(3) succeeds
}

// The CQ of an XRC SRQ is in use and cannot be destroyed.
TEST_F(XrcTest, TheCqOfAnSrqStays) {
  EXPECT_EQ(ibv_destroy_cq(recv_cq.get()), EBUSY);
  initiator.reset();
  srq.reset();
}

TEST_F(XrcTest, ATargetQpHasNoQueuesToPostTo) {
  EXPECT_EQ(post_recv(target.get(), 1), EINVAL);
  EXPECT_EQ(post_send(target.get(), 1), EINVAL);
  EXPECT_EQ(post_recv(initiator.get(), 1), EINVAL);
  errno = 0;
  EXPECT_EQ(try_qp({.type = IBV_QPT_XRC_RECV}), nullptr) << "without a domain";
  EXPECT_EQ(errno, EINVAL);
}

// ibv_query_qp(3) also "gets the attributes" of an XRC QP.
TEST_F(XrcTest, QueryTellsTypesAndCapabilities) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(target.get(), &attr, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(init.qp_type, IBV_QPT_XRC_RECV);
  EXPECT_EQ(init.cap.max_send_wr, 0u);
  EXPECT_EQ(init.send_cq, nullptr);
  ASSERT_EQ(ibv_query_qp(initiator.get(), &attr, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(init.qp_type, IBV_QPT_XRC_SEND);
  EXPECT_GE(init.cap.max_send_wr, kQueueDepth);
  EXPECT_EQ(init.cap.max_recv_wr, 0u);
}

// "ibv_open_qp() opens an existing queue pair (QP) associated with the extended protection domain",
// "ibv_destroy_qp() closes the opened QP and destroys the underlying QP if it has no other
// references."
TEST_F(XrcTest, AnOpenedQpKeepsItAlive) {
  QpPtr opened = open_qp(target->qp_num, xrcd.get());
  ASSERT_NE(opened, nullptr) << std::strerror(errno);
  EXPECT_EQ(opened->qp_num, target->qp_num);
  EXPECT_EQ(opened->qp_type, IBV_QPT_XRC_RECV);
  EXPECT_EQ(opened->qp_context, this);
  const uint32_t number = target->qp_num;
  target.reset();
  ASSERT_EQ(post_srq(srq.get(), 10), 0);
  ASSERT_EQ(send_to(srq.get(), 1), 0);
  EXPECT_EQ(next_status(recv_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  opened.reset();
  EXPECT_EQ(open_qp(number, xrcd.get()), nullptr);
}

// ibv_get_async_event(3): the event's element is "the QP". If the QP is shared, each open reference
// to it gets the event.
TEST_F(XrcTest, EventsGoToEveryReferenceThatIsLeft) {
  QpPtr passive = make_qp({.type = IBV_QPT_XRC_RECV, .xrcd = xrcd.get()});
  QpPtr gone = open_qp(passive->qp_num, xrcd.get());
  QpPtr opened = open_qp(passive->qp_num, xrcd.get());
  QpPtr sender = make_qp({.type = IBV_QPT_XRC_SEND});
  ASSERT_TRUE(passive && gone && opened && sender);
  gone.reset();
  ASSERT_NO_FATAL_FAILURE(bring_up(sender.get(), passive->qp_num));
  ASSERT_NO_FATAL_FAILURE(bring_to_rtr(passive.get(), sender->qp_num));
  ASSERT_EQ(post_srq(srq.get(), 10), 0);
  ibv_send_wr wr = request(IBV_WR_SEND, 1);
  wr.qp_type.xrc.remote_srqn = number_of(srq.get());
  ASSERT_EQ(post(sender.get(), wr), 0);
  std::set<ibv_qp*> told;
  for (int i = 0; i < 2; ++i) {
    const ibv_async_event event = take_async_event();
    EXPECT_EQ(event.event_type, IBV_EVENT_COMM_EST);
    told.insert(event.element.qp);
  }
  EXPECT_EQ(told, (std::set<ibv_qp*>{passive.get(), opened.get()}));
  settle();
  EXPECT_FALSE(readable(context->async_fd));
}

// ibv_open_qp(3): "will fail if it is asked to open a QP that does not exist within the xrcd with
// the specified qp_num and qp_type"
TEST_F(XrcTest, OpenFailsForAnotherNumberDomainOrType) {
  const XrcdPtr other = open_xrcd(context.get(), -1, O_CREAT);
  EXPECT_EQ(open_qp(0xfffffe, xrcd.get()), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(open_qp(target->qp_num, other.get()), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(open_qp(initiator->qp_num, xrcd.get()), nullptr);
  EXPECT_EQ(open_qp(target->qp_num, xrcd.get(), IBV_QPT_RC), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

// The second context stands for another process, which finds the domain only by its file.
TEST_F(XrcTest, AnotherContextReceivesThroughTheSameTarget) {
  const FilePtr file(std::tmpfile(), &std::fclose);
  const XrcdPtr mine = open_xrcd(context.get(), fileno(file.get()), O_CREAT);
  QpPtr shared_target = make_qp({.type = IBV_QPT_XRC_RECV, .xrcd = mine.get()});
  QpPtr sender = make_qp({.type = IBV_QPT_XRC_SEND});
  ASSERT_NO_FATAL_FAILURE(bring_up_pair(sender.get(), shared_target.get()));

  const ContextPtr second = open_device();
  const PdPtr second_pd(ibv_alloc_pd(second.get()));
  const MrPtr second_mr(
      ibv_reg_mr(second_pd.get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE));
  const CqPtr second_cq(ibv_create_cq(second.get(), 8, nullptr, nullptr, 0));
  const XrcdPtr theirs = open_xrcd(second.get(), fileno(file.get()), 0);
  ASSERT_NE(theirs, nullptr);
  ibv_srq_init_attr_ex init = srq_wish();
  init.pd = second_pd.get();
  init.xrcd = theirs.get();
  init.cq = second_cq.get();
  const SrqPtr second_srq(ibv_create_srq_ex(second.get(), &init));
  ASSERT_NE(second_srq, nullptr) << std::strerror(errno);
  ibv_sge place{reinterpret_cast<uint64_t>(slot(2)), kSlot, second_mr->lkey};
  ibv_recv_wr recv{.wr_id = 33, .next = nullptr, .sg_list = &place, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_srq_recv(second_srq.get(), &recv, &bad), 0);
  // When the query returns, the device has got the posted receive. Without the query, the message
  // could arrive before the receive, because the doorbell of the receive belongs to another
  // context.
  ibv_srq_attr attr{};
  ASSERT_EQ(ibv_query_srq(second_srq.get(), &attr), 0);

  ibv_send_wr wr = request(IBV_WR_SEND, 1);
  wr.qp_type.xrc.remote_srqn = number_of(second_srq.get());
  ASSERT_EQ(post(sender.get(), wr), 0);
  const ibv_wc wc = poll_for(second_cq.get(), 1).at(0);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.wr_id, 33u);
  EXPECT_EQ(wc.qp_num, shared_target->qp_num);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace rocemu::system_test
