// The most that the rings of emulator/abi/rings.h allow: two programs and a daemon, a process each,
// that do of `ib_send_bw -s 64` what the rings ask for and nothing else. A WQE that carries its
// message, a doorbell, the message into the receiver's buffer, a completion for each side, a fresh
// receive; but no queue pair, no packet, no acknowledgement, and nothing is checked.
// doorbell_limit MESSAGES
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

#include "emulator/abi/rings.h"

namespace {

using namespace rocemu;

// As perftest has them.
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

/// Of all processes, at the same address.
template <class T>
T* shared(size_t size) {
  void* memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  return static_cast<T*>(memory);
}

/// What one program shares with the daemon.
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

  /// How many completions it took; gives way if there was none.
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

class Daemon {
 public:
  Daemon(const Rings& sender, const Rings& receiver) : sender_(sender), receiver_(receiver) {}

  void run(uint32_t messages) {
    while (delivered_ != messages) {
      const uint32_t before = delivered_;
      look_at(receiver_, bells_of_receiver_);
      look_at(sender_, bells_of_sender_);
      while (delivered_ != std::min(sends_, receives_)) deliver();
      if (delivered_ == before) sched_yield();
    }
  }

 private:
  void look_at(const Rings& rings, uint32_t& consumed) {
    const uint32_t end = rings.bells->producer.load(std::memory_order_acquire);
    for (; consumed != end; ++consumed) {
      const abi::Doorbell bell = rings.bells->entries[consumed % abi::kDoorbellEntries];
      (bell.kind == abi::DoorbellKind::kSend ? sends_ : receives_) =
          static_cast<uint32_t>(bell.value);
    }
    rings.bells->consumer.store(consumed, std::memory_order_release);
  }

  void deliver() {
    std::memcpy(&wqe_, &sender_.send[delivered_ % kSendDepth], sizeof wqe_);
    std::memcpy(&recv_, &receiver_.recv[delivered_ % kRecvDepth], sizeof recv_);
    std::memcpy(reinterpret_cast<uint8_t*>(recv_.sge.address), wqe_.message, wqe_.wqe.inline_size);
    complete(*receiver_.cq, recv_.wqe.wr_id);
    complete(*sender_.cq, wqe_.wqe.wr_id);
    ++delivered_;
  }

  static void complete(abi::CqRing& cq, uint64_t wr_id) {
    const uint32_t producer = cq.producer.load(std::memory_order_relaxed);
    abi::Cqe cqe{};
    cqe.wr_id = wr_id;
    cqe.byte_len = kMessageSize;
    cq.entries[producer % kCqEntries] = cqe;
    cq.producer.store(producer + 1, std::memory_order_release);
  }

  Rings sender_, receiver_;
  SendSlot wqe_{};
  RecvSlot recv_{};
  uint32_t bells_of_sender_ = 0, bells_of_receiver_ = 0;
  uint32_t sends_ = 0, receives_ = 0, delivered_ = 0;
};

void send_all(const Rings& rings, uint32_t messages) {
  Program program(rings);
  const auto start = std::chrono::steady_clock::now();
  uint32_t sent = 0, done = 0;
  while (done != messages) {
    while (sent != messages && sent - done < kSendDepth) {
      program.post_send();
      ++sent;
    }
    done += program.poll();
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
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
  const unsigned long messages = argc == 2 ? std::strtoul(argv[1], nullptr, 10) : 0;
  if (messages == 0 || messages > 1'000'000'000) {
    std::fprintf(stderr, "usage: doorbell_limit MESSAGES\n");
    return 2;
  }
  const auto count = static_cast<uint32_t>(messages);
  const Rings client, server;
  const pid_t receiver = in_a_process([&] { receive_all(server, count); });
  const pid_t sender = in_a_process([&] { send_all(client, count); });
  Daemon(client, server).run(count);
  const bool both = succeeds(sender) & succeeds(receiver);
  return both ? 0 : 1;
}
