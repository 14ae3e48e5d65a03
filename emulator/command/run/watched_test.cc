#include "emulator/command/run/watched_test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "emulator/abi/test_watch.h"
#include "emulator/command/base/error.h"
#include "emulator/os/proc.h"

namespace rocemu::command {
namespace {

/// The number of times that a test gets the signal that it chose, before it gets SIGABRT, and
/// finally SIGKILL. A Python test raises an exception at its signal, but does not do so while its
/// main thread cannot be interrupted.
constexpr int kMaxSignals = 3;
/// The time after which a reported hang counts as a new one. Before that, the same hang is reported
/// every two seconds.
constexpr std::chrono::seconds kNewHang{10};
/// The longest time, on a busy machine, until a waiting thread notices that its program has ended.
/// In Python, a wait with a timeout checks for this every 50 ms.
constexpr std::chrono::seconds kUntilWaitsNotice{2};

bool is_one_of(const std::atomic<int32_t> (&threads)[abi::TestWatch::kThreads], pid_t thread) {
  return std::ranges::any_of(threads, [&](const auto& one) { return one.load() == thread; });
}

}  // namespace

WatchedTest::WatchedTest(const std::string& descriptors) : pid_(getppid()) {
  int watch_fd = -1;
  struct stat status {};
  void* memory = MAP_FAILED;
  if (std::sscanf(descriptors.c_str(), "%d,%d", &watch_fd, &report_fd_) == 2 &&
      fstat(watch_fd, &status) == 0 && status.st_size == ssize_t{sizeof *watch_})
    memory = mmap(nullptr, sizeof *watch_, PROT_READ | PROT_WRITE, MAP_SHARED, watch_fd, 0);
  if (memory == MAP_FAILED)
    throw UsageError("run: --for-test is for rocemu's test libraries, which hand over memory");
  watch_ = static_cast<abi::TestWatch*>(memory);
  close(watch_fd);
  fcntl(report_fd_, F_SETFD, FD_CLOEXEC);
}

WatchedTest::~WatchedTest() {
  munmap(watch_, sizeof *watch_);
}

std::vector<pid_t> WatchedTest::programs() const {
  const pid_t us = getpid();
  std::vector<pid_t> found = descendants(pid_, [us](pid_t process) { return process == us; });
  if (proc::is_of_this_namespace()) found.insert(found.begin(), pid_);
  return found;
}

bool WatchedTest::is_waiting() const {
  return std::ranges::any_of(watch_->waiting, [](const auto& one) { return one.load() != 0; });
}

bool WatchedTest::may_notice_an_end() {
  std::set<pid_t> ended;
  bool is_any_alive = false;
  for (const pid_t process : programs()) {
    const std::string status = proc::contents_of(proc::directory_of(process) + "/status");
    if (proc::field_of(status, "State").starts_with('Z')) {
      ended.insert(process);
    } else if (process != pid_) {
      is_any_alive = true;
    }
  }
  const auto now = std::chrono::steady_clock::now();
  if (ended != ended_) ended_since_ = now;
  ended_ = std::move(ended);
  return !is_any_alive || (!ended_.empty() && now - ended_since_ < kUntilWaitsNotice);
}

void WatchedTest::mark_waits(std::vector<BlockedThread>& threads) {
  const bool is_any_waiting = is_waiting();
  const Waker waker = is_any_waiting && may_notice_an_end() ? Waker::kTime : Waker::kNobody;
  for (BlockedThread& thread : threads) {
    if (thread.process != pid_) continue;
    if (is_one_of(watch_->waiting, thread.thread)) {
      thread.waker = waker;
      thread.what = "waits for programs that it started";
      thread.switches.clear();
      thread.sockets.clear();
    } else if (is_any_waiting && thread.waker == Waker::kExternal) {
      thread.waker = Waker::kNobody;
    }
  }
}

bool WatchedTest::is_closing() const {
  pollfd input = {STDIN_FILENO, 0, 0};
  return poll(&input, 1, 0) == 1 && (input.revents & POLLHUP) != 0;
}

void WatchedTest::report(const std::string& text) {
  const size_t length = std::min(text.size(), abi::TestWatch::kReportSize);
  std::memcpy(watch_->report, text.data(), length);
  watch_->report_length.store(static_cast<uint32_t>(length));
  watch_->hangs.fetch_add(1);
  const int soft = watch_->signal.load();
  const bool raises = soft > 0 && soft != SIGABRT;  // with Python, also if it is waiting
  if (!raises && is_waiting()) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - latest_ > kNewHang) signals_ = 0;
  latest_ = now;
  const std::string line = "rocemu: " + text;
  const bool is_shown = !raises || signals_ >= kMaxSignals;
  if (is_shown && write(report_fd_, line.data(), line.size()) < 0) {
    // Nothing can be done if the test has no standard error. It still gets the signal.
  }
  const int signal = raises && signals_ < kMaxSignals ? soft : SIGABRT;
  kill(pid_, signals_++ > kMaxSignals ? SIGKILL : signal);
}

}  // namespace rocemu::command
