#include "side.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace rocemu::determinism {
namespace {

constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

void modify(ibv_qp* qp, ibv_qp_attr& attr, ibv_qp_state state, int mask) {
  attr.qp_state = state;
  if (ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE) != 0) fail("ibv_modify_qp");
}

}  // namespace

void fail(const std::string& what) {
  std::perror(what.c_str());
  std::exit(1);
}

void say(const std::string& line) {
  const std::string whole = line + "\n";
  if (write(STDOUT_FILENO, whole.data(), whole.size()) != static_cast<ssize_t>(whole.size()))
    fail("write");
}

Device::Device(const char* name) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr) fail("ibv_get_device_list");
  for (int i = 0; i < count && context == nullptr; ++i) {
    if (std::strcmp(ibv_get_device_name(list[i]), name) == 0) context = ibv_open_device(list[i]);
  }
  ibv_free_device_list(list);
  if (context == nullptr) fail("ibv_open_device");
  pd = ibv_alloc_pd(context);
  if (pd == nullptr) fail("ibv_alloc_pd");
}

Device::~Device() {
  ibv_dealloc_pd(pd);
  ibv_close_device(context);
}

Side::Side(Device& device, const Options& options)
    : device_(device),
      size_(options.size),
      buffer_(size_t{2} * options.size),
      owns_cq_(options.cq == nullptr),
      cq_(options.cq) {
  mr_ = ibv_reg_mr(device.pd, buffer_.data(), buffer_.size(), kAccess);
  if (owns_cq_) cq_ = ibv_create_cq(device.context, options.cqe, this, options.channel, 0);
  if (mr_ == nullptr || cq_ == nullptr) fail("ibv_create_cq");
  ibv_qp_init_attr init{};
  init.send_cq = cq_;
  init.recv_cq = options.recv_cq != nullptr ? options.recv_cq : cq_;
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = 1;
  init.cap = {64, 64, 1, 1, 0};
  qp_ = ibv_create_qp(device.pd, &init);
  if (qp_ == nullptr) fail("ibv_create_qp");
  ibv_qp_attr attr{};
  attr.port_num = 1;
  attr.qp_access_flags = kAccess;
  modify(qp_, attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

Side::~Side() {
  ibv_destroy_qp(qp_);
  if (owns_cq_) ibv_destroy_cq(cq_);
  ibv_dereg_mr(mr_);
}

Address Side::address() const {
  Address address{.buffer = reinterpret_cast<uint64_t>(buffer_.data()) + size_,
                  .rkey = mr_->rkey,
                  .qp_num = qp_->qp_num};
  if (ibv_query_gid(device_.context, 1, 0, &address.gid) != 0) fail("ibv_query_gid");
  return address;
}

void Side::connect(const Address& peer) {
  peer_ = peer;
  ibv_qp_attr attr{};
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer.qp_num;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = peer.gid;
  attr.ah_attr.grh.hop_limit = 1;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  modify(qp_, attr, IBV_QPS_RTR,
         IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER);
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  modify(qp_, attr, IBV_QPS_RTS,
         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC);
}

void Side::post_recv(uint64_t wr_id) {
  ibv_sge to{reinterpret_cast<uint64_t>(buffer_.data()) + size_, size_, mr_->lkey};
  ibv_recv_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = &to;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (ibv_post_recv(qp_, &wr, &bad) != 0) fail("ibv_post_recv");
}

void Side::post_send(uint64_t wr_id, ibv_wr_opcode opcode) {
  ibv_sge from{reinterpret_cast<uint64_t>(buffer_.data()), size_, mr_->lkey};
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = &from;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.wr.rdma.remote_addr = peer_.buffer;  // a SEND does not use it
  wr.wr.rdma.rkey = peer_.rkey;
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(qp_, &wr, &bad) != 0) fail("ibv_post_send");
}

bool Side::poll(ibv_wc& wc) {
  const int count = ibv_poll_cq(cq_, 1, &wc);
  if (count < 0) fail("ibv_poll_cq");
  if (count > 0 && wc.status != IBV_WC_SUCCESS)
    fail(std::string("completion: ") + ibv_wc_status_str(wc.status));
  return count > 0;
}

void Side::poll_for(int completions) {
  while (completions > 0) {
    ibv_wc wc{};
    if (poll(wc)) --completions;
  }
}

void connect(Side& a, Side& b) {
  a.connect(b.address());
  b.connect(a.address());
}

void connect_over(Side& side, int socket) {
  const Address ours = side.address();
  Address theirs;
  send_all(socket, &ours, sizeof ours);
  receive_all(socket, &theirs, sizeof theirs);
  side.connect(theirs);
  char ready = 'r';  // a message to a queue pair that is not connected yet would be sent again
  send_all(socket, &ready, 1);
  receive_all(socket, &ready, 1);
}

void send_all(int fd, const void* data, size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t done = write(fd, bytes, size);
    if (done <= 0) fail("write to the peer");
    bytes += done;
    size -= static_cast<size_t>(done);
  }
}

void receive_all(int fd, void* data, size_t size) {
  auto* bytes = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t done = read(fd, bytes, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail("read from the peer");
    bytes += done;
    size -= static_cast<size_t>(done);
  }
}

pid_t start_child(const std::function<void()>& work) {
  const pid_t pid = fork();
  if (pid < 0) fail("fork");
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // ends the child if the parent fails
  work();
  std::exit(0);
}

void wait_for_children(size_t count) {
  while (count > 0) {
    int status = 0;
    const pid_t pid = wait(&status);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) fail("wait");
    if (status != 0) {
      std::fprintf(stderr, "a child ended with status %#x\n", static_cast<unsigned>(status));
      std::exit(1);
    }
    --count;
  }
}

SocketPair::SocketPair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) fail("socketpair");
  ours = ends[0];
  theirs = ends[1];
}

}  // namespace rocemu::determinism
