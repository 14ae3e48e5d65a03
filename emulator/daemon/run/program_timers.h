// The timers of programs in virtual time: alarms, and timers of timerfd_create(2)
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>

#include "emulator/engine/base/time.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class ProgramTimers {
 public:
  /// The maximum number of timers of one process
  static constexpr size_t kMaxOfProcess = 1024;

  /// The effect of an expired timer
  struct Effect {
    UniqueFd fd;     // an eventfd to increment; without one a signal is sent
    int signal = 0;  // 0: no effect
    pid_t tid = 0;   // 0: any thread
    uint64_t value = 0;
  };

  /// Creates a timer. Returns its number; 0 if the process has too many timers, the signal is
  /// invalid, or the descriptor is not an eventfd.
  uint32_t make(pid_t process, Effect effect);
  /// Sets a timer to virtual times; abi::kNever means never. Number 0 is the alarm. Does nothing if
  /// there is no timer with this number.
  void set(pid_t process, uint32_t number, int64_t deadline_ns, int64_t interval_ns);
  void remove(pid_t process, uint32_t number);
  void remove_all(pid_t process);

  std::optional<engine::Instant> next_deadline() const;
  /// Expires the timers that are due. Returns whether there were any.
  bool expire(engine::Instant now);

 private:
  struct Timer {
    Effect effect;
    int64_t deadline_ns;
    int64_t interval_ns;
  };
  static void act(pid_t process, const Timer& timer, uint64_t times);

  using Key = std::pair<pid_t, uint32_t>;  // 0 is the number of the alarm
  std::map<Key, Timer> timers_;
  uint32_t last_ = 0;
};

}  // namespace rocemu::daemon
