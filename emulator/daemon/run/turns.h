// The threads of all programs and their turns (abi/turn_table.h): collects the waiting threads,
// gives turns and takes them back. schedule/ decides which thread is next. For a process that takes
// no turns, such as a statically linked one, the daemon waits until it sleeps (quiescence.h).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "emulator/abi/turn_table.h"
#include "emulator/daemon/base/event_loop.h"
#include "emulator/daemon/base/shared_memory.h"
#include "emulator/daemon/base/stop_log.h"
#include "emulator/daemon/run/awake_wait.h"
#include "emulator/daemon/run/participants.h"
#include "emulator/daemon/run/program_timers.h"
#include "emulator/daemon/run/quiescence.h"
#include "emulator/daemon/run/unseen_programs.h"
#include "emulator/os/unique_fd.h"
#include "emulator/schedule/scheduler.h"
#include "emulator/schedule/thread.h"

namespace rocemu::daemon {

class Turns {
 public:
  struct Options {
    uint64_t seed = 0;
    bool sleeps_between_turns = false;  // never spins until a turn comes back
    bool tells_exits = false;           // reports programs with an exit status other than 0
    /// The process from which all programs descend, if there is one.
    std::optional<pid_t> ancestor;
    /// The log in which the recording stores the stops of `--schedule`; null for no recording.
    std::unique_ptr<StopLog> stop_log = nullptr;
  };
  /// The requests that the daemon serves during turns
  struct Requests {
    int fd;                       // readable when there are any
    std::function<void()> serve;  // serves the present requests
    std::function<std::vector<pid_t>()> clients;
  };

  /// Processes join at `listener`. Throws StartError.
  Turns(Options options, UniqueFd listener, Requests requests);

  using MustStop = std::function<bool()>;

  /// Begins a round of turns. With `is_quiet`, it begins only because the time of polls is over.
  void begin_round(bool is_quiet);
  /// Waits until no thread outside of the turns runs. While other threads progress, a thread that
  /// spins is checked only after 1, 2, 4 turns and so on, since a check takes long.
  void settle(const MustStop& must_stop);
  /// Makes the checks that settle() postponed, if no thread progressed in this round. Returns
  /// whether a thread has left its loop.
  bool settle_postponed(const MustStop& must_stop);
  /// Returns the threads that wait for a turn.
  std::span<const schedule::Thread> threads();
  /// Gives the turn of that step, and waits until the thread has returned it, or lost it.
  schedule::Turn give_turn(const schedule::Step& step, const MustStop& must_stop);
  /// Returns whether a process has started or ended since the last call.
  bool take_changed() { return participants_->take_changed(); }

  /// Returns whether a process has started, ended, sent a request, or runs without turns.
  bool has_news();
  /// Returns whether a thread spins and therefore sees writes to memory, of which the daemon is not
  /// notified.
  bool is_memory_watched() const { return spinning_.holds_any(); }

  /// Waits for an event outside of the turns, at most for that time.
  void wait_outside(engine::Duration time);

  /// Sets the time that programs see. Returns whether a timer of theirs has expired.
  bool set_time(engine::Instant now);
  /// Returns when a timer of programs expires.
  std::optional<engine::Instant> next_timer() const { return timers_.next_deadline(); }

  /// Returns whether there has been a program. Until then no thread waits, and nothing can hang.
  bool has_seen_programs() const { return !everybody_.processes().empty() || !looked_at_.empty(); }

  /// Returns whether the command of the run, which the ancestor started, had ended at the latest
  /// round of turns.
  bool has_command_ended() const { return participants_->has_command_ended(); }
  /// Returns the same, according to the kernel at this moment.
  bool look_whether_command_ended();

 private:
  bool is_taken(uint32_t slot) const;
  /// Returns whether the thread returned its turn, or sent a request, so soon that spinning is
  /// enough.
  bool wait_awake(const abi::ThreadSlot& slot) const;
  bool must_go_on_beside(const abi::ThreadSlot& slot, std::chrono::nanoseconds held,
                         std::chrono::nanoseconds own);
  bool is_stopped_by_another(const std::string& status) const;
  void revoke(uint32_t number);
  enum class Checks { kAll, kDue };
  bool needs_settling(Checks checks);
  /// Returns whether threads outside may have to continue because memory changed.
  bool must_check_outside(Checks checks) const;
  bool do_all_outside_spin() const;
  void settle(Checks checks, const MustStop& must_stop);
  bool is_one_starting() const;
  bool is_somebody_outside() const;
  bool may_still_join(std::chrono::nanoseconds slept) const;
  void find_strangers();
  void tell_of_strangers();
  void tell_of_unseen();
  void serve();
  void wait_for_events(std::chrono::nanoseconds time);
  bool has_events() const;

  abi::TurnTable& table() const { return *reinterpret_cast<abi::TurnTable*>(memory_.data()); }

  Options options_;
  Requests requests_;
  SharedMemory memory_;
  UniqueFd table_file_;
  UniqueFd handback_;
  UniqueFd events_;  // an epoll that is readable when the loop or the requests are
  EventLoop loop_;
  EventLoop::Watch handback_watch_;
  ProgramTimers timers_;
  std::unique_ptr<Participants> participants_;
  SpinningThreads spinning_;
  Quiescence everybody_;
  AwakeWait awake_;
  UnseenPrograms unseen_;
  std::set<pid_t> strangers_;  // processes that take no turns
  std::set<pid_t> looked_at_;  // when they were found
  std::set<pid_t> told_of_;
  std::set<uint32_t> outside_;             // slots of threads that wait in the kernel
  std::vector<schedule::Thread> threads_;  // for threads()
  bool unsettled_ = true;
  bool has_looked_ = false;    // for events, and nothing was done since then
  bool touched_ = true;        // whether memory that a thread outside polls may have changed
  uint32_t quiet_rounds_ = 0;  // in a row
  bool has_round_progressed_ = false;
  uint32_t turns_since_check_ = 0;     // of threads that spin, with progress
  uint32_t turns_between_checks_ = 1;  // of threads that spin, while others progress
};

}  // namespace rocemu::daemon
