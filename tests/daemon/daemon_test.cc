// Tests the whole daemon, with its engine, in a thread. The test communicates with it like a
// provider.
#include "emulator/daemon/daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "tests/daemon/temp_dir.h"
#include "tests/daemon/test_client.h"

namespace rocemu::daemon {
namespace {

using abi::Op;
using testing::HasSubstr;

class RunningDaemon {
 public:
  /// Calls `before` when clients can already connect to the devices, but before any client is
  /// served.
  explicit RunningDaemon(
      const std::string& dir, const std::string& capture = "",
      const std::function<void(const std::string& device)>& before = [](const auto&) {})
      : dir_(dir) {
    Options options;
    options.dir = dir;
    options.fabric = engine::default_fabric(2);
    options.fabric.trace_frames = !capture.empty();
    options.capture = capture;
    daemon_ = std::make_unique<Daemon>(std::move(options));
    before(device(0));
    thread_ = std::thread([this] { daemon_->run(); });
  }
  ~RunningDaemon() { stop(); }

  nlohmann::json command(const std::string& name) {
    return request("{\"command\":\"" + name + "\"}");
  }
  nlohmann::json request(const std::string& line) {
    return nlohmann::json::parse(ask_control(dir_ + "/control", line + "\n"));
  }
  void stop() {
    if (!thread_.joinable()) return;
    EXPECT_TRUE(command("shutdown")["ok"]);
    thread_.join();
  }
  std::string device(int index) const {
    return dir_ + "/dev/infiniband/uverbs" + std::to_string(index);
  }

 private:
  std::string dir_;
  std::unique_ptr<Daemon> daemon_;
  std::thread thread_;
};

/// An RC QP with a CQ for both queues, and a registered buffer.
struct Endpoint {
  explicit Endpoint(const std::string& device) : client(device) {
    pd = client.ask(Op::kAllocPd).body.object.handle;
    buffer.resize(4096);
    abi::Request request = client.request(Op::kRegMr);
    request.body.reg_mr.pd = pd;
    request.body.reg_mr.access = abi::kAccessLocalWrite;
    request.body.reg_mr.address = request.body.reg_mr.iova =
        reinterpret_cast<uint64_t>(buffer.data());
    request.body.reg_mr.length = buffer.size();
    lkey = client.ask(request).body.reg_mr.lkey;

    request = client.request(Op::kCreateCq);
    request.body.create_cq.capacity = 16;
    abi::Reply reply = client.ask(request);
    cq = reply.body.create_cq.handle;
    cq_memory = client.at(reply.body.create_cq.memory);

    request = client.request(Op::kCreateQp);
    request.body.create_qp.pd = pd;
    request.body.create_qp.send_cq = request.body.create_qp.recv_cq = cq;
    request.body.create_qp.type = abi::QpType::kRc;
    request.body.create_qp.sq_sig_all = 1;
    request.body.create_qp.cap = {8, 8, 1, 1, 0};
    reply = client.ask(request);
    qpn = reply.body.create_qp.qpn;
    send = reply.body.create_qp.send;
    recv = reply.body.create_qp.recv;
    qp_memory = client.at(reply.body.create_qp.memory);
  }

  int modify(abi::QpState state, uint32_t mask, uint32_t peer_qpn = 0) {
    abi::Request request = client.request(Op::kModifyQp);
    auto& modify = request.body.modify_qp;
    modify.qpn = qpn;
    modify.mask = mask | abi::kAttrState;
    modify.attr.qp_state = static_cast<uint32_t>(state);
    modify.attr.port_num = 1;
    modify.attr.path_mtu = static_cast<uint32_t>(abi::Mtu::k1024);
    modify.attr.dest_qp_num = peer_qpn;
    modify.attr.ah_attr.port_num = 1;
    modify.attr.timeout = 14;
    modify.attr.retry_cnt = modify.attr.rnr_retry = 7;
    return client.ask(request).error;
  }
  void connect(uint32_t peer_qpn) {
    using namespace abi;
    EXPECT_EQ(modify(QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrAccessFlags), 0);
    EXPECT_EQ(modify(QpState::kRtr,
                     kAttrAv | kAttrPathMtu | kAttrDestQpn | kAttrRqPsn | kAttrMaxDestRdAtomic |
                         kAttrMinRnrTimer,
                     peer_qpn),
              0);
    EXPECT_EQ(modify(QpState::kRts, kAttrSqPsn | kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry |
                                        kAttrMaxQpRdAtomic),
              0);
  }
  void post_recv(uint64_t wr_id) {
    const abi::Sge sge{reinterpret_cast<uint64_t>(buffer.data()), 4096, lkey};
    std::byte* slot = qp_memory + recv.offset + (posted_recv % recv.slots) * recv.stride;
    const abi::RecvWqe wqe{wr_id, 1, 0};
    std::memcpy(slot, &wqe, sizeof wqe);
    std::memcpy(slot + sizeof wqe, &sge, sizeof sge);
    client.ring(abi::DoorbellKind::kRecv, qpn, ++posted_recv);
  }
  void post_send(uint64_t wr_id, uint32_t length) {
    const abi::Sge sge{reinterpret_cast<uint64_t>(buffer.data()), length, lkey};
    std::byte* slot = qp_memory + send.offset + (posted_send % send.slots) * send.stride;
    abi::SendWqe wqe{};
    wqe.wr_id = wr_id;
    wqe.opcode = static_cast<uint32_t>(abi::WrOpcode::kSend);
    wqe.num_sge = 1;
    std::memcpy(slot, &wqe, sizeof wqe);
    std::memcpy(slot + sizeof wqe, &sge, sizeof sge);
    client.ring(abi::DoorbellKind::kSend, qpn, ++posted_send);
  }
  abi::Cqe poll() {
    auto* ring = reinterpret_cast<abi::CqRing*>(cq_memory);
    while (ring->producer.load(std::memory_order_acquire) == polled) sched_yield();
    const abi::Cqe cqe = ring->entries[polled % 16];
    ring->consumer.store(++polled, std::memory_order_release);
    return cqe;
  }

  TestClient client;
  uint32_t pd, cq, qpn, lkey;
  std::vector<uint8_t> buffer;
  std::byte* cq_memory = nullptr;
  std::byte* qp_memory = nullptr;
  abi::WorkQueueLayout send, recv;
  uint32_t posted_send = 0, posted_recv = 0, polled = 0;
};

TEST(Daemon, CarriesMessagesBetweenTwoClients) {
  const TempDir temp;
  RunningDaemon daemon(temp / "nic");
  Endpoint a(daemon.device(0)), b(daemon.device(1));
  a.connect(b.qpn);
  b.connect(a.qpn);
  for (uint32_t i = 0; i < 100; ++i) {
    b.post_recv(i);
    std::memset(a.buffer.data(), static_cast<int>(i), 1500);
    a.post_send(1000 + i, 1500);
    const abi::Cqe received = b.poll();
    EXPECT_EQ(received.wr_id, i);
    EXPECT_EQ(received.status, 0u);
    EXPECT_EQ(received.byte_len, 1500u);
    EXPECT_EQ(b.buffer[1499], static_cast<uint8_t>(i));
    const abi::Cqe sent = a.poll();
    EXPECT_EQ(sent.wr_id, 1000 + i);
    EXPECT_EQ(sent.status, 0u);
  }
}

TEST(Daemon, ShowsVersionDevicesAndObjects) {
  const TempDir temp;
  RunningDaemon daemon(temp / "nic");
  Endpoint a(daemon.device(0));
  a.connect(a.qpn);
  const nlohmann::json version = daemon.command("version");
  EXPECT_EQ(version["version"], ROCEMU_VERSION);
  EXPECT_EQ(version["pid"], getpid());
  EXPECT_EQ(version["devices"], (std::vector<std::string>{"rocemu0", "rocemu1"}));

  const nlohmann::json state = daemon.command("show");
  ASSERT_EQ(state["clients"].size(), 1u);
  EXPECT_EQ(state["clients"][0]["pid"], getpid());
  EXPECT_EQ(state["clients"][0]["device"], "rocemu0");
  const nlohmann::json& device = state["fabric"]["devices"][0];
  EXPECT_EQ(device["name"], "rocemu0");
  EXPECT_EQ(device["port_state"], "ACTIVE");
  ASSERT_EQ(device["qps"].size(), 1u);
  EXPECT_EQ(device["qps"][0]["number"], a.qpn);
  EXPECT_EQ(device["qps"][0]["type"], "RC");
  EXPECT_EQ(device["qps"][0]["state"], "RTS");
  EXPECT_EQ(device["qps"][0]["pid"], getpid());
  EXPECT_EQ(device["cqs"].size(), 1u);
  EXPECT_EQ(device["mrs"].size(), 1u);
  EXPECT_TRUE(state["fabric"]["devices"][1]["qps"].empty());
}

TEST(Daemon, ShowsNoMoreCompletionsThanACqHolds) {
  const TempDir temp;
  RunningDaemon daemon(temp / "nic");
  Endpoint a(daemon.device(0));
  reinterpret_cast<abi::CqRing*>(a.cq_memory)->consumer.store(77);  // more than the CQ ever had
  EXPECT_EQ(daemon.command("show")["fabric"]["devices"][0]["cqs"][0]["waiting"], 16);
}

// Receives that are posted in RESET are not lost, and their number has no limit, since the client
// keeps the WQEs. Requests of other clients must be answered long before the daemon has read all of
// these doorbells.
TEST(Daemon, ReceiveDoorbellsOfOneClientDoNotKeepTheOthersWaiting) {
  constexpr uint32_t kSlots = 1 << 20, kBells = 64;
  const TempDir temp;
  RunningDaemon daemon(temp / "nic");
  Endpoint greedy(daemon.device(0));
  TestClient other(daemon.device(0));
  abi::Request request = TestClient::request(Op::kCreateQp);
  request.body.create_qp.pd = greedy.pd;
  request.body.create_qp.send_cq = request.body.create_qp.recv_cq = greedy.cq;
  request.body.create_qp.type = abi::QpType::kRc;
  request.body.create_qp.cap = {1, kSlots, 1, 1, 0};
  const abi::Reply reply = greedy.client.ask(request);
  ASSERT_EQ(reply.error, 0);
  for (uint32_t n = 1; n <= kBells; ++n) {
    greedy.client.ring(abi::DoorbellKind::kRecv, reply.body.create_qp.qpn, uint64_t{n} * kSlots);
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(other.ask(Op::kAllocPd).error, 0);
  EXPECT_LT(greedy.client.doorbells().consumer.load(), kBells);
}

/// A TCP connection with more data in flight than the peer can buffer. If it is closed by close(2)
/// of its last descriptor, close(2) waits for the peer, at most SO_LINGER seconds.
class LingeringSocket {
 public:
  explicit LingeringSocket(int seconds) {
    const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener.get(), any, size), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    EXPECT_EQ(getsockname(listener.get(), any, &size), 0);
    ours = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(ours.get(), any, size), 0);
    peer = UniqueFd(accept(listener.get(), nullptr, nullptr));
    const std::vector<char> data(1 << 20);
    while (send(ours.get(), data.data(), data.size(), MSG_DONTWAIT) > 0) {
    }
    const linger wait{1, seconds};
    EXPECT_EQ(setsockopt(ours.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof wait), 0);
  }

  UniqueFd ours, peer;
};

TEST(Daemon, ADescriptorWhoseCloseTakesLongDelaysNobody) {
  const TempDir temp;
  UniqueFd sender, peer;
  // The daemon must hold the last descriptor of the socket when it reads the message, so this
  // function sends the message and closes the test's descriptor before any client is served.
  RunningDaemon daemon(temp / "nic", "", [&](const std::string& device) {
    LingeringSocket socket(20);
    peer = std::move(socket.peer);
    sender = connect_to(device, SOCK_SEQPACKET);
    const abi::Request request = TestClient::request(Op::kDestroyCq);
    const int fds[] = {socket.ours.get()};
    EXPECT_EQ(send_message(sender.get(), std::as_bytes(std::span(&request, 1)), fds),
              SendStatus::kOk);
  });
  const auto before = std::chrono::steady_clock::now();
  TestClient other(daemon.device(0));
  EXPECT_EQ(other.ask(Op::kAllocPd).error, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(10));
}

TEST(Daemon, AGarbageDoorbellEndsItsClientAndNoOther) {
  const TempDir temp;
  RunningDaemon daemon(temp / "nic");
  Endpoint good(daemon.device(0));
  TestClient bad(daemon.device(0));
  bad.ring(abi::DoorbellKind::kSend, good.qpn, 1);  // the QP belongs to another client
  EXPECT_TRUE(bad.is_ended());
  EXPECT_EQ(good.client.ask(Op::kAllocPd).error, 0);
  EXPECT_EQ(daemon.command("show")["clients"].size(), 1u);
}

TEST(Daemon, AClientThatLeavesTakesItsObjectsWithIt) {
  const TempDir temp;
  RunningDaemon daemon(temp / "nic");
  { Endpoint gone(daemon.device(0)); }
  // The thread that answers `show` also detects that a client disconnected, but may answer first.
  nlohmann::json state = daemon.command("show");
  while (!state["clients"].empty()) state = daemon.command("show");
  EXPECT_TRUE(state["fabric"]["devices"][0]["qps"].empty());
  EXPECT_TRUE(state["fabric"]["devices"][0]["mrs"].empty());
}

TEST(Daemon, LeavesOnlyItsCaptureBehind) {
  const TempDir temp;
  {
    RunningDaemon daemon(temp / "nic", temp / "out.pcap");
    Endpoint a(daemon.device(0)), b(daemon.device(1));
    a.connect(b.qpn);
    b.connect(a.qpn);
    b.post_recv(1);
    a.post_send(2, 3000);  // 3 packets of the message and an acknowledgement
    a.poll();
  }
  EXPECT_GT(std::filesystem::file_size(temp / "out.pcap"), 3000u);
  EXPECT_FALSE(std::filesystem::exists(temp / "nic"));
}

TEST(Daemon, LeavesNothingBehindWhenItCannotStart) {
  const TempDir temp;
  EXPECT_THROW(RunningDaemon(temp / "nic", temp / "no/such/out.pcap"), StartError);
  EXPECT_FALSE(std::filesystem::exists(temp / "nic"));
}

TEST(Daemon, RefusesAnInvalidRequestWithoutEffect) {
  const TempDir temp;
  RunningDaemon daemon(temp / "nic");
  const std::pair<const char*, const char*> requests[] = {
      {R"("command":"set","removed":false)", "device"},
      {R"("command":"set","device":"rocemu0","removed":false)", "removed"},
      {R"("command":"set","device":"rocemu0","removed":null)", "removed"},
      {R"("command":"set","device":"rocemu0","removed":1)", "removed"},
      {R"("command":"set","device":"rocemu0","removed":"true")", "removed"},
      {R"("command":"set","device":"rocemu0","removed":true,"port":"up")", "either"},
      {R"("command":"set","device":"rocemu0")", "either"},
      {R"("command":"set","device":"rocemu0","port":true)", "port"},
      {R"("command":"set","device":"rocemu0","port":"Down")", "port"},
      {R"("command":"set","device":["rocemu0"],"port":"down")", "device"},
      {R"("command":"set","device":"rocemu9","port":"down")", "rocemu9"},
      {R"("command":"set","device":"rocemu0","port":"down","force":true)", "force"},
      {R"("command":"pause","frames":1)", "frames"},
      {R"("command":"step","frames":0)", "paused"},
      {R"("command":"clock","held":0)", "held"},
      {R"("command":"clock","now_ns":0)", "now_ns"},
      {R"("command":"advance","ns":-1)", "real"},
      {R"("command":"inject","rule":1)", "rule"},
      {R"("command":"inject")", "either"},
      {R"("command":"clear","name":null)", "name"},
      {R"("command":"shutdown","when":"never")", "when"},
  };
  for (const auto& [fields, named] : requests) {
    const nlohmann::json reply = daemon.request("{" + std::string(fields) + "}");
    EXPECT_FALSE(reply["ok"]) << fields;
    EXPECT_THAT(reply.value("error", ""), HasSubstr(named)) << fields;
  }
  const nlohmann::json show = daemon.command("show");
  EXPECT_EQ(show["fabric"]["devices"].size(), 2u);
  EXPECT_TRUE(std::filesystem::exists(daemon.device(0)));
  EXPECT_TRUE(daemon.request(R"({"command":"set","device":"rocemu0","removed":true})")["ok"]);
  EXPECT_FALSE(std::filesystem::exists(daemon.device(0)));
}

}  // namespace
}  // namespace rocemu::daemon
