// A GoogleTest program with one test that makes 40 verbs calls. scripts/bench --only explore
// measures `rocemu explore` with it.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <array>
#include <cstdint>

namespace {

constexpr size_t kSides = 2;

/// Two QPs that are each other's peers.
class FortyVerbs : public testing::Test {
 protected:
  void connect(ibv_qp* qp, uint32_t peer, const ibv_gid& gid) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    ASSERT_EQ(ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              0);
    attr = {};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = peer;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer = 1;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.hop_limit = 1;
    attr.ah_attr.grh.dgid = gid;
    ASSERT_EQ(ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
    attr = {};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    attr.max_rd_atomic = 1;
    ASSERT_EQ(ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }

  /// Polls `completions` completions of the CQ, which both QPs use, and waits for the channel's
  /// event whenever the CQ is empty.
  void complete(ibv_comp_channel* channel, ibv_cq* cq, int completions) {
    for (ibv_wc wc{}; completions > 0;) {
      const int count = ibv_poll_cq(cq, 1, &wc);
      ASSERT_GE(count, 0);
      if (count == 1) {
        ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
        --completions;
        continue;
      }
      void* context = nullptr;
      ASSERT_EQ(ibv_get_cq_event(channel, &cq, &context), 0);
      ibv_ack_cq_events(cq, 1);
      ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    }
  }
};

TEST_F(FortyVerbs, AllSucceed) {
  ibv_device** const devices = ibv_get_device_list(nullptr);
  ASSERT_NE(devices, nullptr);
  ibv_context* const context = ibv_open_device(devices[0]);
  ASSERT_NE(context, nullptr);
  ibv_device_attr device{};
  ASSERT_EQ(ibv_query_device(context, &device), 0);
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(context, 1, &port), 0);
  ibv_gid gid{};
  ASSERT_EQ(ibv_query_gid(context, 1, 0, &gid), 0);
  ibv_pd* const pd = ibv_alloc_pd(context);
  ASSERT_NE(pd, nullptr);
  ibv_comp_channel* const channel = ibv_create_comp_channel(context);
  ASSERT_NE(channel, nullptr);
  ibv_cq* const cq = ibv_create_cq(context, 16, nullptr, channel, 0);
  ASSERT_NE(cq, nullptr);

  std::array<ibv_qp*, kSides> qps{};
  std::array<ibv_mr*, kSides> mrs{};
  std::array<std::array<char, 256>, kSides> buffers{};
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {4, 4, 1, 1, 0};
  for (size_t i = 0; i < kSides; ++i) {
    qps[i] = ibv_create_qp(pd, &init);
    ASSERT_NE(qps[i], nullptr);
    mrs[i] = ibv_reg_mr(pd, buffers[i].data(), buffers[i].size(), IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(mrs[i], nullptr);
  }
  for (size_t i = 0; i < kSides; ++i) connect(qps[i], qps[1 - i]->qp_num, gid);
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  for (size_t from = 0; from < kSides; ++from) {
    const size_t to = 1 - from;
    ibv_sge sge{reinterpret_cast<uintptr_t>(buffers[to].data()), 64, mrs[to]->lkey};
    ibv_recv_wr recv{};
    recv.sg_list = &sge;
    recv.num_sge = 1;
    ibv_recv_wr* bad_recv = nullptr;
    ASSERT_EQ(ibv_post_recv(qps[to], &recv, &bad_recv), 0);
    ibv_sge source{reinterpret_cast<uintptr_t>(buffers[from].data()), 64, mrs[from]->lkey};
    ibv_send_wr send{};
    send.sg_list = &source;
    send.num_sge = 1;
    send.opcode = IBV_WR_SEND;
    send.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad_send = nullptr;
    ASSERT_EQ(ibv_post_send(qps[from], &send, &bad_send), 0);
    complete(channel, cq, 2);
    ASSERT_FALSE(HasFatalFailure());
  }
  for (size_t i = 0; i < kSides; ++i) {
    ibv_qp_attr attr{};
    ASSERT_EQ(ibv_query_qp(qps[i], &attr, IBV_QP_STATE, &init), 0);
    EXPECT_EQ(ibv_destroy_qp(qps[i]), 0);
    EXPECT_EQ(ibv_dereg_mr(mrs[i]), 0);
  }
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  EXPECT_EQ(ibv_close_device(context), 0);
  ibv_free_device_list(devices);
}

}  // namespace
