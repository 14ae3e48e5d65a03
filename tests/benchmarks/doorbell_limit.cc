// Measures the highest rate that the rings of emulator/abi/rings.h allow. Two programs and a
// daemon, each of which is a process, do only that part of `ib_send_bw -s 64` that concerns the
// rings: a WQE that contains its message, a doorbell, a copy of the message to the receiver's
// buffer, a completion for each side, and a new receive. There are no queue pairs, packets,
// acknowledgements or checks.
//   doorbell_limit MESSAGES            one direction: prints messages a second
//   doorbell_limit latency MESSAGES    a ping-pong, as in ib_send_lat: prints microseconds one way
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/abi/rings.h"

namespace {

using namespace rocemu;

// perftest's defaults for ib_send_bw, except that the message size is that of `-s 64`.
constexpr uint32_t kMessageSize = 64, kSendDepth = 128, kRecvDepth = 512, kPollBatch = 16;
constexpr uint32_t kCqEntries = 512;

struct SendSlot {
  abi::SendWqe wqe;
  abi::Sge sge;
  uint8_t message[abi::kMaxCarried];
};

struct RecvSlot {
  abi::RecvWqe wqe;
  abi::Sge sge;
};

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

/// Returns memory that all processes share at the same address.
template <class T>
T* shared(size_t size) {
  void* memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  return static_cast<T*>(memory);
}

/// The memory that one program shares with the daemon.
struct Rings {
  abi::DoorbellRing* bells = shared<abi::DoorbellRing>(sizeof(abi::DoorbellRing));
  abi::CqRing* cq = shared<abi::CqRing>(sizeof(abi::CqRing) + kCqEntries * sizeof(abi::Cqe));
  SendSlot* send = shared<SendSlot>(kSendDepth * sizeof(SendSlot));
  RecvSlot* recv = shared<RecvSlot>(kRecvDepth * sizeof(RecvSlot));
  uint8_t* buffer = shared<uint8_t>(kMessageSize);
};

class Program {
 public:
  explicit Program(const Rings& rings) : rings_(rings) {}

  void post_send() {
    SendSlot& slot = rings_.send[sent_ % kSendDepth];
    slot.wqe = {};
    slot.wqe.wr_id = sent_;
    slot.wqe.num_sge = 1;
    slot.wqe.inline_size = kMessageSize;
    slot.sge = {reinterpret_cast<uintptr_t>(rings_.buffer), kMessageSize, 1};
    std::memcpy(slot.message, rings_.buffer, kMessageSize);
    ring(abi::DoorbellKind::kSend, ++sent_);
  }

  void post_recv() {
    RecvSlot& slot = rings_.recv[posted_ % kRecvDepth];
    slot.wqe = {.wr_id = posted_, .num_sge = 1, .reserved = 0};
    slot.sge = {reinterpret_cast<uintptr_t>(rings_.buffer), kMessageSize, 1};
    ring(abi::DoorbellKind::kRecv, ++posted_);
  }

  /// Polls completions and returns their number. Yields the processor if that is 0.
  uint32_t poll() {
    const uint32_t ready = rings_.cq->producer.load(std::memory_order_acquire) - consumed_;
    const uint32_t count = std::min(ready, kPollBatch);
    if (count == 0) {
      sched_yield();
      return 0;
    }
    for (uint32_t i = 0; i < count; ++i) {
      const volatile abi::Cqe& cqe = rings_.cq->entries[(consumed_ + i) % kCqEntries];
      if (cqe.wr_id != consumed_ + i) fail("a completion out of order");
    }
    consumed_ += count;
    rings_.cq->consumer.store(consumed_, std::memory_order_release);
    return count;
  }

 private:
  void ring(abi::DoorbellKind kind, uint64_t value) {
    abi::DoorbellRing& bells = *rings_.bells;
    const uint32_t producer = bells.producer.load(std::memory_order_relaxed);
    while (producer - bells.consumer.load(std::memory_order_acquire) == abi::kDoorbellEntries) {
      sched_yield();
    }
    bells.entries[producer % abi::kDoorbellEntries] = {kind, 1, value};
    bells.producer.store(producer + 1, std::memory_order_seq_cst);
    if (bells.daemon_sleeping.load(std::memory_order_seq_cst) != 0) fail("nobody sleeps here");
  }

  Rings rings_;
  uint32_t sent_ = 0, posted_ = 0, consumed_ = 0;
};

enum class Direction { kOneWay, kToAndFro };

/// Serves two programs. Either only the first one sends, or both send in turn. If both send, their
/// sends have no completions.
class Daemon {
 public:
  Daemon(const Rings& first, const Rings& second, Direction direction)
      : programs_{{first}, {second}}, direction_(direction) {}

  void run(uint32_t messages) {
    const auto [there, back] = std::pair(messages, direction_ == Direction::kOneWay ? 0 : messages);
    while (programs_[0].delivered != there || programs_[1].delivered != back) {
      bool is_idle = true;
      for (Served& program : programs_) look_at(program);
      for (const size_t from : {size_t{0}, size_t{1}}) {
        while (deliver(programs_[from], programs_[1 - from])) is_idle = false;
      }
      if (is_idle) sched_yield();
    }
  }

 private:
  struct Served {
    Rings rings;
    uint32_t bells = 0;
    uint32_t sends = 0, receives = 0;
    uint32_t delivered = 0, received = 0;
  };

  static void look_at(Served& program) {
    const uint32_t end = program.rings.bells->producer.load(std::memory_order_acquire);
    for (; program.bells != end; ++program.bells) {
      const abi::Doorbell bell =
          program.rings.bells->entries[program.bells % abi::kDoorbellEntries];
      (bell.kind == abi::DoorbellKind::kSend ? program.sends : program.receives) =
          static_cast<uint32_t>(bell.value);
    }
    program.rings.bells->consumer.store(program.bells, std::memory_order_release);
  }

  bool deliver(Served& from, Served& to) {
    if (from.delivered == from.sends || to.received == to.receives) return false;
    std::memcpy(&wqe_, &from.rings.send[from.delivered++ % kSendDepth], sizeof wqe_);
    std::memcpy(&recv_, &to.rings.recv[to.received++ % kRecvDepth], sizeof recv_);
    std::memcpy(reinterpret_cast<uint8_t*>(recv_.sge.address), wqe_.message, wqe_.wqe.inline_size);
    complete(*to.rings.cq, recv_.wqe.wr_id);
    if (direction_ == Direction::kOneWay) complete(*from.rings.cq, wqe_.wqe.wr_id);
    return true;
  }

  static void complete(abi::CqRing& cq, uint64_t wr_id) {
    const uint32_t producer = cq.producer.load(std::memory_order_relaxed);
    abi::Cqe cqe{};
    cqe.wr_id = wr_id;
    cqe.byte_len = kMessageSize;
    cq.entries[producer % kCqEntries] = cqe;
    cq.producer.store(producer + 1, std::memory_order_release);
  }

  Served programs_[2];
  Direction direction_;
  SendSlot wqe_{};
  RecvSlot recv_{};
};

using Clock = std::chrono::steady_clock;

void send_all(const Rings& rings, uint32_t messages) {
  Program program(rings);
  const auto start = Clock::now();
  uint32_t sent = 0, done = 0;
  while (done != messages) {
    while (sent != messages && sent - done < kSendDepth) {
      program.post_send();
      ++sent;
    }
    done += program.poll();
  }
  const std::chrono::duration<double> taken = Clock::now() - start;
  std::printf("%u messages in %.3f seconds = %.3f million/s\n", messages, taken.count(),
              messages / taken.count() / 1e6);
}

void receive_all(const Rings& rings, uint32_t messages) {
  Program program(rings);
  for (uint32_t i = 0; i < kRecvDepth; ++i) program.post_recv();
  uint32_t done = 0;
  while (done != messages) {
    const uint32_t count = program.poll();
    for (uint32_t i = 0; i < count; ++i) program.post_recv();
    done += count;
  }
}

void wait_for_one(Program& program) {
  while (program.poll() == 0) {
  }
  program.post_recv();
}

void answer_all(const Rings& rings, uint32_t messages) {
  Program program(rings);
  for (uint32_t i = 0; i < kRecvDepth; ++i) program.post_recv();
  for (uint32_t i = 0; i < messages; ++i) {
    wait_for_one(program);
    program.post_send();
  }
}

void send_and_wait(const Rings& rings, uint32_t messages) {
  Program program(rings);
  for (uint32_t i = 0; i < kRecvDepth; ++i) program.post_recv();
  std::vector<std::chrono::duration<double, std::micro>> taken(messages);
  for (uint32_t i = 0; i < messages; ++i) {
    const auto start = Clock::now();
    program.post_send();
    wait_for_one(program);
    taken[i] = (Clock::now() - start) / 2;
  }
  const auto middle = taken.begin() + messages / 2;
  std::nth_element(taken.begin(), middle, taken.end());
  std::printf("%u messages to and fro, median %.3f us one way\n", messages, middle->count());
}

template <class Work>
pid_t in_a_process(Work work) {
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child != 0) return child;
  work();
  std::exit(0);
}

bool succeeds(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool to_and_fro = argc == 3 && std::string_view(argv[1]) == "latency";
  const unsigned long messages =
      argc == 2 || to_and_fro ? std::strtoul(argv[argc - 1], nullptr, 10) : 0;
  if (messages == 0 || messages > 1'000'000'000) {
    std::fprintf(stderr, "usage: doorbell_limit [latency] MESSAGES\n");
    return 2;
  }
  const auto count = static_cast<uint32_t>(messages);
  const Rings client, server;
  const pid_t receiver =
      in_a_process([&] { to_and_fro ? answer_all(server, count) : receive_all(server, count); });
  const pid_t sender =
      in_a_process([&] { to_and_fro ? send_and_wait(client, count) : send_all(client, count); });
  Daemon(client, server, to_and_fro ? Direction::kToAndFro : Direction::kOneWay).run(count);
  const bool both = succeeds(sender) & succeeds(receiver);
  return both ? 0 : 1;
}
