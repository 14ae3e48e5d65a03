// The file of a recording that says where `--schedule` stopped threads: a line for each thread that
// others or the NIC overtook between two of its calls, in the order in which they went on.
//
//   3/17 kv_server 2 ibv_poll_cq ibv_req_notify_cq
//
// is thread 3 of the run, after its 17th call; the program's second thread, which was between these
// two calls. "-" is a call that is not known: it waited, or ended, before it made one.
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
  /// The log ends after this number of lines.
  static constexpr uint32_t kMost = 10'000;

  /// `directory` is that of the recording; the file has the `mask` of the user.
  StopLog(const std::string& directory, mode_t mask);
  ~StopLog();
  StopLog(const StopLog&) = delete;
  StopLog& operator=(const StopLog&) = delete;

  /// The thread has a turn: threads of a process are numbered in the order of their start.
  void see(const abi::ThreadSlot& slot) { number_of(slot.pid.load(), slot.serial.load()); }
  using CallName = char[abi::ThreadSlot::kCallName];
  /// The thread has ended its first turn after it was stopped after that call, which was `before`.
  void write(const abi::ThreadSlot& slot, uint64_t call, const CallName& before);
  /// The thread has ended a turn with that number of calls. If it would go on, but never does, it
  /// was stopped there for good: another thread ended the process, for example.
  void turn_ended(const abi::ThreadSlot& slot, uint32_t calls, bool is_preempted);

 private:
  struct Stopped {
    pid_t pid;
    uint64_t call;
    std::string before;
  };
  struct Process {
    std::string program;            // while its latest thread started: it may be gone since
    std::vector<uint64_t> serials;  // of its threads
  };
  /// Returns the number of the thread in its process.
  size_t number_of(pid_t pid, uint64_t serial);
  void write_line(pid_t pid, uint64_t serial, uint64_t call, const std::string& before,
                  const std::string& after);

  std::string path_;
  mode_t mask_;
  int file_ = -1;
  uint32_t lines_ = 0;
  std::map<pid_t, Process> processes_;
  std::map<uint64_t, uint64_t> calls_;   // of threads, by their serials
  std::map<uint64_t, Stopped> stopped_;  // that have had no turn since, the same
};

}  // namespace rocemu::daemon
