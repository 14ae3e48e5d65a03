// The daemon's loop on a virtual clock: what came is handled, and when nothing more comes the clock
// is put forward to the engine's next deadline. That nothing comes is known when all threads of all
// clients are asleep (quiescence.h); those that poll an empty CQ sleep too
// (verbs_provider/polling/empty_poll).
//
// In lockstep what came is handled only then, all of it at once and in an order of ours. So
// relative speed does not matter, and a deterministic program has the same run each time.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <vector>

#include "emulator/daemon/base/clock.h"
#include "emulator/daemon/base/event_loop.h"
#include "emulator/daemon/run/quiescence.h"
#include "emulator/daemon/run/turns.h"
#include "emulator/daemon/run/worker.h"

namespace rocemu::daemon {

class VirtualTime {
 public:
  struct Options {
    bool lockstep = false;
    /// The process that all programs descend from, if there is one.
    std::optional<pid_t> ancestor;
    /// Null: programs take no turns, and their time is real.
    Turns* turns = nullptr;
  };

  /// `control_loop` is the control socket's, which in lockstep has its turn last. Time stands still
  /// while `is_held`. `on_idle` is called whenever there has been nothing to do for some rounds,
  /// and returns true if it did something that programs see. All of them outlive this.
  VirtualTime(const Options& options, Worker& worker, EventLoop& control_loop, Clock& clock,
              const bool& is_held, std::function<bool()> on_idle);

  /// `on_stuck` is called now and then while programs can only be woken by themselves or from
  /// outside: all of them sleep, or poll, and nothing is under way or due, or only what is done
  /// again and again without end. `serial` is another each time that programs did something.
  void on_stuck(std::function<void(uint32_t serial)> callback) { on_stuck_ = std::move(callback); }
  /// True if programs have done nothing since on_stuck() told that serial: the run is a hang, and
  /// is about to be ended. In lockstep time stands still from then on.
  bool end_stuck(uint32_t serial);

  /// Returns when `stopping` is true.
  void run(const bool& stopping);
  /// What came on the sockets is handled, each in the order of the doorbells before it.
  void serve();

 private:
  void run_with_turns(const bool& stopping);
  bool handle_after_turns();
  bool reap();
  std::optional<engine::Instant> next_instant(const Turns::Round& round) const;
  bool advance_to(engine::Instant instant);
  bool is_over() const;
  void wait_idle(const Turns::Round& round);
  uint32_t activity() const;
  bool handle_what_came();
  void end_round();
  void note_programs();
  bool ends_idleness();
  void tell_stuck();
  bool awaits_verdict();
  bool repeats_without_end();
  void wait_for_quiet(Quiescence& clients, const bool& stopping);
  bool is_quiet(Quiescence& clients);

  Options options_;
  Worker& worker_;
  EventLoop& control_loop_;
  Clock& clock_;
  const bool& is_held_;
  std::function<bool()> on_idle_;
  std::function<void(uint32_t serial)> on_stuck_;
  uint32_t serial_ = 0;           // activity()
  uint32_t rounds_ = 0;           // of turns, in which somebody did something
  uint32_t idle_rounds_ = 0;      // since then
  engine::Instant idle_since_{};  // of those that poll, in virtual time
  bool is_stuck_ = false;
  bool repeats_ = false;                    // retries do, without end
  bool is_ending_ = false;                  // as a hang
  engine::Instant stuck_since_{}, told_{};  // in real time
  // Since programs did something, how often time moved on; and at the latest look at the QPs:
  uint64_t jumps_ = 0, looked_at_jump_ = 0;
  std::vector<uint32_t> progress_;
};

}  // namespace rocemu::daemon
