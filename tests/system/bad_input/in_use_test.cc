// Tests objects that are destroyed while they are in use, and in every wrong order.
#include <atomic>
#include <thread>

#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

class InUse : public TransportTest {};

// ibv_dealloc_pd(3), ibv_destroy_cq(3), ibv_destroy_srq(3), ibv_destroy_comp_channel(3),
// ibv_dereg_mr(3): each fails while another object needs it, and changes nothing.
TEST_F(InUse, IsBusyUntilItsLastUserIsGone) {
  ChannelPtr channel = create_channel();
  CqPtr own = create_cq(8, channel.get());
  PdPtr domain(ibv_alloc_pd(context.get()));
  ibv_srq_init_attr srq_init{};
  srq_init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  SrqPtr srq(ibv_create_srq(domain.get(), &srq_init));
  ASSERT_TRUE(channel && own && domain && srq);
  EXPECT_EQ(ibv_dealloc_pd(domain.get()), EBUSY) << "the SRQ's";

  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = own.get();
  init.srq = srq.get();
  init.qp_type = IBV_QPT_RC;
  init.cap = {4, 0, 1, 0, 0};
  QpPtr qp(ibv_create_qp(domain.get(), &init));
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(ibv_destroy_comp_channel(channel.get()), EBUSY);
  EXPECT_EQ(ibv_destroy_cq(own.get()), EBUSY);
  EXPECT_EQ(ibv_destroy_srq(srq.get()), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(domain.get()), EBUSY);

  // After all these refusals, the objects still work.
  ASSERT_NO_FATAL_FAILURE(bring_up(qp.get(), qp->qp_num));
  MrPtr region(ibv_reg_mr(domain.get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE));
  ASSERT_NE(region, nullptr);
  ibv_sge place{reinterpret_cast<uint64_t>(slot(0)), 64, region->lkey};
  ibv_recv_wr recv{};
  recv.sg_list = &place;
  recv.num_sge = 1;
  ibv_recv_wr* bad_recv = nullptr;
  ASSERT_EQ(ibv_post_srq_recv(srq.get(), &recv, &bad_recv), 0);
  ibv_send_wr wr = request(IBV_WR_SEND, 1);
  entry.lkey = region->lkey;
  ASSERT_EQ(post(qp.get(), wr), 0);
  EXPECT_EQ(poll_for(own.get(), 2).size(), 2u);

  qp.reset();
  EXPECT_EQ(ibv_dealloc_pd(domain.get()), EBUSY) << "the region's and the SRQ's";
  // When the function returns, the destructors check that destruction in the right order succeeds.
}

// A region may be deregistered while requests use it. Then these requests fail, and so do a peer's.
TEST_F(InUse, AfterARegionIsDestroyedItsRequestsFail) {
  const QpPtr qp = make_qp({}), peer = make_qp({});
  ASSERT_NO_FATAL_FAILURE(bring_up_pair(qp.get(), peer.get()));
  const uint32_t rkey = remote_mr->rkey;
  ASSERT_EQ(ibv_dereg_mr(remote_mr.release()), 0);
  ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, 1);
  wr.wr.rdma = {.remote_addr = reinterpret_cast<uint64_t>(slot(2)), .rkey = rkey};
  ASSERT_EQ(post(qp.get(), wr), 0);
  EXPECT_EQ(next_status(), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(InUse, AQpThatIsDestroyedUnderItsPeerIsSilent) {
  QpPtr survivor = make_qp({});
  ibv_qp_attr attr{};
  for (int round = 0; round < 5; ++round) {
    QpPtr victim = make_qp({});
    attr.qp_state = IBV_QPS_RESET;
    ASSERT_EQ(ibv_modify_qp(survivor.get(), &attr, IBV_QP_STATE), 0);
    ASSERT_NO_FATAL_FAILURE(bring_to_rtr(survivor.get(), victim->qp_num));
    ASSERT_NO_FATAL_FAILURE(bring_up(victim.get(), survivor->qp_num));
    // with fewer and faster retries than bring_up() sets
    ASSERT_NO_FATAL_FAILURE(to_rts(survivor.get()));
    for (int i = 0; i < 16; ++i) ASSERT_EQ(post_send(survivor.get(), 1), 0);
    victim.reset();
    const auto found = poll_for(cq.get(), 16);
    ASSERT_EQ(found.size(), 16u);
    EXPECT_EQ(found[0].status, IBV_WC_RETRY_EXC_ERR);
    for (size_t i = 1; i < 16; ++i) EXPECT_EQ(found[i].status, IBV_WC_WR_FLUSH_ERR);
  }
}

// Other threads create and destroy objects while messages are sent.
TEST_F(InUse, ThreadsMakeAndDestroyWhileOthersSend) {
  const QpPtr qp = make_qp({});
  ASSERT_NO_FATAL_FAILURE(bring_up(qp.get(), qp->qp_num));
  std::atomic<bool> done{false};
  std::vector<std::thread> makers;
  for (int i = 0; i < 4; ++i) {
    makers.emplace_back([&] {
      while (!done) {
        const CqPtr other = create_cq(4);
        const QpPtr one = try_qp({.cq = other.get()});
        EXPECT_NE(one, nullptr);
        EXPECT_EQ(ibv_destroy_cq(other.get()), EBUSY);
      }
    });
  }
  for (uint64_t i = 0; i < 300; ++i) {
    EXPECT_EQ(post_recv(qp.get(), 2 * i), 0);
    EXPECT_EQ(post_send(qp.get(), 2 * i + 1), 0);
    for (const ibv_wc& wc : poll_for(cq.get(), 2)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  }
  done = true;
  for (std::thread& maker : makers) maker.join();
}

// ibv_close_device(3): "It is the responsibility of the user application to release all related
// resources with their respective release functions before calling". A program that does not do so
// leaks the resources in its process, but not in the device.
TEST_F(InUse, ClosingTheDeviceFirstEndsItsObjects) {
  ibv_context* other = open_device().release();
  ibv_pd* domain = ibv_alloc_pd(other);
  ibv_cq* queue = ibv_create_cq(other, 16, nullptr, nullptr, 0);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = queue;
  init.qp_type = IBV_QPT_RC;
  init.cap = {4, 4, 1, 1, 0};
  ibv_qp* orphan = ibv_create_qp(domain, &init);
  ASSERT_NE(orphan, nullptr);
  const QpPtr qp = make_qp({});
  ASSERT_NO_FATAL_FAILURE(bring_to_rtr(qp.get(), orphan->qp_num));
  ASSERT_NO_FATAL_FAILURE(bring_up(orphan, qp->qp_num));
  ASSERT_NO_FATAL_FAILURE(to_rts(qp.get()));
  ASSERT_EQ(ibv_close_device(other), 0);
  ASSERT_EQ(post_send(qp.get(), 1), 0);
  EXPECT_EQ(next_status(), IBV_WC_RETRY_EXC_ERR);
}

}  // namespace
}  // namespace rocemu::system_test
