// The file of a recording that says where `--schedule` stopped threads. It has a line for each
// thread that was stopped between two of its calls while others or the NIC acted, in the order in
// which the threads continued.
//
//   3/17 kv_server 2 ibv_poll_cq ibv_req_notify_cq
//
// This is thread 3 of the run, after its 17th call; it is the program's second thread, and was
// between these two calls. "-" means that the next call is not known: the thread waited, or ended,
// before it made one.
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

  /// `directory` is that of the recording; the file is created with the user's umask, `mask`.
  StopLog(const std::string& directory, mode_t mask);
  ~StopLog();
  StopLog(const StopLog&) = delete;
  StopLog& operator=(const StopLog&) = delete;

  /// Notes that the thread has a turn. Threads of a process are numbered in start order.
  void see(const abi::ThreadSlot& slot) { number_of(slot.pid.load(), slot.serial.load()); }
  using CallName = char[abi::ThreadSlot::kCallName];
  /// Writes a line for a thread that has just ended its first turn after it was stopped. It was
  /// stopped after call number `call`, whose name is `before`.
  void write(const abi::ThreadSlot& slot, uint64_t call, const CallName& before);
  /// Notes that the thread has ended a turn with that number of calls. If it could continue but
  /// never does, it was stopped there permanently, for example because another thread ended the
  /// process.
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
  /// Returns the number of the thread within its process.
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
