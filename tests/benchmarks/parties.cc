// Pairs of processes with threads, each of which throws a message to and fro with its counterpart:
// what becomes of latency when many want the processors.
//   parties HOW PAIRS THREADS SECONDS
// HOW a thread waits:
//   poll     for its completions, in one CQ
//   several  the same, and looks at three other CQs in turn
//   memory   for the bytes of an RDMA WRITE, as ib_write_lat does
//   event    in ibv_get_cq_event
// Run under `rocemu run --private`.
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxThreads = 128;  // of all pairs
constexpr size_t kMaxSamples = 1 << 16;
constexpr uint32_t kSize = 64;
constexpr uint32_t kLast = UINT32_MAX;  // the number of the message after which no more come

enum class How { kPoll, kSeveral, kMemory, kEvent };

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

void check(bool worked, const char* what) {
  if (!worked) fail(what);
}

/// What a thread tells its counterpart.
struct End {
  uint32_t qp_num;
  uint32_t rkey;
  uint64_t address;
};

/// What the processes share.
struct Shared {
  pthread_barrier_t barrier;
  std::array<std::array<End, 2>, kMaxThreads> ends;
  std::array<size_t, kMaxThreads> count;
  std::array<std::array<float, kMaxSamples>, kMaxThreads> one_way_us;
};

/// The buffer that the peer's messages go to, and the one that ours are in. Each begins with the
/// number of the message.
struct Buffers {
  alignas(64) std::array<uint32_t, kSize / sizeof(uint32_t)> in{};
  alignas(64) std::array<uint32_t, kSize / sizeof(uint32_t)> out{};
};

/// One end of one pair of threads.
class Party {
 public:
  Party(How how, ibv_context* context, ibv_pd* pd) : how_(how), context_(context) {
    if (how == How::kEvent) {
      channel_ = ibv_create_comp_channel(context);
      check(channel_ != nullptr, "ibv_create_comp_channel");
    }
    cqs_.resize(how == How::kSeveral ? 4 : 1);
    for (ibv_cq*& cq : cqs_) {
      cq = ibv_create_cq(context, 16, nullptr, channel_, 0);
      check(cq != nullptr, "ibv_create_cq");
    }
    if (channel_ != nullptr) check(ibv_req_notify_cq(cqs_[0], 0) == 0, "ibv_req_notify_cq");
    mr_ = ibv_reg_mr(pd, &buffers_, sizeof buffers_,
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
    qp_ = ibv_create_qp(pd, &init);
    check(qp_ != nullptr, "ibv_create_qp");
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    modify(&attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (how_ != How::kMemory) post_receive();
  }

  End end() const {
    return {qp_->qp_num, mr_->rkey, reinterpret_cast<uint64_t>(buffers_.in.data())};
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

  /// The number of the message that has come after `before`.
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

  /// False if there was no completion.
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

void answer(Party& party) {
  for (uint32_t number = 0;;) {
    number = party.receive(number);
    party.send(number);
    if (number == kLast) return;
  }
}

/// As perftest, half of each round trip, in microseconds.
size_t ask(Party& party, std::chrono::duration<double> time,
           std::array<float, kMaxSamples>& one_way_us) {
  const auto begin = Clock::now();
  size_t count = 0;
  uint32_t number = 0;
  for (auto before = begin; before - begin < time && count < kMaxSamples; ++count) {
    party.send(++number);
    party.receive(number - 1);
    const auto after = Clock::now();
    one_way_us[count] = std::chrono::duration<float, std::micro>(after - before).count() / 2;
    before = after;
  }
  party.send(kLast);
  party.receive(number);
  return count;
}

struct Options {
  How how;
  size_t pairs, threads;
  std::chrono::duration<double> time;
};

void work(const Options& options, Shared& shared, size_t pair, size_t side) {
  int devices = 0;
  ibv_device** list = ibv_get_device_list(&devices);
  if (list == nullptr || devices == 0) fail("no device; run this under `rocemu run`");
  ibv_context* context = ibv_open_device(list[0]);
  check(context != nullptr, "ibv_open_device");
  ibv_free_device_list(list);
  ibv_pd* pd = ibv_alloc_pd(context);
  check(pd != nullptr, "ibv_alloc_pd");
  const auto thread_of = [&](size_t number) {
    const size_t index = pair * options.threads + number;
    Party party(options.how, context, pd);
    shared.ends[index][side] = party.end();
    pthread_barrier_wait(&shared.barrier);
    party.connect(shared.ends[index][1 - side]);
    pthread_barrier_wait(&shared.barrier);
    if (side == 0) {
      answer(party);
    } else {
      shared.count[index] = ask(party, options.time, shared.one_way_us[index]);
    }
    pthread_barrier_wait(&shared.barrier);  // what is under way still needs both
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < options.threads; ++i) others.emplace_back(thread_of, i);
  thread_of(0);
  for (std::thread& other : others) other.join();
}

void print(const Options& options, const Shared& shared) {
  std::vector<float> all;
  for (size_t i = 0; i < options.pairs * options.threads; ++i) {
    all.insert(all.end(), shared.one_way_us[i].data(),
               shared.one_way_us[i].data() + shared.count[i]);
  }
  std::sort(all.begin(), all.end());
  if (all.empty()) fail("no message came back");
  const auto at = [&](double part) {
    return all[static_cast<size_t>(static_cast<double>(all.size() - 1) * part)];
  };
  std::printf("one way: %.2f usec typical, %.2f usec 99%%, %.2f usec 99.9%%, %zu messages\n",
              at(0.5), at(0.99), at(0.999), 2 * all.size());
}

bool parse(int argc, char** argv, Options& options) {
  if (argc != 5) return false;
  const std::array<std::string, 4> names{"poll", "several", "memory", "event"};
  const auto* const name = std::find(names.begin(), names.end(), argv[1]);
  if (name == names.end()) return false;
  options = {static_cast<How>(name - names.begin()), std::strtoul(argv[2], nullptr, 10),
             std::strtoul(argv[3], nullptr, 10),
             std::chrono::duration<double>(std::strtod(argv[4], nullptr))};
  return options.pairs >= 1 && options.pairs <= kMaxThreads && options.threads >= 1 &&
         options.threads <= kMaxThreads / options.pairs && options.time.count() > 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: parties poll|several|memory|event PAIRS THREADS SECONDS\n"
                 "PAIRS times THREADS: at most %zu\n",
                 kMaxThreads);
    return 2;
  }
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  check(memory != MAP_FAILED, "mmap");
  Shared& shared = *new (memory) Shared;
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared.barrier, &attributes,
                       static_cast<unsigned>(2 * options.pairs * options.threads));
  const pid_t parent = getpid();
  for (size_t i = 0; i < 2 * options.pairs; ++i) {
    const pid_t child = fork();
    check(child >= 0, "fork");
    if (child != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent) work(options, shared, i / 2, i % 2);
    std::exit(0);
  }
  for (size_t left = 2 * options.pairs; left != 0; --left) {
    int status;
    check(wait(&status) > 0, "wait");
    if (status != 0) return 1;  // it has said why; the others end with us
  }
  print(options, shared);
}
