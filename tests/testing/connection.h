// Two connected RC QPs, on rocemu0 and rocemu1 of the fabric that this program started.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include "testing/cpp/rocemu/testing.h"

namespace rocemu::testing {

extern Fabric* fabric;

class Connection : public ::testing::Test {
 protected:
  struct Side {
    ibv_context* context = nullptr;
    ibv_pd* pd = nullptr;
    ibv_cq* cq = nullptr;
    ibv_qp* qp = nullptr;
    ibv_mr* mr = nullptr;
    char buffer[64] = {};
  };

  void SetUp() override {
    ibv_device** devices = ibv_get_device_list(nullptr);
    ASSERT_NE(devices, nullptr);
    for (int i = 0; i < 2; ++i) {
      ASSERT_NE(devices[i], nullptr);
      open(sides[i], devices[i]);
    }
    ibv_free_device_list(devices);
    for (int i = 0; i < 2; ++i) connect(sides[i], sides[1 - i]);
  }
  void TearDown() override {
    for (Side& side : sides) {
      EXPECT_EQ(ibv_destroy_qp(side.qp), 0);
      EXPECT_EQ(ibv_destroy_cq(side.cq), 0);
      EXPECT_EQ(ibv_dereg_mr(side.mr), 0);
      EXPECT_EQ(ibv_dealloc_pd(side.pd), 0);
      EXPECT_EQ(ibv_close_device(side.context), 0);
    }
    fabric->clear_rules();
  }

  static void open(Side& side, ibv_device* device) {
    side.context = ibv_open_device(device);
    ASSERT_NE(side.context, nullptr);
    side.pd = ibv_alloc_pd(side.context);
    side.cq = ibv_create_cq(side.context, 16, nullptr, nullptr, 0);
    side.mr = ibv_reg_mr(side.pd, side.buffer, sizeof side.buffer, IBV_ACCESS_LOCAL_WRITE);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = side.cq;
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    init.cap = {8, 8, 1, 1, 0};
    side.qp = ibv_create_qp(side.pd, &init);
    ASSERT_NE(side.qp, nullptr);
  }
  static void connect(Side& side, const Side& peer) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    ASSERT_EQ(ibv_modify_qp(side.qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              0);
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = peer.qp->qp_num;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    ASSERT_EQ(ibv_query_gid(peer.context, 1, 0, &attr.ah_attr.grh.dgid), 0);
    ASSERT_EQ(ibv_modify_qp(side.qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    ASSERT_EQ(ibv_modify_qp(side.qp, &attr,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }
  void send_a_message() {
    ibv_sge sge{reinterpret_cast<uintptr_t>(sides[1].buffer), 64, sides[1].mr->lkey};
    ibv_recv_wr recv{};
    recv.sg_list = &sge;
    recv.num_sge = 1;
    ibv_recv_wr* bad_recv = nullptr;
    ASSERT_EQ(ibv_post_recv(sides[1].qp, &recv, &bad_recv), 0);
    ibv_sge from{reinterpret_cast<uintptr_t>(sides[0].buffer), 64, sides[0].mr->lkey};
    ibv_send_wr send{};
    send.sg_list = &from;
    send.num_sge = 1;
    send.opcode = IBV_WR_SEND;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(sides[0].qp, &send, &bad), 0);
  }
  /// Polls once, and returns the number of completions with this status.
  int completions(const Side& side, ibv_wc_status status = IBV_WC_SUCCESS) {
    ibv_wc wc{};
    int count = 0;
    while (ibv_poll_cq(side.cq, 1, &wc) == 1) {
      EXPECT_EQ(wc.status, status) << ibv_wc_status_str(wc.status);
      ++count;
    }
    return count;
  }

  Side sides[2];
};

}  // namespace rocemu::testing
