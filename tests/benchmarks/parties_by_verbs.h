// A thread of `parties` whose messages go through a NIC.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/benchmarks/parties_shared.h"

namespace rocemu::benchmarks {

/// The buffer for the peer's messages and the buffer for own messages. A message begins with its
/// number.
struct Buffers {
  alignas(64) std::array<uint32_t, kSize / sizeof(uint32_t)> in{};
  alignas(64) std::array<uint32_t, kSize / sizeof(uint32_t)> out{};
};

/// One thread of a pair, with its connection to the other one.
class VerbsParty {
 public:
  /// State that the threads of a process share.
  class Process {
   public:
    Process() {
      int devices = 0;
      ibv_device** list = ibv_get_device_list(&devices);
      if (list == nullptr || devices == 0) fail("no device; run this under `rocemu run`");
      context = ibv_open_device(list[0]);
      check(context != nullptr, "ibv_open_device");
      ibv_free_device_list(list);
      pd = ibv_alloc_pd(context);
      check(pd != nullptr, "ibv_alloc_pd");
    }

    ibv_context* context = nullptr;
    ibv_pd* pd = nullptr;
  };

  VerbsParty(How how, const Process& process, const Place&) : how_(how), context_(process.context) {
    if (how == How::kEvent) {
      channel_ = ibv_create_comp_channel(context_);
      check(channel_ != nullptr, "ibv_create_comp_channel");
    }
    cqs_.resize(how == How::kSeveral ? 4 : 1);
    for (ibv_cq*& cq : cqs_) {
      cq = ibv_create_cq(context_, 16, nullptr, channel_, 0);
      check(cq != nullptr, "ibv_create_cq");
    }
    if (channel_ != nullptr) check(ibv_req_notify_cq(cqs_[0], 0) == 0, "ibv_req_notify_cq");
    mr_ = ibv_reg_mr(process.pd, &buffers_, sizeof buffers_,
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    check(mr_ != nullptr, "ibv_reg_mr");
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cqs_[0];
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    init.cap = {.max_send_wr = 4,
                .max_recv_wr = 4,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = kSize};
    qp_ = ibv_create_qp(process.pd, &init);
    check(qp_ != nullptr, "ibv_create_qp");
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    modify(&attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (how_ != How::kMemory) post_receive();
  }

  End end() const {
    End end;
    end.qp_num = qp_->qp_num;
    end.rkey = mr_->rkey;
    end.address = reinterpret_cast<uint64_t>(buffers_.in.data());
    return end;
  }

  void connect(const End& peer) {
    peer_ = peer;
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_4096;
    attr.dest_qp_num = peer.qp_num;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer = 12;
    attr.ah_attr.is_global = 1;
    check(ibv_query_gid(context_, 1, 0, &attr.ah_attr.grh.dgid) == 0, "ibv_query_gid");
    attr.ah_attr.grh.hop_limit = 64;
    attr.ah_attr.port_num = 1;
    modify(&attr, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr = {};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 18;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    attr.max_rd_atomic = 1;
    modify(&attr, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                      IBV_QP_MAX_QP_RD_ATOMIC);
  }

  void send(uint32_t number) {
    buffers_.out[0] = number;
    ibv_sge sge{reinterpret_cast<uint64_t>(buffers_.out.data()), kSize, mr_->lkey};
    ibv_send_wr wr{}, *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_INLINE;
    wr.opcode = how_ == How::kMemory ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
    wr.wr.rdma.remote_addr = peer_.address;
    wr.wr.rdma.rkey = peer_.rkey;
    check(ibv_post_send(qp_, &wr, &bad) == 0, "ibv_post_send");
    ++sends_;
    if (how_ != How::kMemory) return;
    while (sends_ != 0) reap();
  }

  /// Waits for the message after `before`, and returns its number.
  uint32_t receive(uint32_t before) {
    if (how_ == How::kMemory) {
      const volatile uint32_t* number = buffers_.in.data();
      while (*number == before) {
      }
      return *number;
    }
    while (received_ == 0 || sends_ != 0) {
      if (reap()) continue;
      if (how_ == How::kEvent) wait_for_event();
    }
    --received_;
    const uint32_t number = buffers_.in[0];
    if (number != kLast) post_receive();
    return number;
  }

 private:
  void modify(ibv_qp_attr* attr, int mask) {
    check(ibv_modify_qp(qp_, attr, mask | IBV_QP_STATE) == 0, "ibv_modify_qp");
  }

  void post_receive() {
    ibv_sge sge{reinterpret_cast<uint64_t>(buffers_.in.data()), kSize, mr_->lkey};
    ibv_recv_wr wr{}, *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    check(ibv_post_recv(qp_, &wr, &bad) == 0, "ibv_post_recv");
  }

  /// Polls all CQs once. Returns whether any of them had a completion.
  bool reap() {
    bool found = false;
    for (ibv_cq* cq : cqs_) {
      std::array<ibv_wc, 4> completions;
      const int polled = ibv_poll_cq(cq, completions.size(), completions.data());
      check(polled >= 0, "ibv_poll_cq");
      for (int i = 0; i < polled; ++i) {
        const ibv_wc& completion = completions[static_cast<size_t>(i)];
        if (completion.status != IBV_WC_SUCCESS) {
          std::fprintf(stderr, "a message failed: %s\n", ibv_wc_status_str(completion.status));
          std::exit(1);
        }
        if ((completion.opcode & IBV_WC_RECV) != 0) {
          ++received_;
        } else {
          --sends_;
        }
        found = true;
      }
    }
    return found;
  }

  void wait_for_event() {
    ibv_cq* cq;
    void* context;
    check(ibv_get_cq_event(channel_, &cq, &context) == 0, "ibv_get_cq_event");
    ibv_ack_cq_events(cq, 1);
    check(ibv_req_notify_cq(cq, 0) == 0, "ibv_req_notify_cq");
  }

  How how_;
  ibv_context* context_;
  ibv_comp_channel* channel_ = nullptr;
  std::vector<ibv_cq*> cqs_;
  Buffers buffers_;
  ibv_mr* mr_ = nullptr;
  ibv_qp* qp_ = nullptr;
  End peer_{};
  uint32_t sends_ = 0, received_ = 0;
};

}  // namespace rocemu::benchmarks
