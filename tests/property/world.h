// Runs a program on two engines, and beside it on a model that knows what each operation means. The
// model is simple because no two operations of a program touch the same bytes, but for those of one
// connection whose order the specification fixes.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/property/network.h"
#include "tests/property/program.h"
#include "tests/support/bench.h"

namespace rocemu::property {

class World {
 public:
  explicit World(const Program& program);

  /// What went wrong first; empty if all is as the model says.
  std::string run();

  uint64_t completions() const { return completions_; }
  const Network& network() const { return network_; }

 private:
  /// A work request, as the model knows it.
  struct Posted {
    Op op;
    uint64_t wr_id = 0;
    uint64_t local = 0;             // address of its buffer
    std::vector<uint8_t> expected;  // READ, atomic: what its buffer holds in the end
    std::vector<uint8_t> payload;   // SEND, WRITE
    uint64_t remote = 0;            // WRITE: where at the peer
    uint32_t imm = 0;
  };
  struct Half {  // of a connection, on one side
    uint32_t qpn = 0;
    std::deque<Posted> sends;         // not complete yet
    std::deque<Posted> arrivals;      // what the peer's requests will use up a receive for
    std::deque<uint64_t> receives;    // addresses of posted receive buffers, oldest first
    std::array<uint64_t, 4> words{};  // what this side's atomics work on, at the peer
    std::optional<Posted> latest_write;
    uint64_t posted = 0;
  };
  struct Side {
    std::unique_ptr<test::Bench> bench;
    std::unique_ptr<test::Client> client;
    test::Mr mr;
    uint32_t cq = 0;
    uint64_t free = 0;  // of its memory
    std::array<Half, kConnections> halves;
  };

  void connect();
  void execute(const Op& op);
  void post(const Op& op);
  void post_receive(Side& side, Half& half);
  void post_missing_receives();
  uint64_t take_memory(Side& side, size_t size);
  std::vector<abi::Sge> pieces(const Side& side, uint64_t address, uint32_t size, uint32_t count);
  std::span<uint8_t> memory(uint32_t side, uint64_t address, size_t size);

  void advance_to(engine::Instant time);
  void collect(uint32_t side);
  void on_completion(uint32_t side, const abi::Cqe& cqe);
  void on_send_completion(uint32_t side, uint32_t connection, const abi::Cqe& cqe);
  void on_receive_completion(uint32_t side, uint32_t connection, const abi::Cqe& cqe);
  void check_result(uint32_t side, const Posted& posted);
  void check_end();
  void fail(const std::string& text) {
    if (wrong_.empty()) wrong_ = text;
  }

  const Program& program_;
  Network network_;
  std::array<Side, kSides> sides_;
  std::array<bool, kConnections> broken_{};  // by a kBadWrite
  engine::Instant now_{};
  uint64_t completions_ = 0;
  std::string wrong_;
};

}  // namespace rocemu::property
