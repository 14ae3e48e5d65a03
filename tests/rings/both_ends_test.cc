// Tests the rings between a program's thread, which uses the provider's functions, and the daemon's
// thread, which uses the daemon's functions. Everything that one thread publishes must reach the
// other one completely, in order, and without a lost wake-up. docs/design/shared-memory-order.md
// lists the memory orders that this needs; ThreadSanitizer checks them, too.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "emulator/daemon/client/client_queues.h"
#include "emulator/daemon/client/ring_pump.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/polling/empty_poll.h"
#include "verbs_provider/structs/cq.h"
#include "verbs_provider/structs/qp.h"

namespace rocemu {
namespace {

constexpr uint32_t kQp = 17, kCq = 5, kGeneration = 3;
constexpr uint32_t kNearTheEnd = 0xffff'ffff - 100;  // indices wrap at 2^32
constexpr uint32_t kBudget = 256;
/// The longest time for which the daemon sleeps. If it sleeps that long, a doorbell did not wake
/// it.
constexpr int kLostMs = 20'000;

using Payload = std::array<uint64_t, 6>;

Payload payload_of(uint64_t wr_id) {
  Payload payload;
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = wr_id * 0x9e37'79b9'7f4a'7c15 + i;
  return payload;
}

abi::Cqe completion_of(uint64_t wr_id) {
  abi::Cqe cqe{};
  cqe.wr_id = wr_id;
  cqe.byte_len = static_cast<uint32_t>(wr_id * 7);
  cqe.qp_num = kQp;
  cqe.qp_generation = kGeneration;
  cqe.src_qp = static_cast<uint32_t>(wr_id * 11);
  cqe.wc_flags = IBV_WC_WITH_IMM;
  cqe.imm_data = static_cast<uint32_t>(wr_id * 13);
  cqe.wqe_count = static_cast<uint32_t>(wr_id + 1);
  cqe.queue = abi::WorkQueue::kSend;
  return cqe;
}

/// The daemon's end, in a thread: sleeps when it finds no work, and completes each WQE.
class DaemonEnd : public daemon::EnginePort {
 public:
  DaemonEnd(uint32_t max_wr, uint64_t requests)
      : requests_(requests), wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    client.id = {1};
    client.doorbell_memory = take(sizeof(abi::DoorbellRing));
    std::memset(client.doorbell_memory.data(), 0, sizeof(abi::DoorbellRing));
    client.doorbells().producer = client.doorbells().consumer = kNearTheEnd;
    client.doorbells_consumed = client.receives_taken = kNearTheEnd;
    plan = daemon::plan_qp_memory({.max_send_wr = max_wr,
                                   .max_recv_wr = 0,
                                   .max_send_sge = 1,
                                   .max_recv_sge = 1,
                                   .max_inline_data = sizeof(Payload)});
    daemon::QueuePair qp;
    qp.memory = take(plan.size);
    qp.send = {qp.memory.data() + plan.send.offset, plan.send.slots, plan.send.stride, 0};
    client.qps.insert(kQp, std::move(qp));
    daemon::Arena::Piece memory = take(daemon::cq_memory_size(max_wr));
    cq_ring = reinterpret_cast<abi::CqRing*>(memory.data());
    client.cqs.insert(kCq, daemon::CompletionQueue(std::move(memory), max_wr, 0, {}));
  }
  ~DaemonEnd() override { close(wake_fd_); }

  void run() {
    daemon::RingPump pump(*this);
    daemon::CompletionQueue& cq = *client.cqs.find(kCq);
    while (completed_ < requests_ && error.empty()) {
      const daemon::RingPump::Result result =
          pump.run(client, daemon::RingPump::end_of(client), kBudget);
      if (result.violation != nullptr) error = result.violation;
      if (result.worked) continue;
      if (std::exchange(told_, false)) cq.wake_waiting();
      client.set_daemon_sleeping(true);
      if (!client.has_doorbells()) sleep();
      client.set_daemon_sleeping(false);
    }
    cq.wake_waiting();
  }

  void submit(const engine::Input& input) override {
    const auto* post = std::get_if<engine::PostSend>(&input);
    if (post == nullptr || post->wqes.size() != plan.send.stride) {
      error = "what was submitted is not one send WQE";
      return;
    }
    abi::SendWqe wqe;
    Payload payload;
    std::memcpy(&wqe, post->wqes.data(), sizeof wqe);
    std::memcpy(&payload, post->wqes.data() + sizeof wqe, sizeof payload);
    if (wqe.wr_id != completed_ || payload != payload_of(completed_)) {
      error = "WQE " + std::to_string(completed_) + " is not as it was posted";
    }
    daemon::CompletionQueue& cq = *client.cqs.find(kCq);
    if (cq.produced() - cq.consumed() >= cq.capacity()) error = "the CQ is full";
    cq.add(completion_of(completed_++));
    if (cq.publish()) told_ = true;
  }
  abi::Reply command(engine::ClientId, const abi::Request&) override { return {}; }
  engine::CmReply cm_command(const engine::CmCommand&) override { return {}; }

  int wake_fd() const { return wake_fd_; }

  daemon::ClientQueues client;
  daemon::QpMemoryPlan plan;
  abi::CqRing* cq_ring;
  std::string error;  // may be read after the thread has ended
  uint64_t sleeps = 0;

 private:
  daemon::Arena::Piece take(uint64_t size) { return std::move(*client.arena.take(size)); }
  void sleep() {
    ++sleeps;
    pollfd entry{wake_fd_, POLLIN, 0};
    if (::poll(&entry, 1, kLostMs) != 1) error = "a doorbell did not wake the daemon";
    uint64_t count;
    if (read(wake_fd_, &count, sizeof count) < 0 && errno != EAGAIN) error = "no eventfd";
  }

  uint64_t requests_;
  uint64_t completed_ = 0;
  bool told_ = false;  // the program waits for more completions than were published
  int wake_fd_;
};

/// The program's end, which uses the provider's functions on the same memory.
class ProgramEnd {
 public:
  ProgramEnd(const DaemonEnd& daemon, uint32_t max_wr)
      : context_(static_cast<provider::Context*>(calloc(1, sizeof(provider::Context)))) {
    new (&context_->parts) provider::Context::Parts();
    ibv_context& base = context_->context;
    base.abi_compat = reinterpret_cast<void*>(UINTPTR_MAX);
    verbs_get_ctx(&context_->context)->sz = sizeof(verbs_context);
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, connection_), 0);
    context_->parts.doorbells.attach(&daemon.client.doorbells(), daemon.wake_fd(), connection_[0]);

    cq.verbs.cq = {};
    cq.verbs.cq.context = &base;
    cq.verbs.cq.handle = kCq;
    cq.ring = daemon.cq_ring;
    cq.ring_mask = std::bit_ceil(max_wr) - 1;

    qp.verbs.qp = {};
    ibv_qp& queue_pair = qp.verbs.qp;
    queue_pair.context = &base;
    queue_pair.qp_num = kQp;
    queue_pair.qp_type = IBV_QPT_RC;
    queue_pair.send_cq = queue_pair.recv_cq = &cq.verbs.cq;
    qp.generation = kGeneration;
    qp.max_inline_data = sizeof(Payload);
    qp.state = abi::QpState::kRts;
    const daemon::QueuePair& queues = *daemon.client.qps.find(kQp);
    EXPECT_EQ(provider::open_queue({queues.memory.data(), queues.memory.size()}, daemon.plan.send,
                                   max_wr, 1, daemon.plan.send.stride, &qp.send),
              0);
    context_->parts.qps.insert(kQp, &qp);
  }
  ~ProgramEnd() {
    context_->parts.~Parts();
    free(context_);
    close(connection_[0]);
    close(connection_[1]);
  }

  /// Posts as many requests as fit into the queue, each with a separate doorbell.
  void post(uint64_t requests) {
    for (; posted_ < requests; ++posted_) {
      Payload payload = payload_of(posted_);
      ibv_sge sge{reinterpret_cast<uint64_t>(&payload), sizeof payload, 0};
      ibv_send_wr wr{}, *bad;
      wr.wr_id = posted_;
      wr.opcode = IBV_WR_SEND;
      wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      const int error = provider::post_send(&qp.verbs.qp, &wr, &bad);
      if (error == ENOMEM) return;
      ASSERT_EQ(error, 0);
    }
  }
  void poll() {
    ibv_wc completions[16];
    const int found = provider::poll_cq(&cq.verbs.cq, 16, completions);
    ASSERT_GE(found, 0);
    for (int i = 0; i < found; ++i, ++polled_) {
      const abi::Cqe expected = completion_of(polled_);
      ASSERT_EQ(completions[i].wr_id, polled_);
      ASSERT_EQ(completions[i].byte_len, expected.byte_len);
      ASSERT_EQ(completions[i].imm_data, expected.imm_data);
      ASSERT_EQ(completions[i].src_qp, expected.src_qp);
    }
  }
  uint64_t polled() const { return polled_; }

  provider::Cq cq;
  provider::Qp qp;

 private:
  provider::Context* context_;
  int connection_[2];
  uint64_t posted_ = 0, polled_ = 0;
};

enum class Waits { kAwake, kAsleep };

void exchange(uint32_t max_wr, uint64_t requests, Waits waits) {
  DaemonEnd daemon(max_wr, requests);
  ProgramEnd program(daemon, max_wr);
  std::thread thread([&] { daemon.run(); });
  while (program.polled() < requests && !testing::Test::HasFatalFailure()) {
    // The policy sees long yields, so that empty polls wait on the futex.
    for (uint32_t i = 0; waits == Waits::kAsleep && i < provider::kWaitConstants.long_yields; ++i) {
      provider::wait_policy().gave_way(4'000'000);
    }
    provider::wait_policy().finds();
    program.post(requests);
    program.poll();
  }
  thread.join();
  EXPECT_EQ(daemon.error, "");
  EXPECT_EQ(program.polled(), requests);
  EXPECT_EQ(daemon.client.doorbells_consumed, kNearTheEnd + static_cast<uint32_t>(requests));
}

TEST(RingsFromBothEnds, OfOneEntryCarryEachRequestAndCompletion) {
  exchange(1, 3'000, Waits::kAwake);
}
TEST(RingsFromBothEnds, OfTwoEntriesCarryEachRequestAndCompletion) {
  exchange(2, 3'000, Waits::kAwake);
}
TEST(RingsFromBothEnds, OfThreeRequestsAndFourSlotsCarryEachRequestAndCompletion) {
  exchange(3, 3'000, Waits::kAwake);
}
TEST(RingsFromBothEnds, LargerThanTheDoorbellsCarryEachRequestAndCompletion) {
  exchange(2 * abi::kDoorbellEntries, 30'000, Waits::kAwake);
}
TEST(RingsFromBothEnds, WakeAProgramThatWaitsForACompletion) {
  exchange(1, 1'000, Waits::kAsleep);
  exchange(64, 10'000, Waits::kAsleep);
}

}  // namespace
}  // namespace rocemu
