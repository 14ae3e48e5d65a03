// Common parts of the ways to wait (timed_waits.cc).
#pragma once

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

namespace rocemu::timed_waits {

struct Way {
  std::string_view name;
  void (*wait)();
};

/// Returns the ways in timed_waits_others.cc: system calls without a C function, loops, queues,
/// other threads and processes.
std::span<const Way> other_ways();

constexpr time_t kSeconds = 1000;
constexpr int kMilliseconds = 1000 * kSeconds;
constexpr timespec kTime{kSeconds, 0};

[[noreturn]] inline void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}
inline void require(bool holds, const char* what) {
  if (!holds) fail(what);
}

inline timespec later(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  now.tv_sec += kSeconds;
  return now;
}

inline double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}
inline double seconds_of_system_call() {
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

/// Returns the read end of a pipe into which nothing is written.
inline int silent_pipe() {
  static int ends[2] = {-1, -1};
  if (ends[0] < 0 && pipe(ends) != 0) fail("pipe");
  return ends[0];
}

inline int silent_epoll() {
  const int fd = epoll_create1(0);
  epoll_event event{};
  event.events = EPOLLIN;
  require(epoll_ctl(fd, EPOLL_CTL_ADD, silent_pipe(), &event) == 0, "epoll_ctl");
  return fd;
}

}  // namespace rocemu::timed_waits
