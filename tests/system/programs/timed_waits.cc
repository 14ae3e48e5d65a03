// Waits for 1000 s in each way in which programs can wait for a time, or only in the way that the
// argument names. Prints how long each wait took by the program's clocks.
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <mutex>
#include <string_view>
#include <thread>

#include "timed_waits.h"

using namespace rocemu::timed_waits;

namespace {

double time_of_day() {
  timeval now{};
  gettimeofday(&now, nullptr);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_usec) / 1e6;
}

// ---- Sleep ----

void by_nanosleep() {
  nanosleep(&kTime, nullptr);
}
void by_clock_nanosleep() {
  clock_nanosleep(CLOCK_REALTIME, 0, &kTime, nullptr);
}
void by_absolute_clock_nanosleep() {
  const timespec until = later(CLOCK_MONOTONIC);
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}
void by_sleep() {
  sleep(kSeconds);
}
void by_usleep() {
  usleep(kMilliseconds * useconds_t{1000});
}
void by_thrd_sleep() {
  thrd_sleep(&kTime, nullptr);
}
void by_sleep_for() {
  std::this_thread::sleep_for(std::chrono::seconds(kSeconds));
}

// ---- Descriptors ----

void by_poll() {
  pollfd entry{silent_pipe(), POLLIN, 0};
  require(poll(&entry, 1, kMilliseconds) == 0, "poll");
}
void by_ppoll() {
  pollfd entry{silent_pipe(), POLLIN, 0};
  require(ppoll(&entry, 1, &kTime, nullptr) == 0, "ppoll");
}
void by_poll_of_nothing() {
  require(poll(nullptr, 0, kMilliseconds) == 0, "poll");
}
void by_select() {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(silent_pipe(), &set);
  timeval time{kSeconds, 0};
  require(select(silent_pipe() + 1, &set, nullptr, nullptr, &time) == 0, "select");
}
void by_pselect() {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(silent_pipe(), &set);
  require(pselect(silent_pipe() + 1, &set, nullptr, nullptr, &kTime, nullptr) == 0, "pselect");
}
void by_epoll_wait() {
  epoll_event event{};
  require(epoll_wait(silent_epoll(), &event, 1, kMilliseconds) == 0, "epoll_wait");
}
void by_epoll_pwait2() {
  epoll_event event{};
  require(epoll_pwait2(silent_epoll(), &event, 1, &kTime, nullptr) == 0, "epoll_pwait2");
}
void by_receive_timeout() {
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  const timeval time{kSeconds, 0};
  require(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) == 0, "SO_RCVTIMEO");
  char byte = 0;
  require(recv(ends[0], &byte, 1, 0) < 0 && errno == EAGAIN, "recv");
}

// ---- Locks and conditions ----

void by_sem_timedwait() {
  sem_t never;
  sem_init(&never, 0, 0);
  const timespec until = later(CLOCK_REALTIME);
  require(sem_timedwait(&never, &until) < 0 && errno == ETIMEDOUT, "sem_timedwait");
}
void by_cond_timedwait() {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t never = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&mutex);
  const timespec until = later(CLOCK_REALTIME);
  require(pthread_cond_timedwait(&never, &mutex, &until) == ETIMEDOUT, "pthread_cond_timedwait");
}
void by_cond_clockwait() {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t never = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&mutex);
  const timespec until = later(CLOCK_MONOTONIC);
  require(pthread_cond_clockwait(&never, &mutex, CLOCK_MONOTONIC, &until) == ETIMEDOUT,
          "pthread_cond_clockwait");
}
void by_condition_variable() {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  require(never.wait_for(lock, std::chrono::seconds(kSeconds)) == std::cv_status::timeout,
          "condition_variable::wait_for");
}
void by_timed_mutex() {
  std::timed_mutex mutex;
  mutex.lock();
  std::thread other([&] {
    require(!mutex.try_lock_for(std::chrono::seconds(kSeconds)), "timed_mutex::try_lock_for");
  });
  other.join();
}
void by_future() {
  std::promise<int> never;
  require(
      never.get_future().wait_for(std::chrono::seconds(kSeconds)) == std::future_status::timeout,
      "future::wait_for");
}
void by_futex() {
  uint32_t word = 0;
  require(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &kTime, nullptr, 0) < 0 &&
              errno == ETIMEDOUT,
          "futex");
}

// ---- Timers ----

volatile sig_atomic_t signaled = 0;

void on_signal(int) {
  signaled = 1;
}

void wait_for_signal(int number, void (*arm)()) {
  signaled = 0;
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, number);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(number, &action, nullptr);
  arm();
  while (signaled == 0) sigsuspend(&before);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

void by_alarm() {
  wait_for_signal(SIGALRM, [] { alarm(kSeconds); });
}
void by_setitimer() {
  wait_for_signal(SIGALRM, [] {
    const itimerval time{{0, 0}, {kSeconds, 0}};
    setitimer(ITIMER_REAL, &time, nullptr);
  });
}
void by_timer_create() {
  wait_for_signal(SIGUSR1, [] {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGUSR1;
    timer_t timer{};
    require(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "timer_create");
    const itimerspec time{{0, 0}, kTime};
    require(timer_settime(timer, 0, &time, nullptr) == 0, "timer_settime");
  });
}
void by_timer_thread() {
  static std::promise<void> expired;
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD;
  event.sigev_notify_function = [](sigval value) {
    require(value.sival_int == 7, "the value of a timer's thread");
    expired.set_value();
  };
  event.sigev_value.sival_int = 7;
  timer_t timer{};
  require(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "timer_create");
  const itimerspec time{{0, 0}, kTime};
  require(timer_settime(timer, 0, &time, nullptr) == 0, "timer_settime");
  expired.get_future().wait();
  require(timer_delete(timer) == 0, "timer_delete");
}
/// A periodic timer expires twice in the time, and does not expire after it was stopped.
void by_periodic_timer_thread() {
  static std::atomic<int> expirations = 0;
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD;
  event.sigev_notify_function = [](sigval) { ++expirations; };
  timer_t timer{};
  require(timer_create(CLOCK_REALTIME, &event, &timer) == 0, "timer_create");
  itimerspec time{{kSeconds / 4, 0}, {kSeconds / 4, 0}};
  require(timer_settime(timer, 0, &time, nullptr) == 0, "timer_settime");
  sleep(kSeconds * 5 / 8);
  require(expirations == 2, "two expirations");
  itimerspec before{};
  time = {};
  require(timer_settime(timer, 0, &time, &before) == 0, "timer_settime");
  require(before.it_value.tv_sec == kSeconds / 8 && before.it_interval.tv_sec == kSeconds / 4,
          "what was left of the time");
  sleep(kSeconds * 3 / 8);
  require(expirations == 2, "no expirations of a timer that was stopped");
  require(timer_delete(timer) == 0, "timer_delete");
}
void by_timerfd() {
  const int fd = timerfd_create(CLOCK_MONOTONIC, 0);
  const itimerspec time{{0, 0}, kTime};
  require(timerfd_settime(fd, 0, &time, nullptr) == 0, "timerfd_settime");
  uint64_t expired = 0;
  require(read(fd, &expired, sizeof expired) == sizeof expired && expired == 1, "read of a timer");
}
void by_timerfd_in_epoll() {
  const int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
  const timespec until = later(CLOCK_REALTIME);
  const itimerspec time{{0, 0}, until};
  require(timerfd_settime(fd, TFD_TIMER_ABSTIME, &time, nullptr) == 0, "timerfd_settime");
  const int poller = epoll_create1(0);
  epoll_event event{};
  event.events = EPOLLIN;
  require(epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
  require(epoll_wait(poller, &event, 1, -1) == 1, "epoll_wait");
}
void by_sigtimedwait() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  require(sigtimedwait(&set, nullptr, &kTime) < 0 && errno == EAGAIN, "sigtimedwait");
}

constexpr Way kWays[] = {
    {"nanosleep", by_nanosleep},
    {"clock_nanosleep", by_clock_nanosleep},
    {"absolute clock_nanosleep", by_absolute_clock_nanosleep},
    {"sleep", by_sleep},
    {"usleep", by_usleep},
    {"thrd_sleep", by_thrd_sleep},
    {"sleep_for", by_sleep_for},
    {"poll", by_poll},
    {"ppoll", by_ppoll},
    {"poll of nothing", by_poll_of_nothing},
    {"select", by_select},
    {"pselect", by_pselect},
    {"epoll_wait", by_epoll_wait},
    {"epoll_pwait2", by_epoll_pwait2},
    {"SO_RCVTIMEO", by_receive_timeout},
    {"sem_timedwait", by_sem_timedwait},
    {"pthread_cond_timedwait", by_cond_timedwait},
    {"pthread_cond_clockwait", by_cond_clockwait},
    {"condition_variable::wait_for", by_condition_variable},
    {"timed_mutex", by_timed_mutex},
    {"future::wait_for", by_future},
    {"futex", by_futex},
    {"alarm", by_alarm},
    {"setitimer", by_setitimer},
    {"timer_create", by_timer_create},
    {"timerfd", by_timerfd},
    {"timerfd in epoll", by_timerfd_in_epoll},
    {"sigtimedwait", by_sigtimedwait},
    {"timer_create with SIGEV_THREAD", by_timer_thread},
    {"timer_create with SIGEV_THREAD, periodic", by_periodic_timer_thread},
};

/// Waits in this way, and prints how long the wait took.
void take(const Way& way) {
  const double monotonic = seconds_of(CLOCK_MONOTONIC), real = seconds_of(CLOCK_REALTIME);
  const double of_day = time_of_day(), of_call = seconds_of_system_call();
  const time_t whole = time(nullptr);
  way.wait();
  std::printf("%.*s: %.6f %.6f %.6f %.6f %ld\n", static_cast<int>(way.name.size()), way.name.data(),
              seconds_of(CLOCK_MONOTONIC) - monotonic, seconds_of(CLOCK_REALTIME) - real,
              time_of_day() - of_day, seconds_of_system_call() - of_call,
              static_cast<long>(time(nullptr) - whole));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const auto take_wanted = [&](std::span<const Way> ways) {
    for (const Way& way : ways)
      if (argc == 1 || way.name == argv[1]) take(way);
  };
  take_wanted(kWays);
  take_wanted(other_ways());
}
