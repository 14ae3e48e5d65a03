// Litmus tests for `--adversarial`: programs on two nodes, as threads of loads, stores and posts,
// which run on the engine alone. The seed decides in which order the threads run and what the NIC
// does.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "emulator/engine/adversarial/adversarial_class.h"
#include "emulator/engine/base/random.h"
#include "tests/support/endpoint.h"

namespace rocemu::test::litmus {

/// An instruction. `word` and `from` are indices of 8-byte words in a node's registered memory.
struct Op {
  enum class Kind : uint8_t {
    kStore,      // the processor stores to its own node's memory
    kIncrement,  // the processor adds atomically
    kLoad,       // the processor loads into the next register
    kAwait,      // loads until the word has the value
    kPost,       // posts a request to the other node
    kPoll,       // waits until the QP's send queue has had `value` completions
    kTake,       // waits until the QP's receive queue has had `value` completions
    kCount,      // stores the number of the QP's send completions in the next register
    kTell,       // notifies the other threads by other means than the fabric
    kHear,       // waits until a thread has executed kTell
  };
  Kind kind{};
  uint32_t word = 0;
  uint64_t value = 0;
  // 0 or 1: QP 0 of one node is connected with QP 0 of the other, and QP 1 with QP 1
  uint32_t qp = 0;
  abi::WrOpcode opcode{};
  uint32_t from = 0;   // the requester's word
  uint32_t words = 1;  // the length
  uint32_t flags = 0;  // beside kSendSignaled
};

struct Thread {
  char node;  // 'A' or 'B'
  std::vector<Op> ops;
};

struct LitmusTest {
  const char* name;
  const char* clause;
  std::vector<Thread> threads;
  std::vector<std::pair<char, uint32_t>> ends = {};  // node and word that are read at the end
  // The possible outcomes, such as "01": the values of the registers in the order of the threads,
  // then the final values of `ends`.
  std::vector<std::string> allowed;
  // outcomes that the models allow, but rocemu never produces
  std::vector<std::string> never_shown = {};
  std::vector<std::string> forbidden = {};
  // access flags of both nodes' memory, in addition to those for local and remote access
  uint32_t access = 0;
};

class World {
 public:
  static constexpr uint32_t kReceived = 64;  // the word where SENDs arrive

  World(const LitmusTest& test, uint64_t seed)
      : random_(~seed),
        bench_(fabric(seed)),
        nodes_{{{bench_, engine::ClientId{1}, engine::DeviceIndex{0}, options(test.access)},
                {bench_, engine::ClientId{2}, engine::DeviceIndex{1}, options(test.access)}}} {
    for (const Thread& thread : test.threads) {
      for (const Op& op : thread.ops) qps_ = std::max(qps_, op.qp + 1);
    }
    for (uint32_t node = 0; node < 2; ++node) add_qps(node);
    for (uint32_t node = 0; node < 2; ++node) connect(node);
    for (const Thread& thread : test.threads) {
      threads_.push_back({.node = index_of(thread.node), .ops = &thread.ops, .at = delay()});
    }
  }

  /// Runs all threads to their ends, and the engine until nothing is pending. Returns the outcome.
  std::string run(const LitmusTest& test) {
    while (run_one_thread() || advance()) {
    }
    std::string outcome;
    for (const Running& thread : threads_) {
      if (thread.next != thread.ops->size()) return "stuck";
      outcome += thread.registers;
    }
    for (const auto& [node, number] : test.ends) outcome += text(load(index_of(node), number));
    return outcome;
  }

 private:
  static constexpr uint32_t kAccess = abi::kAccessLocalWrite | abi::kAccessRemoteWrite |
                                      abi::kAccessRemoteRead | abi::kAccessRemoteAtomic;
  // earlier than any ACK timeout, later than all delays
  static constexpr engine::Instant kEnd{40ms};

  struct Running {
    uint32_t node;
    const std::vector<Op>* ops;
    engine::Instant at;  // the time at which the thread executes its next instruction
    size_t next = 0;
    std::string registers = {};
  };

  static engine::FabricConfig fabric(uint64_t seed) {
    engine::FabricConfig config = engine::default_fabric(2);
    config.adversarial = engine::adversarial::Classes::all().bits();
    config.seed = seed;
    return config;
  }
  static EndpointOptions options(uint32_t access) {
    EndpointOptions options;
    options.buffer_size = 1024;
    options.cq_capacity = 32;
    options.recv_access = kAccess | access;
    options.connection.access = kAccess;
    options.connection.max_rd_atomic = 4;
    return options;
  }
  static uint32_t index_of(char node) { return node == 'A' ? 0 : 1; }
  /// Returns the number in decimal. A torn word has many digits, and no table of outcomes contains
  /// it.
  static std::string text(uint64_t value) { return std::to_string(value); }

  void add_qps(uint32_t node) {
    Endpoint& own = nodes_[node];
    qpns_[node] = {own.qpn, own.qpn};
    if (qps_ == 1) return;
    qpns_[node][1] = own.client.create_qp(
        {.pd = own.pd, .send_cq = own.send_cq, .recv_cq = own.recv_cq, .cap = options(0).cap});
  }
  void connect(uint32_t node) {
    Endpoint& own = nodes_[node];
    const auto peer = address_vector(engine::default_fabric(2).devices[1 - node].addresses[0]);
    cap_ = own.client.query_qp(own.qpn).cap;
    for (uint32_t qp = 0; qp < qps_; ++qp) {
      EXPECT_TRUE(bring_up(own.client, qpns_[node][qp], abi::QpState::kRts, options(0).connection,
                           peer, qpns_[1 - node][qp]));
      for (uint32_t i = 0; i < 2; ++i) {
        const auto wqe = recv_wqe({.sges = {own.recv_sge(8, 8 * kReceived)}}, cap_.max_recv_sge);
        bench_.step(engine::PostRecv{own.client.id(), engine::QpNumber{qpns_[node][qp]}, wqe});
      }
    }
  }

  engine::Instant delay() {
    constexpr int64_t kUs[] = {0, 0, 0, 1, 5, 20, 100, 1000};
    return bench_.now() + std::chrono::microseconds(kUs[random_.next() >> 61]);
  }

  uint8_t* at(uint32_t node, uint32_t word) {
    return bench_.memory.at(nodes_[node].client.id(), Endpoint::kRecvBuffer + 8 * word, 8).data();
  }
  uint64_t load(uint32_t node, uint32_t word) {
    uint64_t value = 0;
    std::memcpy(&value, at(node, word), 8);
    return value;
  }
  void store(uint32_t node, uint32_t word, uint64_t value) {
    std::memcpy(at(node, word), &value, 8);
  }

  void post(uint32_t node, const Op& op) {
    Endpoint& own = nodes_[node];
    SendWr wr{.opcode = op.opcode,
              .flags = op.flags | abi::kSendSignaled,
              .sges = {own.recv_sge(8 * op.words, 8 * op.from)},
              .remote_address = Endpoint::kRecvBuffer + 8 * op.word,
              .rkey = nodes_[1 - node].recv_mr.rkey,
              .compare_add = op.value};
    // ibv_post_send(3), IBV_SEND_INLINE: ibv_post_send() itself reads the data.
    if ((op.flags & abi::kSendInline) != 0) {
      wr.sges.clear();
      wr.inline_data.assign(at(node, op.from), at(node, op.from) + 8 * op.words);
    }
    const auto wqe = send_wqe(wr, cap_);
    bench_.step(engine::PostSend{own.client.id(), engine::QpNumber{qpns_[node][op.qp]}, wqe});
  }

  /// Counts the completions that arrived since the last call.
  void poll_all() {
    for (const Timed& entry : bench_.log) {
      const auto* completion = std::get_if<engine::Completion>(&entry.output);
      if (completion == nullptr) continue;
      EXPECT_EQ(completion->cqe.status, static_cast<uint32_t>(abi::WcStatus::kSuccess));
      ++completions_[{completion->client, completion->cqe.qp_num, completion->cqe.queue}];
    }
    bench_.log.clear();
  }
  uint64_t completions(uint32_t node, uint32_t qp, abi::WorkQueue queue) {
    return completions_[{nodes_[node].client.id(), qpns_[node][qp], queue}];
  }

  bool is_ready(const Running& thread) {
    if (thread.next == thread.ops->size()) return false;
    const Op& op = (*thread.ops)[thread.next];
    switch (op.kind) {
      case Op::Kind::kAwait:
        return load(thread.node, op.word) == op.value;
      case Op::Kind::kPoll:
        return completions(thread.node, op.qp, abi::WorkQueue::kSend) >= op.value;
      case Op::Kind::kTake:
        return completions(thread.node, op.qp, abi::WorkQueue::kRecv) >= op.value;
      case Op::Kind::kHear:
        return is_told_;
      case Op::Kind::kStore:
      case Op::Kind::kIncrement:
      case Op::Kind::kLoad:
      case Op::Kind::kPost:
      case Op::Kind::kCount:
      case Op::Kind::kTell:
        return true;
    }
    return false;
  }

  void execute(Running& thread) {
    const Op& op = (*thread.ops)[thread.next++];
    switch (op.kind) {
      case Op::Kind::kStore:
        return store(thread.node, op.word, op.value);
      case Op::Kind::kIncrement:
        return store(thread.node, op.word, load(thread.node, op.word) + op.value);
      case Op::Kind::kLoad:
        thread.registers += text(load(thread.node, op.word));
        return;
      case Op::Kind::kPost:
        return post(thread.node, op);
      case Op::Kind::kCount:
        thread.registers += text(completions(thread.node, op.qp, abi::WorkQueue::kSend));
        return;
      case Op::Kind::kTell:
        is_told_ = true;
        return;
      case Op::Kind::kAwait:
      case Op::Kind::kPoll:
      case Op::Kind::kTake:
      case Op::Kind::kHear:
        return;
    }
  }

  /// Executes one instruction of a thread that is ready at the present time. Returns false if no
  /// thread is ready.
  bool run_one_thread() {
    poll_all();
    std::vector<Running*> ready;
    for (Running& thread : threads_) {
      if (is_ready(thread) && thread.at <= bench_.now()) ready.push_back(&thread);
    }
    if (ready.empty()) return false;
    Running& thread = *ready[(random_.next() >> 32) % ready.size()];
    execute(thread);
    thread.at = delay();
    return true;
  }

  /// Advances to the next instruction or deadline of the engine. Returns false if there is none.
  bool advance() {
    std::optional<engine::Instant> next = bench_.engine().next_deadline();
    for (const Running& thread : threads_) {
      if (is_ready(thread) && (!next || thread.at < *next)) next = thread.at;
    }
    if (!next || *next > kEnd) return false;
    bench_.advance_to(std::max(*next, bench_.now()).time_since_epoch());
    return true;
  }

  engine::Random random_;
  Bench bench_;
  std::array<Endpoint, 2> nodes_;
  // the first index is that of the node, the second that of its QP
  std::array<std::array<uint32_t, 2>, 2> qpns_{};
  abi::QpCap cap_{};
  uint32_t qps_ = 1;
  std::vector<Running> threads_;
  std::map<std::tuple<engine::ClientId, uint32_t, abi::WorkQueue>, uint64_t> completions_;
  bool is_told_ = false;
};

}  // namespace rocemu::test::litmus
