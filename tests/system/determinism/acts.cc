// The acts of random programs, except those that only use queue pairs (party.cc).
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "tests/system/determinism/connection.h"
#include "tests/system/determinism/party.h"
#include "tests/system/determinism/relax.h"

namespace rocemu::determinism {
namespace {

timespec as_timespec(uint32_t us) {
  return {static_cast<time_t>(us / 1'000'000), static_cast<long>(us % 1'000'000) * 1000};
}

timespec from_now(uint32_t us, clockid_t clock) {
  timespec at{};
  clock_gettime(clock, &at);
  at.tv_nsec += static_cast<long>(us) * 1000;
  at.tv_sec += at.tv_nsec / 1'000'000'000;
  at.tv_nsec %= 1'000'000'000;
  return at;
}

int armed_timer(uint32_t us) {
  const int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  const itimerspec time{{0, 0}, as_timespec(us)};
  if (fd < 0 || timerfd_settime(fd, 0, &time, nullptr) != 0) fail("timerfd_settime");
  return fd;
}

/// Returns the indices of the descriptors that can be read. `how` selects one of three system
/// calls.
std::vector<size_t> wait_for_any(const std::vector<int>& descriptors, uint32_t how) {
  std::vector<size_t> ready;
  if (how % 3 == 0) {
    std::vector<pollfd> entries;
    for (const int fd : descriptors) entries.push_back({fd, POLLIN, 0});
    if (poll(entries.data(), entries.size(), -1) < 0) fail("poll");
    for (size_t i = 0; i < entries.size(); ++i)
      if (entries[i].revents != 0) ready.push_back(i);
  } else if (how % 3 == 1) {
    fd_set set;
    FD_ZERO(&set);
    int highest = 0;
    for (const int fd : descriptors) {
      FD_SET(fd, &set);
      highest = fd > highest ? fd : highest;
    }
    if (select(highest + 1, &set, nullptr, nullptr, nullptr) < 0) fail("select");
    for (size_t i = 0; i < descriptors.size(); ++i)
      if (FD_ISSET(descriptors[i], &set)) ready.push_back(i);
  } else {
    const int poller = epoll_create1(EPOLL_CLOEXEC);
    for (size_t i = 0; i < descriptors.size(); ++i) {
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = i;
      if (epoll_ctl(poller, EPOLL_CTL_ADD, descriptors[i], &event) != 0) fail("epoll_ctl");
    }
    std::array<epoll_event, 4> events{};
    const int count = epoll_wait(poller, events.data(), events.size(), -1);
    if (count < 0) fail("epoll_wait");
    for (int i = 0; i < count; ++i) ready.push_back(events[static_cast<size_t>(i)].data.u64);
    close(poller);
  }
  return ready;
}

int signal_of(uint32_t thread) {
  return SIGRTMIN + 1 + static_cast<int>(thread);
}

}  // namespace

// ---- Acts of two threads ----

void Party::pass_byte(const Act& act) {
  const Plumbing& plumbing = world_.plumbing[act.number];
  char byte = 'b';
  if (act.from == number_) return send_all(plumbing.write_end, &byte, 1);
  if (act.variant != 3) wait_for_any({plumbing.read_end}, act.variant);
  receive_all(plumbing.read_end, &byte, 1);
}

void Party::pass_event(const Act& act) {
  const int fd = world_.plumbing[act.number].event_fd;
  uint64_t count = 1;
  if (act.from == number_) return send_all(fd, &count, sizeof count);
  if (act.variant != 3) wait_for_any({fd}, act.variant);
  receive_all(fd, &count, sizeof count);
}

void Party::pass_semaphore(const Act& act) {
  sem_t* semaphore = &world_.memory->acts[act.number].semaphore;
  if (act.from == number_) {
    sem_post(semaphore);
    return;
  }
  if (act.variant % 2 == 0) {
    while (sem_wait(semaphore) != 0 && errno == EINTR) {
    }
    return;
  }
  for (;;) {
    const timespec until = from_now(act.time_us, CLOCK_REALTIME);
    if (sem_timedwait(semaphore, &until) == 0) return;
    note("timeout");
  }
}

void Party::pass_condition(const Act& act) {
  SharedMemory::OfAct& shared = world_.memory->acts[act.number];
  pthread_mutex_lock(&shared.mutex);
  if (act.from == number_) {
    shared.is_set = true;
    act.variant % 2 == 0 ? pthread_cond_signal(&shared.changed)
                         : pthread_cond_broadcast(&shared.changed);
  }
  while (act.to == number_ && !shared.is_set) {
    if (act.variant < 2) {
      pthread_cond_wait(&shared.changed, &shared.mutex);
      note("woken");
      continue;
    }
    const timespec until = from_now(act.time_us, CLOCK_REALTIME);
    const int error = pthread_cond_timedwait(&shared.changed, &shared.mutex, &until);
    note(error == ETIMEDOUT ? "timeout" : "woken");
  }
  pthread_mutex_unlock(&shared.mutex);
}

void Party::pass_flag(const Act& act) {
  std::atomic<uint32_t>& flag = world_.memory->acts[act.number].flag;
  if (act.from == number_) {
    flag = 1;
    return;
  }
  while (flag == 0) {
    if (act.variant == 0) {
      relax();
    } else {
      sched_yield();
    }
  }
}

/// Sends a signal from one thread to another. All threads block the signal, and the other thread
/// waits for it.
void Party::pass_signal(const Act& act) {
  const int number = signal_of(act.to);
  if (act.from == number_) {
    const pid_t pid = world_.memory->pids[act.to];
    const pid_t tid = world_.memory->tids[act.to];
    const long done =
        act.variant % 2 == 0 ? kill(pid, number) : syscall(SYS_tgkill, pid, tid, number);
    if (done != 0) fail("kill");
    return;
  }
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  int came = 0;
  if (act.variant < 2) {
    if (sigwait(&set, &came) != 0) fail("sigwait");
    return;
  }
  const timespec time = as_timespec(act.time_us);
  while (sigtimedwait(&set, nullptr, &time) < 0) note("timeout");
}

void Party::serve_connection(const Act& act) {
  CmChannel channel;
  const Listener listener(channel);
  const uint16_t port = listener.port();
  send_all(world_.plumbing[act.number].write_end, &port, sizeof port);
  Connection connection(channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST));
  accept(connection);
  channel.expect(RDMA_CM_EVENT_ESTABLISHED);
  connection.receive();
  connection.send();
  channel.expect(RDMA_CM_EVENT_DISCONNECTED);
  note("QP " + std::to_string(connection.id()->qp->qp_num));
}

void Party::make_connection(const Act& act) {
  uint16_t port = 0;
  receive_all(world_.plumbing[act.number].read_end, &port, sizeof port);
  CmChannel channel;
  Connection connection(resolve(channel, port));
  establish(channel, connection);
  connection.send();
  connection.receive();
  if (rdma_disconnect(connection.id()) != 0) fail("rdma_disconnect");
  channel.expect(RDMA_CM_EVENT_DISCONNECTED);
  note("QP " + std::to_string(connection.id()->qp->qp_num));
}

/// Waits for messages of the first thread, a byte from the third, and a timer, in the order in
/// which they arrive.
void Party::gather(const Act& act) {
  const Plumbing& plumbing = world_.plumbing[act.number];
  char byte = 'g';
  if (act.third == number_) send_all(plumbing.write_end, &byte, 1);
  End* end = act.from == number_ || act.to == number_ ? &end_of(act.from, act.to) : nullptr;
  if (act.from == number_) {
    send(act);
    wait_for_completions([&] { return end->sent >= end->to_send; }, act.wait_of_from);
  }
  if (act.to != number_) return;
  end->to_receive += act.count;
  const int timer = armed_timer(act.time_us);
  std::vector<int> waits{channel_->fd, plumbing.read_end, timer};
  std::vector<char> names{'c', 'p', 't'};
  arm();
  drain();
  bool has_byte = false, has_time = false;
  while (end->received < end->to_receive || !has_byte || !has_time) {
    const std::vector<int> before = waits;
    for (const size_t i : wait_for_any(before, act.variant)) {
      const int fd = before[i];
      if (fd == channel_->fd) {
        take_event();
        arm();
        drain();
      } else if (fd == timer) {
        uint64_t expired = 0;
        receive_all(timer, &expired, sizeof expired);
        has_time = true;
        note("timer");
        std::erase(waits, timer);
      } else {
        receive_all(fd, &byte, 1);
        has_byte = true;
        note("byte");
        std::erase(waits, fd);
      }
    }
  }
  close(timer);
}

// ---- Acts of one thread ----

void Party::lock(const Act& act) {
  const std::lock_guard guard(process_.mutex);
  note("lock " + std::to_string(++process_.times_locked));
  if (act.variant == 0) return;
  if (act.variant == 1) return sleep(act);
  if (act.variant == 2) return poll_in_vain(act);
  sched_yield();
}

void Party::sleep(const Act& act) {
  const timespec time = as_timespec(act.time_us);
  switch (act.count) {
    case 1:
      nanosleep(&time, nullptr);
      return;
    case 2:
      usleep(act.time_us);
      return;
    case 3: {
      const timespec until = from_now(act.time_us, CLOCK_MONOTONIC);
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
      return;
    }
    default:
      ppoll(nullptr, 0, &time, nullptr);
  }
}

void Party::wait_for_timer(const Act& act) {
  const int timer = armed_timer(act.time_us);
  if (act.variant != 3) wait_for_any({timer}, act.variant);
  uint64_t expired = 0;
  receive_all(timer, &expired, sizeof expired);
  note(std::to_string(expired));
  close(timer);
}

void Party::make_objects(const Act& act) {
  for (uint32_t i = 0; i < act.count; ++i) {
    const Side side(*device_);
    note("QP " + std::to_string(side.qp()->qp_num));
  }
}

void Party::read_clock(const Act& act) {
  timespec now{};
  timeval of_day{};
  switch (act.variant) {
    case 0:
      clock_gettime(CLOCK_MONOTONIC, &now);
      break;
    case 1:
      clock_gettime(CLOCK_REALTIME, &now);
      break;
    case 2:
      gettimeofday(&of_day, nullptr);
      now = {of_day.tv_sec, of_day.tv_usec * 1000};
      break;
    default:
      now.tv_sec = time(nullptr);
  }
  note(std::to_string(now.tv_sec) + " s " + std::to_string(now.tv_nsec) + " ns");
}

void Party::read_random(const Act& act) {
  uint32_t value = 0;
  if (act.variant % 2 == 0) {
    if (getrandom(&value, sizeof value, 0) != sizeof value) fail("getrandom");
  } else {
    const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    receive_all(fd, &value, sizeof value);
    close(fd);
  }
  note(std::to_string(value));
}

void Party::fork_child(const Act& act) {
  const std::string line = "child of thread " + std::to_string(number_) + "\n";
  const timespec time = as_timespec(act.time_us);
  const pid_t pid = fork();
  if (pid < 0) fail("fork");
  if (pid == 0) {  // the parent has several threads, so the child may only make system calls
    if (act.variant == 1 && write(STDOUT_FILENO, line.data(), line.size()) < 0) _exit(1);
    if (act.variant == 2) execl("/bin/true", "true", nullptr);
    if (act.variant == 3) nanosleep(&time, nullptr);
    _exit(static_cast<int>(act.count));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  note("status " + std::to_string(WEXITSTATUS(status)));
}

}  // namespace rocemu::determinism
