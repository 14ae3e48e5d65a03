// The threads of all programs and their turns (abi/turn_table.h): who waits for one, giving it and
// getting it back. Which thread is next decides schedule/. A process that takes no turns, a
// statically linked one for example, is waited for until it sleeps (quiescence.h).
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
    bool sleeps_between_turns = false;  // never waits awake for one to come back
    bool tells_exits = false;           // of programs that end otherwise than with status 0
    /// The process that all programs descend from, if there is one.
    std::optional<pid_t> ancestor;
    /// Where the recording has the stops of `--schedule`; null for nowhere.
    std::unique_ptr<StopLog> stop_log = nullptr;
  };
  /// What the daemon does while threads have their turns.
  struct Requests {
    int fd;                       // readable when there are any
    std::function<void()> serve;  // those that there are
    std::function<std::vector<pid_t>()> clients;
  };

  /// Processes join at `listener`. Throws StartError.
  Turns(Options options, UniqueFd listener, Requests requests);

  using MustStop = std::function<bool()>;

  /// A round of turns begins. `is_quiet`: only since the time of polls is over.
  void begin_round(bool is_quiet);
  /// Returns when nobody outside of the turns runs.
  void settle(const MustStop& must_stop);
  /// The threads that wait for a turn.
  std::span<const schedule::Thread> threads();
  /// Gives the turn of that step. Returns when the thread has given it back, or lost it.
  schedule::Turn give_turn(const schedule::Step& step, const MustStop& must_stop);
  /// Returns whether a process has come or gone since the last call.
  bool take_changed() { return participants_->take_changed(); }

  /// Somebody came, went or asks, or goes on without turns.
  bool has_news();
  /// Somebody spins, and sees what is written to memory though nothing tells of it.
  bool is_memory_watched() const { return spinning_.holds_any(); }

  /// Waits for something that happens outside, for so long at most.
  void wait_outside(engine::Duration time);

  /// The time that the programs see. True if a timer of theirs has expired.
  bool set_time(engine::Instant now);
  /// When a timer of theirs expires.
  std::optional<engine::Instant> next_timer() const { return timers_.next_deadline(); }

  /// There has been a program. Until then nobody waits, and nothing can be stuck.
  bool has_seen_programs() const { return !everybody_.processes().empty() || !looked_at_.empty(); }

  /// The process that the ancestor started, and for which the run is, has ended, as far as the
  /// latest round of turns has seen.
  bool has_command_ended() const { return participants_->has_command_ended(); }
  /// The same, as far as the kernel can tell at this moment.
  bool look_whether_command_ended();

 private:
  bool is_taken(uint32_t slot) const;
  /// True if the thread gives its turn back, or asks, so soon that it is worth waiting awake for.
  bool wait_awake(const abi::ThreadSlot& slot) const;
  bool must_go_on_beside(const abi::ThreadSlot& slot, std::chrono::nanoseconds held,
                         std::chrono::nanoseconds own);
  bool is_stopped_by_another(const std::string& status) const;
  void revoke(uint32_t number);
  bool needs_settling();
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
  std::set<uint32_t> outside_;             // slots of threads that the kernel keeps waiting
  std::vector<schedule::Thread> threads_;  // for threads()
  bool unsettled_ = true;
  bool has_looked_ = false;    // for events, and nothing was done since then
  bool touched_ = true;        // memory that a thread outside may look at has changed, perhaps
  uint32_t quiet_rounds_ = 0;  // in a row
};

}  // namespace rocemu::daemon
