// A program of random inputs to one engine, which a seed determines, and the invariants that must
// always hold. Two runs with one seed must produce the same outputs, byte for byte.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "emulator/engine/base/random.h"
#include "emulator/journal/recording.h"
#include "tests/support/bench.h"

namespace rocemu::test {

class RandomProgram {
 public:
  /// Records the run in `record_dir` if a directory is given.
  explicit RandomProgram(uint64_t seed, const std::string& record_dir = "")
      : RandomProgram(seed, record_dir, Frames::kByChance) {}
  /// Whether the engine traces frames. If kTraced or kUntraced, the program posts bursts of short
  /// messages, and its transcript has no FrameTraces.
  enum class Frames { kByChance, kTraced, kUntraced };
  RandomProgram(uint64_t seed, Frames frames) : RandomProgram(seed, "", frames) {}

  void run(uint32_t inputs);

  /// Returns all outputs as text, in order. Frames are in hexadecimal.
  const std::string& transcript() const { return transcript_; }
  /// Returns the counters of all devices as text.
  std::string counters() const;
  /// Returns a description of the violated invariant, or "" if none was violated.
  const std::string& broken() const { return broken_; }
  /// Return the number of all completions, and of the successful ones. A test checks that there are
  /// many, since other inputs would test little.
  uint64_t completions() const { return completions_; }
  uint64_t successes() const { return successes_; }

 private:
  RandomProgram(uint64_t seed, const std::string& record_dir, Frames frames);

  struct Queue {
    std::vector<uint64_t> posted;  // wr_id of each posted WQE
    uint32_t done = 0;             // the number of WQEs that are known to be finished
  };
  struct Qp {
    uint32_t number = 0;
    abi::QpCap cap{};
    Queue send, recv;
  };
  struct Cq {
    uint32_t handle = 0;
    uint32_t produced = 0, consumed = 0;
    bool failed = false;
  };
  struct App {
    engine::ClientId id;
    engine::DeviceIndex device;
    uint32_t pd = 0;
    Mr mr;
    std::vector<Cq> cqs;
    std::vector<Qp> qps;
  };

  void step(const engine::Input& input);
  void look_at(const engine::Output& output);
  void check(bool holds, const std::string& what);
  abi::Reply command(App& app, abi::Op op, const abi::Request::Body& body);

  void attach(size_t slot);
  struct Peer {
    size_t app, qp;
  };
  static Peer peer_of(size_t app, size_t qp);
  void connect(App& app, Qp& qp);
  void connect_end(App& app, Qp& qp, const Connection& connection, const wire::IpAddress& peer_ip,
                   uint32_t peer_qpn);
  void post_send(App& app, Qp& qp);
  void post_burst(App& app, Qp& qp);
  void post_recv(App& app, Qp& qp);
  void deliver_frames();
  std::vector<uint8_t> make_frame(const App& app, uint32_t before);
  void change_state(App& app, Qp& qp);
  void consume_or_arm(App& app);
  void be_late(const App& app);
  void advance();
  void garbage_command(App& app);

  uint64_t random(uint64_t below) { return random_.next() % below; }
  bool one_in(uint64_t n) { return random(n) == 0; }
  App* find(engine::ClientId id);

  engine::Random random_;
  Frames frames_;
  ArrayMemory memory_;
  std::unique_ptr<journal::Recording> recording_;
  engine::Engine engine_;
  engine::Outputs outputs_;
  engine::Instant now_{};
  std::vector<App> apps_;
  uint32_t next_client_ = 1;
  uint64_t next_wr_id_ = 1;
  std::string transcript_, broken_;
  uint64_t completions_ = 0, successes_ = 0;
};

}  // namespace rocemu::test
