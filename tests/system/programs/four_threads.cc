// Four threads send messages and poll for them. Each has a QP that is connected to itself, and a
// separate CQ, so its actions do not depend on other threads.
#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr uint32_t kThreads = 4;
constexpr uint32_t kMessages = 50;
constexpr uint32_t kSize = 3000;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

struct Side {
  std::vector<uint8_t> buffer = std::vector<uint8_t>(2 * kSize);
  ibv_mr* mr = nullptr;
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
};

void modify(ibv_qp* qp, ibv_qp_attr& attr, ibv_qp_state state, int mask) {
  attr.qp_state = state;
  if (ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE) != 0) fail("ibv_modify_qp");
}

void make(ibv_context* context, ibv_pd* pd, Side& side) {
  side.mr = ibv_reg_mr(pd, side.buffer.data(), side.buffer.size(), IBV_ACCESS_LOCAL_WRITE);
  side.cq = ibv_create_cq(context, 8, nullptr, nullptr, 0);
  if (side.mr == nullptr || side.cq == nullptr) fail("ibv_create_cq");
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = side.cq;
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = 1;
  init.cap = {4, 4, 1, 1, 0};
  side.qp = ibv_create_qp(pd, &init);
  if (side.qp == nullptr) fail("ibv_create_qp");
  ibv_qp_attr attr{};
  attr.port_num = 1;
  modify(side.qp, attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = side.qp->qp_num;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  if (ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid) != 0) fail("ibv_query_gid");
  modify(side.qp, attr, IBV_QPS_RTR,
         IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER);
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  modify(side.qp, attr, IBV_QPS_RTS,
         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC);
}

void exchange(Side& side) {
  for (uint32_t i = 0; i < kMessages; ++i) {
    const auto at = reinterpret_cast<uint64_t>(side.buffer.data());
    ibv_sge to{at + kSize, kSize, side.mr->lkey};
    ibv_recv_wr recv{};
    recv.sg_list = &to;
    recv.num_sge = 1;
    ibv_recv_wr* bad_recv = nullptr;
    if (ibv_post_recv(side.qp, &recv, &bad_recv) != 0) fail("ibv_post_recv");
    ibv_sge from{at, kSize, side.mr->lkey};
    ibv_send_wr send{};
    send.sg_list = &from;
    send.num_sge = 1;
    send.opcode = IBV_WR_SEND;
    ibv_send_wr* bad_send = nullptr;
    if (ibv_post_send(side.qp, &send, &bad_send) != 0) fail("ibv_post_send");
    for (int left = 2; left > 0;) {
      ibv_wc wc{};
      const int count = ibv_poll_cq(side.cq, 1, &wc);
      if (count < 0 || (count > 0 && wc.status != IBV_WC_SUCCESS)) fail("ibv_poll_cq");
      left -= count;
    }
  }
}

}  // namespace

int main() {
  ibv_device** devices = ibv_get_device_list(nullptr);
  ibv_context* context =
      devices != nullptr && devices[0] != nullptr ? ibv_open_device(devices[0]) : nullptr;
  if (context == nullptr) fail("ibv_open_device");
  ibv_pd* pd = ibv_alloc_pd(context);
  if (pd == nullptr) fail("ibv_alloc_pd");
  std::array<Side, kThreads> sides;
  for (Side& side : sides) make(context, pd, side);
  std::vector<std::thread> threads;
  for (Side& side : sides) threads.emplace_back(exchange, std::ref(side));
  for (std::thread& thread : threads) thread.join();
  for (Side& side : sides) {
    ibv_destroy_qp(side.qp);
    ibv_destroy_cq(side.cq);
    ibv_dereg_mr(side.mr);
  }
  ibv_dealloc_pd(pd);
  ibv_close_device(context);
  ibv_free_device_list(devices);
}
