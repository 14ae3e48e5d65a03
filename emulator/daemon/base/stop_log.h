// Writes the file of a recording that lists where `--schedule` stopped threads. It has a line for
// each thread that was stopped between two of its calls while other threads or the NIC acted, in
// the order in which the threads continued.
//
//   3/17 kv_server 2 ibv_poll_cq ibv_req_notify_cq
//
// This line means: thread 3 of the run was stopped after its 17th call. It is the second thread of
// the program kv_server, and was between the calls ibv_poll_cq and ibv_req_notify_cq. "-" means
// that the next call is unknown, because the thread waited or ended before it made one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emulator/abi/turn_table.h"

namespace rocemu::daemon {

class StopLog {
 public:
  static constexpr char kFile[] = "stops";
  /// The maximum number of lines. Later stops are not logged.
  static constexpr uint32_t kMost = 10'000;

  /// `directory` is the directory of the recording. `mask` is the user's umask, which applies to
  /// the file.
  StopLog(const std::string& directory, mode_t mask);
  ~StopLog();
  StopLog(const StopLog&) = delete;
  StopLog& operator=(const StopLog&) = delete;

  /// Notes a thread that has a turn. Every such thread must be noted, because the log numbers the
  /// threads of a process in start order.
  void see(const abi::ThreadSlot& slot) { number_of(slot.pid.load(), slot.serial.load()); }
  using CallName = char[abi::ThreadSlot::kCallName];
  /// Writes a line for a stopped thread that has just ended its next turn. It was stopped after its
  /// call number `call`, whose name is `before`.
  void write(const abi::ThreadSlot& slot, uint64_t call, const CallName& before);
  /// Notes that the thread has ended a turn in which it made `calls` calls. If it was preempted and
  /// never continues, for example because another thread ends the process, the destructor writes
  /// its line.
  void turn_ended(const abi::ThreadSlot& slot, uint32_t calls, bool is_preempted);

 private:
  struct Stopped {
    pid_t pid;
    uint64_t call;
    std::string before;
  };
  struct Process {
    std::string program;  // recorded when its latest thread started; it can have ended since
    std::vector<uint64_t> serials;  // of its threads
  };
  /// Returns the number of the thread among the noted threads of its process, from 1 in start
  /// order.
  size_t number_of(pid_t pid, uint64_t serial);
  void write_line(pid_t pid, uint64_t serial, uint64_t call, const std::string& before,
                  const std::string& after);

  std::string path_;
  mode_t mask_;
  int file_ = -1;
  uint32_t lines_ = 0;
  std::map<pid_t, Process> processes_;
  std::map<uint64_t, uint64_t> calls_;   // of threads, by their serials
  std::map<uint64_t, Stopped> stopped_;  // of threads that had no turn since, also by their serials
};

}  // namespace rocemu::daemon
