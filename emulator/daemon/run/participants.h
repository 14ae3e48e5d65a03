// The processes that take turns. Each process joins at a socket when it starts or is forked, has
// slots in the table for its threads (abi/turn_table.h), and leaves when it ends. It stays if it
// executes another program, or closes descriptors that it did not open itself.
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

/// Returns the slots of the table that have been used so far.
std::span<abi::ThreadSlot> used_slots(abi::TurnTable& table);
/// Returns the path of a file in the /proc directory of the slot's thread, such as
/// "/proc/12/task/13/status".
std::string task_file(const abi::ThreadSlot& slot, const char* name);

class Participants {
 public:
  struct Files {
    int table, handback;  // passed to each process; they must outlive this object
    UniqueFd listener;
  };

  /// Lets processes join at the listener in `files`. Events arrive in `loop`, and requests for
  /// timers go to `timers`; both must outlive this object, and so must `table`. `ancestor` is the
  /// process from which all others descend, if there is one. If `tells_exits` is true, every exit
  /// status other than 0 is reported, and otherwise only crashes. `on_end` is called when a process
  /// has ended, before its parent continues. Throws StartError.
  Participants(abi::TurnTable& table, Files files, EventLoop& loop, ProgramTimers& timers,
               std::optional<pid_t> ancestor, bool tells_exits, std::function<void()> on_end);

  /// Closes the connections of all processes, and wakes the threads that wait for a turn or a
  /// reply, which then notice that there will be none.
  ~Participants();
  Participants(const Participants&) = delete;
  Participants& operator=(const Participants&) = delete;

  /// Sets the thread that has the turn; null if no thread has it.
  void set_holder(const abi::ThreadSlot* holder) { holder_ = holder; }

  bool has_joined(pid_t pid) const;
  /// Returns whether the process has connected, and its connection has not ended.
  bool takes_turns(pid_t pid) const;
  /// Returns whether the process has asked to join and waits for the reply.
  bool says_hello(pid_t pid) const;
  std::set<pid_t> joined() const;
  /// Returns whether any process waits to join, or has closed its connection but is not known to
  /// have ended.
  bool are_changing() const;
  bool is_one_leaving() const;
  /// Lets the processes join that wait for it.
  void answer_waiting();
  /// Removes the processes that have closed their connection. Must be called when all threads are
  /// asleep and these processes have not joined again.
  void drop_leaving();

  /// Returns whether a process joined or ended since the latest call.
  bool take_changed() { return std::exchange(changed_, false); }
  /// Returns whether, since the latest call, something woke threads outside of their turns, such as
  /// the end of a child process.
  bool take_quiescence_need() { return std::exchange(needs_quiescence_, false); }

  /// Returns whether the command of the run, which is the first child of the ancestor, has ended.
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
  bool is_valid(const abi::TurnsHello& hello) const;
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
  bool needs_quiescence_ = false;
  bool changed_ = false;
  std::optional<pid_t> command_;
  bool command_ended_ = false;
};

}  // namespace rocemu::daemon
