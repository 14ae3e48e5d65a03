// Decides what `rocemu run` does when it gets a signal that should end it. The class is pure: its
// caller has the clock and the processes.
#pragma once

#include <chrono>
#include <optional>

namespace rocemu::command {

/// The time that programs have to end after SIGTERM, SIGHUP, or a SIGINT or SIGQUIT that the
/// command does not catch. The remaining programs then get SIGKILL.
inline constexpr std::chrono::milliseconds kEndingGrace{2000};

class Ending {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Action {
    kPassOn,  // the programs get the same signal
    kKill,    // the programs get SIGKILL
    kNone,    // the programs already have the signal
  };

  /// Returns the action for a signal. If the command catches SIGINT or SIGQUIT (`is_caught`), the
  /// command decides itself whether it ends, as debuggers and interpreters do. A second signal
  /// within the grace time ends the run in any case.
  Action on_signal(int signal, bool is_caught, Time now);

  /// Returns the signal that ends the run; nothing until one has arrived.
  std::optional<int> signal() const { return signal_; }
  /// Returns when the remaining programs get SIGKILL.
  std::optional<Time> kill_at() const { return kill_at_; }

 private:
  std::optional<int> signal_;
  std::optional<Time> kill_at_;
  std::optional<Time> interrupted_;  // the time of the latest SIGINT or SIGQUIT
};

}  // namespace rocemu::command
