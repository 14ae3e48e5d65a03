// Which processes take turns: each joins at a socket when it starts or is forked, has slots in the
// table for its threads (abi/turn_table.h), and leaves when it ends. It stays when it executes
// another program, or closes descriptors that it does not know.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "emulator/abi/turn_table.h"
#include "emulator/daemon/base/event_loop.h"
#include "emulator/daemon/run/program_timers.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

/// Those that were ever taken.
std::span<abi::ThreadSlot> used_slots(abi::TurnTable& table);
/// "/proc/12/task/13/status", for example, of a slot's thread.
std::string task_file(const abi::ThreadSlot& slot, const char* name);

class Participants {
 public:
  struct Files {
    int table, handback;  // handed to each process; they outlive this
    UniqueFd listener;
  };

  /// Events come in `loop`, requests for timers go to `timers`; all of them outlive this.
  /// `ancestor` is the process that all others descend from, if there is one. `tells_exits`: also
  /// of processes that end with another status than 0, and not only of those that crash. `on_end`
  /// is called when a process has ended, before its parent goes on. Throws StartError.
  Participants(abi::TurnTable& table, Files files, EventLoop& loop, ProgramTimers& timers,
               std::optional<pid_t> ancestor, bool tells_exits, std::function<void()> on_end);

  /// Whose turn it is; null: nobody's.
  void set_holder(const abi::ThreadSlot* holder) { holder_ = holder; }

  bool has_joined(pid_t pid) const;
  /// It has joined, and its connection has not ended.
  bool takes_turns(pid_t pid) const;
  /// It waits to join.
  bool says_hello(pid_t pid) const;
  std::set<pid_t> joined() const;
  /// Some wait to join; or have closed their connection, and are not known to have ended.
  bool are_changing() const;
  bool is_one_leaving() const;
  /// Those that wait to join do so.
  void answer_waiting();
  /// Those that are leaving have left: all threads are at rest, and they have not joined again.
  void drop_leaving();

  /// Since the latest call: a process joined, or ended.
  bool take_changed() { return std::exchange(changed_, false); }
  /// Since the latest call: something was done that wakes threads outside of the turns.
  bool take_unsettled() { return std::exchange(unsettled_, false); }

  /// The process that the ancestor started, and for which the run is.
  bool has_command_ended() const { return command_ended_; }

 private:
  struct Process {
    pid_t pid;
    UniqueFd socket, pidfd;
    EventLoop::Watch socket_watch, pidfd_watch;
    std::optional<abi::TurnsHello> hello;  // not answered yet
    bool is_leaving = false;  // its connection has ended: it ends too, or executes a program
  };

  void on_connect();
  void on_message(Process& process);
  void on_hello(Process& process, const abi::TurnsHello& hello);
  void on_request(Process& process, const abi::TurnsRequest& request, UniqueFd fd);
  void answer(Process& process);
  void go_on_as_before(pid_t pid);
  void on_death(pid_t pid);
  void on_hang_up(Process& process);
  void forget(const Process& process);
  void refuse(const Process& process);

  abi::TurnTable& table_;
  Files files_;
  EventLoop& loop_;
  ProgramTimers& timers_;
  std::optional<pid_t> ancestor_;
  bool tells_exits_;
  std::function<void()> on_end_;
  EventLoop::Watch listener_watch_;
  std::vector<std::unique_ptr<Process>> processes_;
  const abi::ThreadSlot* holder_ = nullptr;
  bool unsettled_ = false;
  bool changed_ = false;
  std::optional<pid_t> command_;
  bool command_ended_ = false;
};

}  // namespace rocemu::daemon
