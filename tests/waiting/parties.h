// The daemon and programs on a simulated machine. They wait by the product's own policies, and
// their messages take approximately as long as real messages.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "emulator/daemon/client/idle_policy.h"
#include "tests/waiting/machine.h"
#include "verbs_provider/polling/wait_policy.h"

namespace rocemu::test {

/// How programs wait for a message.
enum class Waits {
  kPolling,   // calls ibv_poll_cq in a loop
  kSleeping,  // ibv_get_cq_event
  kInMemory,  // reads memory in a loop, as ib_write_lat does
};

/// Pairs of programs that send each other messages in turn, and one daemon.
class PingPongs {
 public:
  PingPongs(const MachineConfig& config, size_t pairs, Waits waits, size_t hogs = 0,
            provider::PollMode mode = provider::PollMode::kAdaptive);

  struct Result {
    Nanoseconds median, late;  // times of one way, of all pairs; `late` is the 99.9th percentile
    size_t messages;
  };
  Result run(Nanoseconds time = 500'000'000);

 private:
  struct Program {
    Thread* thread = nullptr;
    size_t peer = 0;
    bool has_message = false;
    bool posts = false;                             // its current action is to post
    bool is_yielding = false, is_sleeping = false;  // since wait_began
    Nanoseconds wait_began = 0, latest_message = 0, latest_ring = -1;
    bool rings = false;  // a message of the program is in its ring
    size_t rang_on = 0;
    provider::WaitPolicy policy{};
  };

  Action act(Program& program);
  Action wait(Program& program);
  Action serve();
  daemon::IdlePolicy::Clients recent() const;
  uint32_t pollers_per_processor() const;
  engine::Instant instant() const {
    return engine::Instant(std::chrono::nanoseconds(machine_.now()));
  }

  Machine machine_;
  size_t processors_;
  Waits waits_;
  provider::PollMode mode_;
  std::vector<Program> programs_;
  Thread* daemon_ = nullptr;
  daemon::IdlePolicy idle_{engine::Instant{}};
  std::vector<size_t> handing_over_;  // the programs that get their messages next
  engine::Instant yield_began_{};
  bool yielding_ = false, sleeping_ = false, slept_ = false, rung_beside_ = false;
  std::vector<Nanoseconds> times_;
};

}  // namespace rocemu::test
