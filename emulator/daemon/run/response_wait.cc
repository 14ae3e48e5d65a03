#include "emulator/daemon/run/response_wait.h"

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "emulator/daemon/base/start_error.h"

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;

/// The interval of checks. The kernel does not report when a thread falls asleep.
constexpr std::chrono::nanoseconds kLookInterval = 1ms;
/// The longest time for which the daemon waits for programs to react, for example if a thread waits
/// for a processor or a disk.
constexpr engine::Duration kMaxWait = 10s;

engine::Instant real_now() {
  return engine::Instant(std::chrono::duration_cast<engine::Duration>(
      std::chrono::steady_clock::now().time_since_epoch()));
}

}  // namespace

std::vector<pid_t> pids_of_clients(Worker& worker) {
  std::vector<pid_t> pids;
  for (const ClientSession* session : worker.sessions().list()) pids.push_back(session->peer().pid);
  for (const pid_t pid : worker.cm_sessions().pids()) pids.push_back(pid);
  return pids;
}

ResponseWait::ResponseWait(Worker& worker, std::optional<pid_t> ancestor,
                           std::function<void()> on_over)
    : worker_(worker),
      programs_(ancestor),
      on_over_(std::move(on_over)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!timer_) fail_start("cannot make a timer", errno);
  watch_ = worker_.loop().watch(timer_.get(), EPOLLIN, [this](uint32_t) { on_timer(); });
  if (!watch_) fail_start("cannot watch a timer", errno);
}

void ResponseWait::begin(std::chrono::nanoseconds long_poll) {
  if (since_) return;
  since_ = real_now();
  long_poll_ = long_poll;
  wakes_of_pollers_ = 0;
  programs_.begin_wait();
  look_again();
}

void ResponseWait::look_again() {
  itimerspec time{};
  time.it_value.tv_nsec = kLookInterval.count();
  timerfd_settime(timer_.get(), 0, &time, nullptr);
}

void ResponseWait::on_timer() {
  uint64_t count;
  [[maybe_unused]] const ssize_t size = read(timer_.get(), &count, sizeof count);
  if (!since_) return;
  if (!is_over()) return look_again();
  since_.reset();
  on_over_();
}

bool ResponseWait::is_over() {
  const bool quiet =
      programs_.is_quiet(pids_of_clients(worker_)) || programs_.everyone_had(long_poll_);
  // The doorbells that programs have rung are handled now. A program that took a completion may
  // sleep in the next poll, which finds none, before it handles that completion; so the turn is not
  // over if completions were taken.
  const bool rang = worker_.sessions().pump_in_order();
  const uint32_t taken = worker_.sessions().completions_taken();
  if (std::exchange(taken_, taken) != taken || rang) {
    wakes_of_pollers_ = 0;
    return false;
  }
  if (real_now() - *since_ > kMaxWait) return true;
  pollfd more{.fd = worker_.loop().fd(), .events = POLLIN, .revents = 0};
  return quiet && poll(&more, 1, 0) == 0 && pollers_have_looked();
}

/// Wakes the threads that sleep after an empty poll. Returns whether each of them has now polled
/// all its CQs. A thread continues to sleep if a completion arrives in another one of its CQs, so
/// it must be woken as many times as it has CQs.
bool ResponseWait::pollers_have_looked() {
  const size_t cqs = worker_.sessions().wake_pollers();
  return cqs == 0 || ++wakes_of_pollers_ > cqs;
}

}  // namespace rocemu::daemon
