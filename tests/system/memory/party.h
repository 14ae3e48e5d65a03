// A context with a QP that is connected to itself, for tests of the effects of requests on memory.
#pragma once

#include <array>
#include <cstdint>

#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {

inline constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                               IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

inline uint64_t address_of(const void* bytes) {
  return reinterpret_cast<uintptr_t>(bytes);
}

/// A context with a QP that is connected to itself, and the buffer that its requests use.
class Party {
 public:
  explicit Party(int device = 0) : context_(open_device(device)) {
    EXPECT_NE(context_, nullptr);
    pd_.reset(ibv_alloc_pd(context_.get()));
    cq_.reset(ibv_create_cq(context_.get(), 256, nullptr, nullptr, 0));
    recv_cq_.reset(ibv_create_cq(context_.get(), 256, nullptr, nullptr, 0));
    ibv_qp_init_attr init{};
    init.send_cq = cq_.get();
    init.recv_cq = recv_cq_.get();
    init.qp_type = IBV_QPT_RC;
    init.cap = {64, 64, 1, 1, 0};
    qp_.reset(ibv_create_qp(pd_.get(), &init));
    EXPECT_NE(qp_, nullptr);
    connect();
    buffer_mr_ = enter(buffer.data(), sizeof buffer);
  }

  MrPtr enter(void* bytes, size_t length) {
    MrPtr region(ibv_reg_mr(pd_.get(), bytes, length, kAccess));
    EXPECT_NE(region, nullptr) << std::strerror(errno);
    return region;
  }

  /// Posts a request that transfers `length` bytes between offset `local` of the buffer and
  /// `address`.
  void post(ibv_wr_opcode opcode, size_t local, const void* address, const MrPtr& region,
            uint32_t length, unsigned flags = IBV_SEND_SIGNALED) {
    ibv_sge sge{address_of(buffer.data() + local), length, buffer_mr_->lkey};
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = flags;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      wr.wr.atomic = {
          .remote_addr = address_of(address), .compare_add = 1, .swap = 0, .rkey = region->rkey};
    } else if (opcode != IBV_WR_SEND) {
      wr.wr.rdma = {.remote_addr = address_of(address), .rkey = region->rkey};
    }
    ibv_send_wr* bad;
    ASSERT_EQ(ibv_post_send(qp_.get(), &wr, &bad), 0);
  }
  void finish(int count = 1) { finish(cq_.get(), count); }
  void request(ibv_wr_opcode opcode, size_t local, const void* address, const MrPtr& region,
               uint32_t length) {
    post(opcode, local, address, region, length);
    finish();
  }

  void post_recv(const void* address, const MrPtr& region, uint32_t length) {
    ibv_sge sge{address_of(address), length, region->lkey};
    ibv_recv_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad;
    ASSERT_EQ(ibv_post_recv(qp_.get(), &wr, &bad), 0);
  }
  /// Sends a message to itself and waits for the sender's completion. The receive's completion
  /// stays in its CQ.
  void send(size_t local, uint32_t length) {
    post(IBV_WR_SEND, local, nullptr, nullptr, length);
    finish();
  }
  void take_received() { finish(recv_cq_.get(), 1); }

  uint64_t& word(size_t index) { return reinterpret_cast<uint64_t*>(buffer.data())[index]; }

  alignas(64) std::array<uint8_t, 8192> buffer{};

 private:
  static void finish(ibv_cq* cq, int count) {
    while (count > 0) {
      ibv_wc done;
      const int polled = ibv_poll_cq(cq, 1, &done);
      ASSERT_GE(polled, 0);
      if (polled == 0) continue;
      ASSERT_EQ(done.status, IBV_WC_SUCCESS) << ibv_wc_status_str(done.status);
      --count;
    }
  }
  void connect() {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = kAccess;
    ASSERT_EQ(ibv_modify_qp(qp_.get(), &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              0);
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = qp_->qp_num;
    attr.max_dest_rd_atomic = 8;
    attr.min_rnr_timer = 1;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.hop_limit = 64;
    ASSERT_EQ(ibv_query_gid(context_.get(), 1, 0, &attr.ah_attr.grh.dgid), 0);
    ASSERT_EQ(ibv_modify_qp(qp_.get(), &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    attr.max_rd_atomic = 8;
    ASSERT_EQ(ibv_modify_qp(qp_.get(), &attr,
                            IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }

  ContextPtr context_;
  PdPtr pd_;
  CqPtr cq_, recv_cq_;
  QpPtr qp_;
  MrPtr buffer_mr_;
};

}  // namespace rocemu::system_test
