// Sends one message to itself. test_sanitized_programs.py builds this with each sanitizer. The
// argument "leak" or "overflow" names a mistake that the program then makes, and that the sanitizer
// must find.
#include <infiniband/verbs.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr uint32_t kSize = 1 << 20;

void check(bool right, const char* what) {
  if (right) return;
  std::perror(what);
  std::exit(1);
}

void connect(ibv_qp* qp, const ibv_gid& gid) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  check(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
        "INIT");
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = qp->qp_num;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = gid;
  attr.ah_attr.grh.hop_limit = 1;
  attr.ah_attr.port_num = 1;
  check(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
        "RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  check(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
        "RTS");
}

void exchange() {
  ibv_device** devices = ibv_get_device_list(nullptr);
  check(devices != nullptr && devices[0] != nullptr, "no devices");
  ibv_context* context = ibv_open_device(devices[0]);
  check(context != nullptr, "ibv_open_device");
  ibv_free_device_list(devices);
  ibv_gid gid;
  check(ibv_query_gid(context, 1, 0, &gid) == 0, "ibv_query_gid");
  ibv_pd* pd = ibv_alloc_pd(context);
  ibv_comp_channel* channel = ibv_create_comp_channel(context);
  ibv_cq* cq = ibv_create_cq(context, 16, nullptr, channel, 0);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.cap = {4, 4, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = 1;
  ibv_qp* qp = ibv_create_qp(pd, &init);
  check(qp != nullptr, "ibv_create_qp");
  connect(qp, gid);

  auto* out = static_cast<char*>(std::malloc(kSize));
  auto* in = static_cast<char*>(std::malloc(kSize));
  std::memset(out, 'x', kSize);
  std::memset(in, 0, kSize);
  ibv_mr* out_mr = ibv_reg_mr(pd, out, kSize, 0);
  ibv_mr* in_mr = ibv_reg_mr(pd, in, kSize, IBV_ACCESS_LOCAL_WRITE);
  check(out_mr != nullptr && in_mr != nullptr, "ibv_reg_mr");
  ibv_sge to{reinterpret_cast<uintptr_t>(in), kSize, in_mr->lkey};
  ibv_recv_wr recv{1, nullptr, &to, 1}, *bad_recv;
  check(ibv_req_notify_cq(cq, 0) == 0, "ibv_req_notify_cq");
  check(ibv_post_recv(qp, &recv, &bad_recv) == 0, "ibv_post_recv");
  ibv_sge from{reinterpret_cast<uintptr_t>(out), kSize, out_mr->lkey};
  ibv_send_wr send{}, *bad_send;
  send.sg_list = &from;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  check(ibv_post_send(qp, &send, &bad_send) == 0, "ibv_post_send");
  ibv_cq* ready;
  void* cq_context;
  check(ibv_get_cq_event(channel, &ready, &cq_context) == 0, "ibv_get_cq_event");
  ibv_ack_cq_events(ready, 1);
  for (int completions = 0; completions < 2;) {
    ibv_wc completion;
    const int count = ibv_poll_cq(cq, 1, &completion);
    check(count >= 0, "ibv_poll_cq");
    check(count == 0 || completion.status == IBV_WC_SUCCESS, "completion");
    completions += count;
  }
  check(std::memcmp(in, out, kSize) == 0, "data");

  check(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0 &&
            ibv_destroy_comp_channel(channel) == 0 && ibv_dereg_mr(in_mr) == 0 &&
            ibv_dereg_mr(out_mr) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0,
        "destruction");
  std::free(in);
  std::free(out);
}

/// Called before exchange(), which uses the same part of the stack and thereby overwrites the
/// pointer.
__attribute__((noinline)) void lose() {
  auto* volatile lost = static_cast<char*>(std::malloc(77));
  lost[0] = 1;
}

}  // namespace

#ifdef OWN_OPTIONS
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0";
}
#endif

int main(int argc, char** argv) {
  const char* const mistake = argc > 1 ? argv[1] : "";
  if (std::strcmp(mistake, "leak") == 0) lose();
  for (int i = 0; i < 3; ++i) exchange();
  if (std::strcmp(mistake, "overflow") == 0) {
    auto* volatile four = static_cast<char*>(std::malloc(4));
    four[argc + 2] = 1;
    std::free(four);
  }
  std::puts("right");
  return 0;
}
