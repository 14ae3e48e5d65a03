// QPs of every transport service type, by the public libibverbs API only. They are brought to RTS
// as ibv_modify_qp(3)'s tables describe. There are also helpers for the requests that can be posted
// to them.
#pragma once

#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {

using SrqPtr = std::unique_ptr<ibv_srq, Destroyer<ibv_srq, ibv_destroy_srq>>;
using AhPtr = std::unique_ptr<ibv_ah, Destroyer<ibv_ah, ibv_destroy_ah>>;
// ibv_close_xrcd() and ibv_dealloc_mw() are static functions in verbs.h. If they were arguments of
// a template, each source file would have a different type.
inline int close_xrcd(ibv_xrcd* xrcd) {
  return ibv_close_xrcd(xrcd);
}
inline int dealloc_mw(ibv_mw* mw) {
  return ibv_dealloc_mw(mw);
}
using MwPtr = std::unique_ptr<ibv_mw, Destroyer<ibv_mw, dealloc_mw>>;
using XrcdPtr = std::unique_ptr<ibv_xrcd, Destroyer<ibv_xrcd, close_xrcd>>;

inline constexpr uint32_t kQkey = 0x11111111;
inline constexpr uint32_t kGrhSize = 40;

/// The properties of a QP. The defaults are suitable for most tests.
struct QpWish {
  ibv_qp_type type = IBV_QPT_RC;
  ibv_cq* cq = nullptr;
  ibv_srq* srq = nullptr;
  ibv_xrcd* xrcd = nullptr;
  uint64_t send_ops = 0;
};

class TransportTest : public VerbsTest {
 protected:
  static constexpr int kRemoteAccess =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

  void SetUp() override {
    VerbsTest::SetUp();
    ASSERT_EQ(ibv_query_gid(context.get(), 1, 0, &own_gid), 0);
    remote_mr.reset(ibv_reg_mr(pd.get(), memory.data(), memory.size(),
                               IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | kRemoteAccess));
    ASSERT_NE(remote_mr, nullptr);
    cq = create_cq(256);
    ASSERT_NE(cq, nullptr);
  }

  /// Returns a new QP, or null with errno if it cannot be created.
  QpPtr try_qp(const QpWish& wish) {
    ibv_qp_init_attr_ex init{};
    init.qp_type = wish.type;
    init.send_cq = init.recv_cq = wish.cq != nullptr ? wish.cq : cq.get();
    init.srq = wish.srq;
    init.cap = {.max_send_wr = kQueueDepth,
                .max_recv_wr = kQueueDepth,
                .max_send_sge = 4,
                .max_recv_sge = 4,
                .max_inline_data = 64};
    if (wish.type == IBV_QPT_XRC_RECV) {
      init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
      init.xrcd = wish.xrcd;
    } else {
      init.comp_mask = IBV_QP_INIT_ATTR_PD;
      init.pd = pd.get();
    }
    if (wish.send_ops != 0) {
      init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
      init.send_ops_flags = wish.send_ops;
    }
    return QpPtr(ibv_create_qp_ex(context.get(), &init));
  }

  QpPtr make_qp(const QpWish& wish) {
    QpPtr qp = try_qp(wish);
    EXPECT_NE(qp, nullptr) << std::strerror(errno);
    return qp;
  }

  /// Takes the QP from RESET to RTR with the fewest attributes that its type allows.
  void bring_to_rtr(ibv_qp* qp, uint32_t peer_qpn = 0) {
    ASSERT_NE(qp, nullptr);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qkey = kQkey;
    attr.qp_access_flags = kRemoteAccess;
    const int permission = qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | permission),
              0);
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = peer_qpn;
    attr.max_dest_rd_atomic = 4;
    attr.min_rnr_timer = 1;
    attr.ah_attr = address_of_own();
    ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | ready_to_receive(qp->qp_type)), 0);
  }

  /// Takes the QP from RESET to RTS.
  void bring_up(ibv_qp* qp, uint32_t peer_qpn = 0) {
    ASSERT_NO_FATAL_FAILURE(bring_to_rtr(qp, peer_qpn));
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    attr.max_rd_atomic = 4;
    ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | ready_to_send(qp->qp_type)),
              0);
  }

  void bring_up_pair(ibv_qp* a, ibv_qp* b) {
    ASSERT_TRUE(a != nullptr && b != nullptr);
    ASSERT_NO_FATAL_FAILURE(bring_up(a, b->qp_num));
    ASSERT_NO_FATAL_FAILURE(bring_up(b, a->qp_num));
  }

  ibv_ah_attr address_of_own() const {
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.port_num = 1;
    attr.grh.dgid = own_gid;
    attr.grh.hop_limit = 64;
    return attr;
  }

  AhPtr make_ah() {
    ibv_ah_attr attr = address_of_own();
    AhPtr ah(ibv_create_ah(pd.get(), &attr));
    EXPECT_NE(ah, nullptr) << std::strerror(errno);
    return ah;
  }

  /// Returns a signaled request for `length` bytes of a slot. The test adds the fields that its
  /// opcode needs.
  ibv_send_wr request(ibv_wr_opcode opcode, uint64_t wr_id, size_t index = 0,
                      uint32_t length = 16) {
    entry = sge(index, length);
    ibv_send_wr wr{};
    wr.wr_id = wr_id;
    wr.sg_list = &entry;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    return wr;
  }

  static int post(ibv_qp* qp, ibv_send_wr wr) {
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp, &wr, &bad);
  }

  int post_srq(ibv_srq* srq, uint64_t wr_id, size_t index = 1, uint32_t length = kSlot) {
    ibv_sge place = sge(index, length);
    ibv_recv_wr wr{};
    wr.wr_id = wr_id;
    wr.sg_list = &place;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return ibv_post_srq_recv(srq, &wr, &bad);
  }

  /// Waits for the next completion, and returns its status.
  ibv_wc_status next_status(ibv_cq* from = nullptr) {
    const auto found = poll_for(from != nullptr ? from : cq.get(), 1);
    return found.empty() ? IBV_WC_GENERAL_ERR : found[0].status;
  }

  ibv_gid own_gid{};
  MrPtr remote_mr;
  ibv_sge entry{};
  CqPtr cq;

 private:
  static int ready_to_receive(ibv_qp_type type) {
    constexpr int kConnected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    switch (type) {
      case IBV_QPT_UD:
        return 0;
      case IBV_QPT_UC:
      case IBV_QPT_XRC_SEND:
        return kConnected;
      default:
        return kConnected | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
  }

  static int ready_to_send(ibv_qp_type type) {
    switch (type) {
      case IBV_QPT_UD:
      case IBV_QPT_UC:
        return 0;
      case IBV_QPT_XRC_RECV:
        return IBV_QP_TIMEOUT;
      default:
        return IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
  }
};

}  // namespace rocemu::system_test
