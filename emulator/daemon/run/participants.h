// The processes that take turns. Each joins at a socket when it starts or is forked, has slots in
// the table for its threads (abi/turn_table.h), and leaves when it ends. It stays when it executes
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

/// Returns the slots that were ever used.
std::span<abi::ThreadSlot> used_slots(abi::TurnTable& table);
/// Returns a file of a slot's thread, for example "/proc/12/task/13/status".
std::string task_file(const abi::ThreadSlot& slot, const char* name);

class Participants {
 public:
  struct Files {
    int table, handback;  // passed to each process; they must outlive this object
    UniqueFd listener;
  };

  /// Events arrive in `loop`, requests for timers go to `timers`; all arguments must outlive this
  /// object. `ancestor` is the process from which all others descend, if there is one. With
  /// `tells_exits`, all processes with an exit status other than 0 are reported, not only those
  /// that crash. `on_end` is called when a process has ended, before its parent continues. Throws
  /// StartError.
  Participants(abi::TurnTable& table, Files files, EventLoop& loop, ProgramTimers& timers,
               std::optional<pid_t> ancestor, bool tells_exits, std::function<void()> on_end);

  /// Sets the thread that has the turn; null means none.
  void set_holder(const abi::ThreadSlot* holder) { holder_ = holder; }

  bool has_joined(pid_t pid) const;
  /// Returns whether the process has joined, and its connection has not ended.
  bool takes_turns(pid_t pid) const;
  /// Returns whether the process waits to join.
  bool says_hello(pid_t pid) const;
  std::set<pid_t> joined() const;
  /// Returns whether some processes wait to join, or have closed their connection and are not known
  /// to have ended.
  bool are_changing() const;
  bool is_one_leaving() const;
  /// Lets the waiting processes join.
  void answer_waiting();
  /// Removes the processes that were leaving: all threads are at rest, and these processes have not
  /// joined again.
  void drop_leaving();

  /// Returns whether a process joined or ended since the latest call.
  bool take_changed() { return std::exchange(changed_, false); }
  /// Returns whether, since the latest call, an action woke threads outside of their turns.
  bool take_unsettled() { return std::exchange(unsettled_, false); }

  /// Returns whether the command of the run, which the ancestor started, has ended.
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
