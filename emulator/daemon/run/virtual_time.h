// The daemon's loop on a virtual clock: the threads of all programs have their turns, the NIC does
// what they asked for, and when nobody has anything to do the clock is put forward to what comes
// next.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "emulator/daemon/base/clock.h"
#include "emulator/daemon/base/event_loop.h"
#include "emulator/daemon/run/turns.h"
#include "emulator/daemon/run/worker.h"

namespace rocemu::daemon {

class VirtualTime {
 public:
  struct Options {
    bool lockstep = false;
  };

  /// `control_loop` is the control socket's, which in lockstep has its turn last. Time stands still
  /// while `is_held`. `on_idle` is called whenever there has been nothing to do for some rounds,
  /// and returns true if it did something that programs see. All of them outlive this.
  VirtualTime(const Options& options, Turns& turns, Worker& worker, EventLoop& control_loop,
              Clock& clock, const bool& is_held, std::function<bool()> on_idle);

  /// `on_stuck` is called now and then while programs can only be woken by themselves or from
  /// outside: all of them sleep, or poll, and nothing is under way or due, or only what is done
  /// again and again without end. `serial` is another each time that programs did something.
  void on_stuck(std::function<void(uint32_t serial)> callback) { on_stuck_ = std::move(callback); }
  /// True if programs have done nothing since on_stuck() told that serial: the run is a hang, and
  /// is about to be ended. In lockstep time stands still from then on.
  bool end_stuck(uint32_t serial);

  /// Returns when `stopping` is true.
  void run(const std::atomic<bool>& stopping);
  /// What came on the sockets is handled, each in the order of the doorbells before it.
  void serve();

 private:
  bool handle_after_turns();
  bool reap();
  std::optional<engine::Instant> next_instant(const Turns::Round& round) const;
  bool advance_to(engine::Instant instant);
  bool is_over() const;
  void wait_idle(const Turns::Round& round);
  uint32_t activity() const;
  void note_programs();
  bool ends_idleness();
  void tell_stuck();
  bool awaits_verdict();
  bool repeats_without_end();

  Options options_;
  Turns& turns_;
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
