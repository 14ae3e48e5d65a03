// A program whose ibv_reg_mr(3) fails. Its argument says what it does then: there is one way to end
// for each verdict of `rocemu explore`.
#include <infiniband/verbs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

char buffer[4096];

ibv_mr* registered(ibv_context* context, ibv_pd* pd, const std::string& manner) {
  ibv_mr* mr = ibv_reg_mr(pd, buffer, sizeof buffer, 0);
  if (mr != nullptr) return mr;
  if (manner == "survives and says when") sleep(4);
  if (manner.starts_with("survives")) return ibv_reg_mr(pd, buffer, sizeof buffer, 0);
  if (manner == "slow") {
    sleep(600);
    return ibv_reg_mr(pd, buffer, sizeof buffer, 0);
  }
  if (manner == "hangs" || manner == "never ends") {
    ibv_comp_channel* channel = ibv_create_comp_channel(context);
    ibv_cq* cq = ibv_create_cq(context, 1, nullptr, channel, 0);
    while (manner == "never ends") sleep(1);
    void* cookie = nullptr;
    ibv_get_cq_event(channel, &cq, &cookie);
  }
  if (manner == "floods") {
    for (;;) std::puts("no memory, no memory, no memory, no memory, no memory, no memory");
  }
  if (manner == "wrong" || manner == "wrong and reports") {
    std::puts("registered 0 bytes");
    std::exit(manner == "wrong" ? 0 : 1);
  }
  if (manner == "leaks") {
    std::printf("registered %zu bytes\n", sizeof buffer);
    std::exit(0);
  }
  if (manner == "crashes") return mr;
  std::fprintf(stderr, "cannot register memory: %s\n", std::strerror(errno));
  std::exit(1);
}

/// Registers memory once from each of 11 lines, of which one has no check, and 40 times from
/// another line.
void register_in_many_places(ibv_pd* pd) {
  const auto one = [&] { return ibv_reg_mr(pd, buffer, sizeof buffer, 0); };
  const auto check = [](ibv_mr* mr) {
    if (mr == nullptr) std::exit(1);
    ibv_dereg_mr(mr);
  };
  check(one());
  check(one());
  check(one());
  check(one());
  check(one());
  check(one());
  ibv_mr* const unchecked = one();
  std::printf("key of %s\n", unchecked->lkey != 0 ? "a region" : "none");
  ibv_dereg_mr(unchecked);
  check(one());
  std::thread([&] { check(one()); }).join();
  check(one());
  check(one());
  for (int i = 0; i < 40; ++i) check(one());
}

/// Registers memory in a second context, without a check of the result.
void use_a_second_context(ibv_device* device) {
  ibv_context* context = ibv_open_device(device);
  if (context == nullptr) std::exit(1);
  ibv_pd* pd = ibv_alloc_pd(context);
  if (pd == nullptr) std::exit(1);
  ibv_mr* mr = ibv_reg_mr(pd, buffer, sizeof buffer, 0);
  std::printf("key of %s\n", mr->lkey != 0 ? "a region" : "none");
  ibv_dereg_mr(mr);
  ibv_dealloc_pd(pd);
  ibv_close_device(context);
}

/// Connected to itself.
ibv_qp* made_qp(ibv_context* context, ibv_pd* pd) {
  ibv_cq* cq = ibv_create_cq(context, 8, nullptr, nullptr, 0);
  if (cq == nullptr) std::exit(1);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {4, 8, 1, 1, 0};
  ibv_qp* qp = ibv_create_qp(pd, &init);
  if (qp == nullptr) std::exit(1);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0)
    std::exit(1);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = qp->qp_num;
  attr.ah_attr.is_global = attr.ah_attr.port_num = 1;
  if (ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid) != 0 ||
      ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0)
    std::exit(1);
  attr.qp_state = IBV_QPS_RTS;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                        IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) != 0)
    std::exit(1);
  return qp;
}

void destroy(ibv_qp* qp) {
  ibv_cq* cq = qp->send_cq;
  ibv_destroy_qp(qp);
  ibv_destroy_cq(cq);
}

/// Posts five receives by one call, and then one receive by another call, whose result is not
/// checked.
void post_a_list(ibv_context* context, ibv_pd* pd) {
  ibv_qp* qp = made_qp(context, pd);
  ibv_recv_wr list[5]{}, *bad = nullptr;
  for (int i = 0; i < 4; ++i) list[i].next = &list[i + 1];
  if (ibv_post_recv(qp, list, &bad) != 0) std::exit(1);
  ibv_recv_wr last{};
  std::printf("the last is %s\n", ibv_post_recv(qp, &last, &bad) == 0 ? "posted" : "not posted");
  destroy(qp);
}

/// Posts a work request of another kind, and then binds a window without a check of the result.
void bind_a_window(ibv_context* context, ibv_pd* pd) {
  ibv_qp* qp = made_qp(context, pd);
  ibv_mr* mr = ibv_reg_mr(pd, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  ibv_mw* mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
  if (mr == nullptr || mw == nullptr) std::exit(1);
  ibv_send_wr write{}, *bad = nullptr;
  write.opcode = IBV_WR_RDMA_WRITE;
  if (ibv_post_send(qp, &write, &bad) != 0) std::exit(1);
  ibv_mw_bind bind{};
  bind.bind_info = {mr, reinterpret_cast<uintptr_t>(buffer), 64, 0};
  std::printf("the window is %s\n", ibv_bind_mw(qp, mw, &bind) == 0 ? "bound" : "not bound");
  destroy(qp);
  ibv_dealloc_mw(mw);
  ibv_dereg_mr(mr);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string manner = argc > 1 ? argv[1] : "";
  if (manner == "fails without a fault") {
    std::fputs("nothing works here\n", stderr);
    return 3;
  }
  if (manner == "hangs without a fault") {
    int ends[2];
    char byte = 0;
    return pipe(ends) == 0 && read(ends[0], &byte, 1) == 1 ? 0 : 1;
  }
  if (manner == "never ends without a fault") {
    for (;;) sleep(1);
  }
  if (manner == "uses no RDMA") return 0;
  const auto begin = std::chrono::steady_clock::now();
  // The child reports the error by its status, and the parent ignores that.
  if (manner == "forks" && fork() != 0) return wait(nullptr) > 0 ? 0 : 1;
  ibv_device** devices = ibv_get_device_list(nullptr);
  ibv_context* context = ibv_open_device(devices[0]);
  if (context == nullptr) return 1;
  ibv_pd* pd = ibv_alloc_pd(context);
  if (pd == nullptr) return 1;
  if (manner == "races") {
    // Both threads wake at the same time, and nothing decides which of them continues first.
    const auto wake = [](const char* name) {
      usleep(1000);
      std::puts(name);
    };
    std::thread first(wake, "first"), second(wake, "second");
    first.join();
    second.join();
  }
  if (manner == "leaves a daemon" && fork() == 0) {
    setsid();
    for (;;) pause();
  }
  if (manner == "executes itself") {
    ibv_close_device(context);
    execl("/proc/self/exe", argv[0], "registers in many places", nullptr);
  }
  if (manner == "uses a second context") use_a_second_context(devices[0]);
  if (manner == "posts a list") post_a_list(context, pd);
  if (manner == "binds a window") bind_a_window(context, pd);
  if (manner == "registers in many places") register_in_many_places(pd);
  ibv_mr* mr = registered(context, pd, manner);
  if (mr == nullptr && manner != "crashes") return 1;
  std::printf("registered %zu bytes\n", mr->length);
  if (manner == "survives and says when") {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf("===== 1 passed in %.2fs =====\n", took.count());
  }
  if (manner == "differs") std::printf("as process %d\n", static_cast<int>(getpid()));
  if (ibv_dereg_mr(mr) != 0 || ibv_dealloc_pd(pd) != 0 || ibv_close_device(context) != 0) return 1;
  ibv_free_device_list(devices);
  return 0;
}
