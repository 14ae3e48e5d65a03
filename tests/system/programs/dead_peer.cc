// Sends to a QP that does not exist, with the longest retries that ibv_modify_qp(3) allows:
// retry_cnt 7 and timeout 31, which take hours on hardware. Prints the completion's status and how
// long it took, by the device's clock and by the program's clock.
#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

uint64_t device_ns(ibv_context* context) {
  ibv_values_ex values{};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  if (ibv_query_rt_values_ex(context, &values) != 0) fail("ibv_query_rt_values_ex");
  return static_cast<uint64_t>(values.raw_clock.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(values.raw_clock.tv_nsec);
}

ibv_qp* make_qp(ibv_context* context, ibv_pd* pd, ibv_cq* cq) {
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = 1;
  init.cap = {1, 1, 1, 1, 0};
  ibv_qp* qp = ibv_create_qp(pd, &init);
  if (qp == nullptr) fail("ibv_create_qp");
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0) {
    fail("INIT");
  }
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = 0x123456;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  if (ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid) != 0) fail("ibv_query_gid");
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0) {
    fail("RTR");
  }
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 31;
  attr.retry_cnt = 7;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                        IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) != 0) {
    fail("RTS");
  }
  return qp;
}

}  // namespace

int main() {
  ibv_device** devices = ibv_get_device_list(nullptr);
  ibv_context* context =
      devices != nullptr && devices[0] != nullptr ? ibv_open_device(devices[0]) : nullptr;
  if (context == nullptr) fail("ibv_open_device");
  ibv_pd* pd = ibv_alloc_pd(context);
  ibv_cq* cq = ibv_create_cq(context, 4, nullptr, nullptr, 0);
  if (pd == nullptr || cq == nullptr) fail("ibv_create_cq");
  ibv_qp* qp = make_qp(context, pd, cq);

  const uint64_t device_start = device_ns(context);
  const auto start = std::chrono::steady_clock::now();
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(qp, &wr, &bad) != 0) fail("ibv_post_send");
  ibv_wc wc{};
  int count;
  while ((count = ibv_poll_cq(cq, 1, &wc)) == 0) {
  }
  if (count < 0) fail("ibv_poll_cq");
  const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start);
  std::printf("%s after %.3f s, by the device's clock %.0f s\n", ibv_wc_status_str(wc.status),
              took.count(), static_cast<double>(device_ns(context) - device_start) / 1e9);
  ibv_destroy_qp(qp);
  ibv_destroy_cq(cq);
  ibv_dealloc_pd(pd);
  ibv_close_device(context);
  ibv_free_device_list(devices);
}
