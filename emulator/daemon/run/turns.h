// The threads of all programs and their turns (abi/turn_table.h): collects the waiting threads,
// gives turns, and takes turns back. schedule/ decides which thread is next. If a process takes no
// turns, for example because it is statically linked, the daemon waits until the process sleeps
// (quiescence.h).
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
#include "emulator/daemon/run/child_waits.h"
#include "emulator/daemon/run/participants.h"
#include "emulator/daemon/run/program_timers.h"
#include "emulator/daemon/run/quiescence.h"
#include "emulator/daemon/run/unseen_programs.h"
#include "emulator/os/threads/spin_checks.h"
#include "emulator/os/unique_fd.h"
#include "emulator/schedule/scheduler.h"
#include "emulator/schedule/thread.h"

namespace rocemu::daemon {

class Turns {
 public:
  struct Options {
    uint64_t seed = 0;
    bool sleeps_between_turns = false;  // neither the daemon nor threads spin for a turn
    bool tells_exits = false;           // reports programs with an exit status other than 0
    /// The process from which all programs descend, if there is one.
    std::optional<pid_t> ancestor;
    /// The log for the stops of `--schedule` in a recording; null if there is no recording.
    std::unique_ptr<StopLog> stop_log = nullptr;
  };
  /// The means by which Turns serves the requests of programs during turns
  struct Requests {
    int fd;                       // readable when there are any
    std::function<void()> serve;  // serves the present requests
    std::function<std::vector<pid_t>()> clients;
  };

  /// Lets processes join at `listener`. Throws StartError.
  Turns(Options options, UniqueFd listener, Requests requests);

  using MustStop = std::function<bool()>;

  /// Begins a round of turns. `is_quiet` is true if nothing happened since the previous round
  /// except that the time of polls has passed.
  void begin_round(bool is_quiet);
  /// Selects the checks of wait_for_quiescence(). With kDue, threads that are held because they
  /// spin are checked only if SpinChecks::is_due() returns true.
  enum class Checks { kAll, kDue };
  /// Waits until all threads that take no turns are asleep.
  void wait_for_quiescence(Checks checks, const MustStop& must_stop);
  /// Checks the spinning threads that wait_for_quiescence() did not check, if no thread progressed
  /// in this round. Returns whether a thread has left its loop.
  bool check_postponed(const MustStop& must_stop);
  /// Returns the threads that wait for a turn.
  std::span<const schedule::Thread> threads();
  /// Gives a turn to the thread in `step`, and waits until the thread returns it or loses it.
  schedule::Turn give_turn(const schedule::Step& step, const MustStop& must_stop);
  /// Returns whether a process has started or ended since the last call.
  bool take_changed() { return participants_->take_changed(); }

  /// Returns whether any process has started, ended or sent a request, or runs without turns.
  bool has_news();
  /// Returns whether any thread is held because it spins. Such a thread can react to writes to
  /// memory, of which the daemon is not notified.
  bool is_memory_watched() const { return spinning_.holds_any(); }

  /// Lets every waiting thread check again whether its wait has ended.
  void let_all_check() { child_waits_.happened(); }

  /// Waits for an event from outside of the turns, but at most for `time`. A request on the control
  /// socket, whose event loop has the descriptor `control`, is such an event until the command
  /// ends.
  void wait_for_event(engine::Duration time, int control);

  /// Sets the time that programs see. Returns whether one of their timers has expired.
  bool set_time(engine::Instant now);
  /// Returns the time at which the next timer of a program expires.
  std::optional<engine::Instant> next_timer() const { return timers_.next_deadline(); }

  /// Returns whether any program has started so far. Until then, no thread waits and nothing can
  /// hang.
  bool has_seen_programs() const { return !everybody_.processes().empty() || !looked_at_.empty(); }

  /// Returns whether the daemon has noticed that the command of the run, which the ancestor
  /// started, has ended.
  bool has_command_ended() const { return participants_->has_command_ended(); }
  /// Handles waiting events, and then returns has_command_ended().
  bool look_whether_command_ended();

 private:
  bool is_taken(uint32_t slot) const;
  /// Spins until the thread returns its turn or sends a request. Returns false if it did neither in
  /// time.
  bool wait_awake(const abi::ThreadSlot& slot) const;
  bool must_go_on_beside(const abi::ThreadSlot& slot, std::chrono::nanoseconds held,
                         std::chrono::nanoseconds own);
  bool is_stopped(const std::string& status) const;
  void revoke(uint32_t number);
  bool must_wait_for_quiescence(Checks checks);
  /// Returns whether the threads in `unscheduled_` must be checked, because memory that they poll
  /// may have changed.
  bool must_check_unscheduled(Checks checks) const;
  bool is_one_starting() const;
  bool may_still_join(std::chrono::nanoseconds slept) const;
  void find_strangers();
  void tell_of_unseen();
  void serve();
  void wait_for_events(std::chrono::nanoseconds time, int other = -1);

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
  std::set<uint32_t> unscheduled_;         // slots of threads that wait in the kernel
  std::vector<schedule::Thread> threads_;  // for threads()
  bool needs_quiescence_ = true;
  bool has_looked_ = false;    // for events, and nothing was done since then
  bool touched_ = true;        // whether memory that an unscheduled thread polls may have changed
  uint32_t quiet_rounds_ = 0;  // in a row
  bool has_round_progressed_ = false;
  SpinChecks spin_checks_;
  ChildWaits child_waits_;
};

}  // namespace rocemu::daemon
