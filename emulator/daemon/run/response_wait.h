// Detects, on the real clock, when programs have finished reacting to what they saw, as far as this
// is possible. They count as finished if all their threads sleep, or poll and have had the
// processor for long enough to react.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "emulator/daemon/base/event_loop.h"
#include "emulator/daemon/run/quiescence.h"
#include "emulator/daemon/run/worker.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

/// Returns the processes of all clients.
std::vector<pid_t> pids_of_clients(Worker& worker);

class ResponseWait {
 public:
  /// `ancestor` is the process from which all programs descend, if there is one. `on_over` is
  /// called in the worker's loop when a wait is over, and may begin another wait. Throws
  /// StartError.
  ResponseWait(Worker& worker, std::optional<pid_t> ancestor, std::function<void()> on_over);

  /// Begins a wait, unless one is in progress. A running thread that has used `long_poll` of
  /// processor time in the turn counts as polling in vain.
  void begin(std::chrono::nanoseconds long_poll);

 private:
  void look_again();
  bool is_over();
  bool pollers_have_looked();
  void on_timer();

  Worker& worker_;
  Quiescence programs_;
  std::function<void()> on_over_;
  UniqueFd timer_;
  EventLoop::Watch watch_;
  std::chrono::nanoseconds long_poll_{};
  size_t wakes_of_pollers_ = 0;           // since a program acted
  uint32_t taken_ = 0;                    // completions until that time
  std::optional<engine::Instant> since_;  // in real time; nothing: no wait is in progress
};

}  // namespace rocemu::daemon
