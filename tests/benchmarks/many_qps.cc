// Measures a NIC with many QPs: N connected RC QPs of one process, each of which sends and
// receives, for N from 2 to 16,384. Prints a line for each N:
//   N qps, NANOSECONDS ns a message, BYTES of the daemon for each QP
// `many_qps idle N` prints "idle" once N QPs are connected, and then does nothing until its input
// ends. Run it under `rocemu run --private`. If ROCEMUD_PID is set, the program measures the memory
// of that process.
#include <infiniband/verbs.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

constexpr uint32_t kMaxQps = 16384;
constexpr uint32_t kMessages = 1 << 16;  // in each measurement
constexpr uint32_t kInFlight = 64;
constexpr uint32_t kSize = 64;
constexpr int kRounds = 5;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

ibv_context* open_device() {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr || count == 0) fail("no device; run this under `rocemu run`");
  ibv_context* context = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  if (context == nullptr) fail("ibv_open_device");
  return context;
}

/// Returns the private memory of the process in bytes, that is, the memory that it shares with no
/// other process.
uint64_t memory_of(const char* pid) {
  std::ifstream file(std::string("/proc/") + pid + "/smaps_rollup");
  std::string word;
  uint64_t sum = 0, kilobytes = 0;
  while (file >> word) {
    if ((word == "Private_Clean:" || word == "Private_Dirty:") && file >> kilobytes) {
      sum += kilobytes * 1024;
    }
  }
  return sum;
}

void connect(ibv_qp* qp, uint32_t peer, const ibv_gid& gid) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0) {
    fail("to INIT");
  }
  attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = peer;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = gid;
  attr.ah_attr.grh.hop_limit = 64;
  attr.ah_attr.port_num = 1;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0) {
    fail("to RTR");
  }
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 18;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                        IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) != 0) {
    fail("to RTS");
  }
}

class Bench {
 public:
  Bench() : context_(open_device()), buffer_(kSize * 2) {
    pd_ = ibv_alloc_pd(context_);
    mr_ = ibv_reg_mr(pd_, buffer_.data(), buffer_.size(), IBV_ACCESS_LOCAL_WRITE);
    cq_ = ibv_create_cq(context_, 4 * kInFlight, nullptr, nullptr, 0);
    if (pd_ == nullptr || mr_ == nullptr || cq_ == nullptr) fail("PD, MR or CQ");
    if (ibv_query_gid(context_, 1, 0, &gid_) != 0) fail("ibv_query_gid");
  }

  /// Creates QPs until there are `count`. Each pair of consecutive QPs is connected.
  void grow_to(uint32_t count) {
    while (qps_.size() < count) {
      ibv_qp* pair[2];
      for (ibv_qp*& qp : pair) {
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = cq_;
        init.qp_type = IBV_QPT_RC;
        init.cap = {.max_send_wr = 4,
                    .max_recv_wr = 4,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = 0};
        qp = ibv_create_qp(pd_, &init);
        if (qp == nullptr) fail("ibv_create_qp");
      }
      connect(pair[0], pair[1]->qp_num, gid_);
      connect(pair[1], pair[0]->qp_num, gid_);
      qps_.insert(qps_.end(), {pair[0], pair[1]});
    }
  }

  /// Sends a message on every QP in turn to its peer. Returns the nanoseconds per message.
  double run() {
    const auto start = std::chrono::steady_clock::now();
    uint32_t sent = 0, done = 0;  // `done` counts both ends of each message
    while (done < 2 * kMessages) {
      // Each QP receives at most one message at a time, so that it needs only one posted receive.
      const auto window = std::min<uint32_t>(kInFlight, static_cast<uint32_t>(qps_.size()));
      while (sent < kMessages && 2 * sent - done < 2 * window) post(sent++);
      ibv_wc wc[32];
      const int polled = ibv_poll_cq(cq_, 32, wc);
      if (polled < 0) fail("ibv_poll_cq");
      for (int i = 0; i < polled; ++i) {
        if (wc[i].status != IBV_WC_SUCCESS) {
          std::fprintf(stderr, "a message failed: %s\n", ibv_wc_status_str(wc[i].status));
          std::exit(1);
        }
      }
      done += static_cast<uint32_t>(polled);
    }
    const auto taken = std::chrono::steady_clock::now() - start;
    return std::chrono::duration<double, std::nano>(taken).count() / kMessages;
  }

 private:
  void post(uint32_t number) {
    ibv_qp* sender = qps_[number % qps_.size()];
    ibv_qp* receiver = qps_[(number % qps_.size()) ^ 1];
    ibv_sge sge{reinterpret_cast<uint64_t>(buffer_.data()), kSize, mr_->lkey};
    ibv_recv_wr recv{};
    recv.sg_list = &sge;
    recv.num_sge = 1;
    ibv_recv_wr* bad_recv;
    if (ibv_post_recv(receiver, &recv, &bad_recv) != 0) fail("ibv_post_recv");
    ibv_sge from = sge;
    from.addr += kSize;
    ibv_send_wr send{};
    send.sg_list = &from;
    send.num_sge = 1;
    send.opcode = IBV_WR_SEND;
    send.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad_send;
    if (ibv_post_send(sender, &send, &bad_send) != 0) fail("ibv_post_send");
  }

  ibv_context* context_;
  std::vector<char> buffer_;
  ibv_pd* pd_;
  ibv_mr* mr_;
  ibv_cq* cq_;
  ibv_gid gid_{};
  std::vector<ibv_qp*> qps_;
};

}  // namespace

int main(int argc, char** argv) {
  Bench bench;
  if (argc == 3 && std::strcmp(argv[1], "idle") == 0) {
    bench.grow_to(static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10)));
    std::puts("idle");
    std::fflush(stdout);
    while (std::getchar() != EOF) continue;
    return 0;
  }
  const char* daemon = std::getenv("ROCEMUD_PID");
  const uint64_t memory_before = daemon != nullptr ? memory_of(daemon) : 0;
  for (uint32_t count = 2; count <= kMaxQps; count *= 2) {
    bench.grow_to(count);
    const uint64_t memory = daemon != nullptr ? memory_of(daemon) : 0;
    std::vector<double> rounds;
    for (int i = 0; i < kRounds; ++i) rounds.push_back(bench.run());
    std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
    std::printf("%u qps, %.0f ns a message", count, rounds[kRounds / 2]);
    if (daemon != nullptr && count > 64) {
      std::printf(", %.0f bytes of the daemon for each QP",
                  static_cast<double>(memory - memory_before) / count);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}
