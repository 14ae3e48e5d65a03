// The test that started `rocemu run --for-test` as its NIC (testing/): its threads are watched for
// hangs like those of a command.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "emulator/os/threads/blocked_threads.h"

namespace rocemu::abi {
struct TestWatch;
}

namespace rocemu::command {

class WatchedTest {
 public:
  /// Watches our parent, the test. `descriptors` is the value of --for-test (abi/test_watch.h).
  /// Throws UsageError.
  explicit WatchedTest(const std::string& descriptors);
  ~WatchedTest();
  WatchedTest(const WatchedTest&) = delete;
  WatchedTest& operator=(const WatchedTest&) = delete;

  /// Returns the processes of the test: the test itself and its descendants, without this process
  /// and its descendants.
  std::vector<pid_t> programs() const;

  /// Marks the threads of the test that wait for programs, whatever their system call is. While
  /// there is such a thread, other threads of the test that wait for something outside the run,
  /// such as threads of a test runner, do not prevent the detection of a hang.
  void mark_waits(std::vector<BlockedThread>& threads);

  /// Returns whether the test is closing its NIC, which it does by closing this process's standard
  /// input. It then waits for this process, which is not a hang even if all its other threads wait,
  /// too.
  bool is_closing() const;

  /// Hands the report to the test. Threads of the test that wait for programs then fail with the
  /// report. If no thread waits for programs, or if the test chose a signal that raises an
  /// exception, also sends a signal: the chosen one, then SIGABRT, and finally SIGKILL.
  void report(const std::string& text);

 private:
  bool is_waiting() const;
  /// Returns whether a program has ended and the thread that waits for it may be about to notice
  /// that.
  bool may_notice_an_end();

  pid_t pid_;
  int report_fd_ = -1;
  abi::TestWatch* watch_;
  std::set<pid_t> ended_;  // programs that the test has not yet reaped
  std::chrono::steady_clock::time_point ended_since_{};
  int signals_ = 0;  // the number sent for this hang so far
  std::chrono::steady_clock::time_point latest_{};
};

}  // namespace rocemu::command
