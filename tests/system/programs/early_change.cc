// A QP that is connected to itself sends a message, and the program changes the message before it
// polls for the completion. Prints "old" if the receiver gets the message as it was posted, and
// "new" if it gets the changed message.
//
// usage: early_change SIZE [inline] [DAEMON]
//   DAEMON   a process number: that process is stopped while the program posts and changes
#include <infiniband/verbs.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

void modify(ibv_qp* qp, ibv_qp_attr& attr, ibv_qp_state state, int mask) {
  attr.qp_state = state;
  if (ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE) != 0) fail("ibv_modify_qp");
}

void connect_to_itself(ibv_context* context, ibv_qp* qp) {
  ibv_qp_attr attr{};
  attr.port_num = 1;
  modify(qp, attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = qp->qp_num;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 1;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.hop_limit = 1;
  attr.ah_attr.port_num = 1;
  if (ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid) != 0) fail("ibv_query_gid");
  modify(qp, attr, IBV_QPS_RTR,
         IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER);
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  modify(qp, attr, IBV_QPS_RTS,
         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC);
}

void signal_daemon(pid_t daemon, int signal) {
  if (daemon != 0 && kill(daemon, signal) != 0) fail("kill");
}

}  // namespace

int main(int argc, char** argv) {
  const auto size = static_cast<uint32_t>(std::stoul(argv[1]));
  const bool is_inline = argc > 2 && std::string(argv[2]) == "inline";
  const pid_t daemon = argc > (is_inline ? 3 : 2) ? std::stoi(argv[argc - 1]) : 0;
  ibv_device** devices = ibv_get_device_list(nullptr);
  ibv_context* context = devices != nullptr ? ibv_open_device(devices[0]) : nullptr;
  if (context == nullptr) fail("ibv_open_device");
  ibv_pd* pd = ibv_alloc_pd(context);
  ibv_cq* cq = ibv_create_cq(context, 4, nullptr, nullptr, 0);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = 1;
  init.cap = {1, 1, 1, 1, is_inline ? size : 0};
  ibv_qp* qp = ibv_create_qp(pd, &init);
  if (qp == nullptr) fail("ibv_create_qp");
  connect_to_itself(context, qp);
  std::vector<uint8_t> sent(size, 'o'), received(size);
  ibv_mr* from = ibv_reg_mr(pd, sent.data(), size, 0);
  ibv_mr* to = ibv_reg_mr(pd, received.data(), size, IBV_ACCESS_LOCAL_WRITE);
  if (from == nullptr || to == nullptr) fail("ibv_reg_mr");
  ibv_sge receive_sge{reinterpret_cast<uintptr_t>(received.data()), size, to->lkey};
  ibv_recv_wr receive{};
  receive.sg_list = &receive_sge;
  receive.num_sge = 1;
  ibv_recv_wr* bad_receive = nullptr;
  if (ibv_post_recv(qp, &receive, &bad_receive) != 0) fail("ibv_post_recv");

  signal_daemon(daemon, SIGSTOP);
  ibv_sge sge{reinterpret_cast<uintptr_t>(sent.data()), size, from->lkey};
  ibv_send_wr send{};
  send.sg_list = &sge;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  if (is_inline) send.send_flags = IBV_SEND_INLINE;
  ibv_send_wr* bad_send = nullptr;
  if (ibv_post_send(qp, &send, &bad_send) != 0) fail("ibv_post_send");
  std::memset(sent.data(), 'n', size);
  signal_daemon(daemon, SIGCONT);

  for (int completions = 0; completions < 2;) {
    ibv_wc wc{};
    const int found = ibv_poll_cq(cq, 1, &wc);
    if (found < 0 || (found > 0 && wc.status != IBV_WC_SUCCESS)) fail("ibv_poll_cq");
    completions += found;
  }
  const std::vector<uint8_t> old(size, 'o');
  std::puts(received == old ? "old" : received == sent ? "new" : "torn");
  ibv_dereg_mr(from);
  ibv_dereg_mr(to);
  ibv_destroy_qp(qp);
  ibv_destroy_cq(cq);
  ibv_dealloc_pd(pd);
  ibv_close_device(context);
  ibv_free_device_list(devices);
  return 0;
}
