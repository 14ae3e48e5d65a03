// The daemon's loop on a virtual clock: what came is handled, and when nothing more comes the clock
// is put forward to the engine's next deadline. That nothing comes is known when all threads of all
// clients are asleep (quiescence.h); those that poll an empty CQ sleep too
// (verbs_provider/polling/empty_poll).
//
// In lockstep what came is handled only then, all of it at once and in an order of ours. So
// relative speed does not matter, and a deterministic program has the same run each time.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <optional>

#include "emulator/daemon/base/clock.h"
#include "emulator/daemon/base/event_loop.h"
#include "emulator/daemon/run/quiescence.h"
#include "emulator/daemon/run/worker.h"

namespace rocemu::daemon {

class VirtualTime {
 public:
  struct Options {
    bool lockstep = false;
    /// The process that all programs descend from, if there is one.
    std::optional<pid_t> ancestor;
  };

  /// `control_loop` is the control socket's, which in lockstep has its turn last. Time stands still
  /// while `is_held`. `on_idle` is called whenever there is nothing to do. All of them outlive
  /// this.
  VirtualTime(const Options& options, Worker& worker, EventLoop& control_loop, Clock& clock,
              const bool& is_held, std::function<void()> on_idle);

  /// Returns when `stopping` is true.
  void run(const std::atomic<bool>& stopping);

 private:
  bool handle_what_came();
  void end_round();
  void wait_for_quiet(Quiescence& clients, const std::atomic<bool>& stopping);
  bool is_quiet(Quiescence& clients);

  Options options_;
  Worker& worker_;
  EventLoop& control_loop_;
  Clock& clock_;
  const bool& is_held_;
  std::function<void()> on_idle_;
};

}  // namespace rocemu::daemon
