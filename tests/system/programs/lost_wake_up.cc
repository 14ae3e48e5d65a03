// Two QPs of two devices exchange messages. One thread sends. The other one waits for an event
// before each message, in one of two ways.
//
// usage: lost_wake_up WAY [processes]
//   wrong   polls the empty CQ, arms it and waits: a completion between the poll and
//           ibv_req_notify_cq(3) makes no event, and the program waits for ever
//   right   arms the CQ, polls it and waits
// With "processes" the sender is a child process.
#include <infiniband/verbs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

constexpr int kMessages = 5;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

struct Address {
  ibv_gid gid;
  uint32_t qp;
};

struct Side {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
  ibv_mr* mr = nullptr;
  uint8_t buffer[64] = {};

  explicit Side(int device) {
    ibv_device** devices = ibv_get_device_list(nullptr);
    context = devices != nullptr ? ibv_open_device(devices[device]) : nullptr;
    if (context == nullptr) fail("ibv_open_device");
    pd = ibv_alloc_pd(context);
    channel = ibv_create_comp_channel(context);
    cq = ibv_create_cq(context, 16, nullptr, channel, 0);
    if (cq == nullptr) fail("ibv_create_cq");
    mr = ibv_reg_mr(pd, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    init.cap = {8, 8, 1, 1, 0};
    qp = ibv_create_qp(pd, &init);
    if (qp == nullptr) fail("ibv_create_qp");
    ibv_qp_attr attr{};
    attr.port_num = 1;
    modify(attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  }

  Address address() const {
    Address own{{}, qp->qp_num};
    if (ibv_query_gid(context, 1, 0, &own.gid) != 0) fail("ibv_query_gid");
    return own;
  }

  void modify(ibv_qp_attr& attr, ibv_qp_state state, int mask) const {
    attr.qp_state = state;
    if (ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE) != 0) fail("ibv_modify_qp");
  }

  void connect(const Address& peer) const {
    ibv_qp_attr attr{};
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = peer.qp;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.dgid = peer.gid;
    modify(attr, IBV_QPS_RTR,
           IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr.timeout = 14;
    attr.retry_cnt = attr.rnr_retry = 7;
    modify(attr, IBV_QPS_RTS,
           IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC);
  }

  void post_receive() const {
    ibv_sge sge{reinterpret_cast<uint64_t>(buffer), sizeof buffer, mr->lkey};
    ibv_recv_wr work{}, *bad = nullptr;
    work.sg_list = &sge;
    work.num_sge = 1;
    if (ibv_post_recv(qp, &work, &bad) != 0) fail("ibv_post_recv");
  }

  int poll() const {
    ibv_wc wc{};
    const int count = ibv_poll_cq(cq, 1, &wc);
    if (count < 0 || (count > 0 && wc.status != IBV_WC_SUCCESS)) fail("ibv_poll_cq");
    return count;
  }

  void wait_for_event() const {
    ibv_cq* of = nullptr;
    void* its = nullptr;
    if (ibv_get_cq_event(channel, &of, &its) != 0) fail("ibv_get_cq_event");
    ibv_ack_cq_events(of, 1);
  }

  void arm() const {
    if (ibv_req_notify_cq(cq, 0) != 0) fail("ibv_req_notify_cq");
  }
};

void send(const Side& side) {
  for (int i = 0; i < kMessages; ++i) {
    ibv_sge sge{reinterpret_cast<uint64_t>(side.buffer), 8, side.mr->lkey};
    ibv_send_wr work{}, *bad = nullptr;
    work.sg_list = &sge;
    work.num_sge = 1;
    work.opcode = IBV_WR_SEND;
    if (ibv_post_send(side.qp, &work, &bad) != 0) fail("ibv_post_send");
    while (side.poll() == 0) {
    }
  }
}

void receive(const Side& side, bool is_right) {
  for (int got = 0; got < kMessages;) {
    if (is_right) side.arm();
    if (side.poll() != 0) {
      std::printf("message %d\n", got++);
      std::fflush(stdout);
      continue;
    }
    if (!is_right) side.arm();
    side.wait_for_event();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_right = argc > 1 && std::strcmp(argv[1], "right") == 0;
  if (argc < 2 || (!is_right && std::strcmp(argv[1], "wrong") != 0)) return 2;
  if (argc > 2) {
    int to_child[2], to_parent[2];
    if (pipe(to_child) != 0 || pipe(to_parent) != 0) fail("pipe");
    const pid_t child = fork();
    const bool sends = child == 0;
    const Side side(sends ? 1 : 0);
    if (!sends)
      for (int i = 0; i < kMessages; ++i) side.post_receive();
    const Address own = side.address();
    Address peer{};
    if (write(sends ? to_parent[1] : to_child[1], &own, sizeof own) != sizeof own ||
        read(sends ? to_child[0] : to_parent[0], &peer, sizeof peer) != sizeof peer)
      fail("the peer's address");
    side.connect(peer);
    if (sends) {
      send(side);
      return 0;
    }
    receive(side, is_right);
    int status = 0;
    waitpid(child, &status, 0);
    return status == 0 ? 0 : 1;
  }
  const Side receiver(0), sender(1);
  for (int i = 0; i < kMessages; ++i) receiver.post_receive();
  receiver.connect(sender.address());
  sender.connect(receiver.address());
  std::thread thread(send, std::cref(sender));
  receive(receiver, is_right);
  thread.join();
}
