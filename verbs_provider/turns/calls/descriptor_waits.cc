// poll, select and epoll_wait: in each turn the thread asks once, without waiting, whether a
// descriptor is ready.
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/system/kernel.h"
#include "verbs_provider/turns/fault_action.h"
#include "verbs_provider/turns/held_files.h"
#include "verbs_provider/turns/times.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

constexpr long kMaskSize = 8;  // of a signal mask in the kernel

shim::Next<int(pollfd*, nfds_t, int)> next_poll("poll");
shim::Next<int(pollfd*, nfds_t, const timespec*, const sigset_t*)> next_ppoll("ppoll");
shim::Next<int(int, fd_set*, fd_set*, fd_set*, timeval*)> next_select("select");
shim::Next<int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)> next_pselect(
    "pselect");
shim::Next<int(int, epoll_event*, int, int)> next_epoll_wait("epoll_wait");
shim::Next<int(int, epoll_event*, int, int, const sigset_t*)> next_epoll_pwait("epoll_pwait");
shim::Next<int(int, epoll_event*, int, const timespec*, const sigset_t*)> next_epoll_pwait2(
    "epoll_pwait2");

/// The position of an attempt within a call that waits.
enum class Which : uint8_t { kFirst, kLater, kLast };

/// Repeats `look`, which returns the kernel's result, until this is not 0 or the time is over.
/// Stores the last result in `result` in the form of libc's call. Returns false if the daemon has
/// ended; the call must then be made again.
template <class Look>
bool wait_for(const Call& call, int64_t deadline, uint64_t place, int* result, Look look) {
  Which which = Which::kFirst;
  long found = 0;
  if (deadline <= now_ns()) {
    found = look(which);
    if (found == 0) found_nothing(call, place);
    if (found > 0) progressed();
  } else {
    const End end = wait(call, deadline, [&] {
      found = look(which);
      which = Which::kLater;
      return found != 0;
    });
    if (end == End::kLeft) return false;
    if (end == End::kInterrupted) found = -EINTR;
    if (end == End::kDeadline) found = look(Which::kLast);
  }
  if (found < 0) errno = static_cast<int>(-found);
  *result = found < 0 ? -1 : static_cast<int>(found);
  return true;
}

/// Returns whether only closed descriptors would end the wait. If a descriptor is closed during
/// poll(2), the call continues to wait, and notices this when another descriptor wakes it or its
/// time is over.
bool has_only_closed(const pollfd* entries, nfds_t count) {
  for (nfds_t i = 0; i < count; ++i)
    if (entries[i].revents != 0 && entries[i].revents != POLLNVAL) return false;
  return true;
}

bool wait_in_poll(pollfd* entries, nfds_t count, int64_t deadline, const sigset_t* mask,
                  int* result) {
  const MaskWithoutFaults used(mask);
  return wait_for(Call::of(SYS_ppoll, entries, count, nullptr), deadline,
                  reinterpret_cast<uint64_t>(entries), result, [&](Which which) -> long {
                    const timespec now{};
                    const long found =
                        kernel(SYS_ppoll, entries, count, &now, used.get(), kMaskSize);
                    if (which == Which::kLater && found > 0 && has_only_closed(entries, count))
                      return 0;
                    return found;
                  });
}

bool wait_in_select(int count, fd_set* reads, fd_set* writes, fd_set* others, int64_t deadline,
                    const sigset_t* mask, int* result) {
  // The kernel writes into the sets, so each attempt starts with copies of the caller's sets.
  const size_t bytes = count > 0 ? (static_cast<size_t>(count) + 63) / 64 * 8 : 0;
  constexpr size_t kMaxBytes = 8192;  // 65,536 descriptors
  fd_set* const sets[3] = {reads, writes, others};
  if (bytes > kMaxBytes) {
    errno = EINVAL;
    *result = -1;
    return true;
  }
  alignas(8) char asked[3][kMaxBytes];
  for (size_t i = 0; i < 3; ++i) {
    if (sets[i] != nullptr) memcpy(asked[i], sets[i], bytes);
  }
  const auto restore = [&] {
    for (size_t i = 0; i < 3; ++i) {
      if (sets[i] != nullptr) memcpy(sets[i], asked[i], bytes);
    }
  };
  const auto has = [](const char* set, int fd) { return (set[fd / 8] & 1 << fd % 8) != 0; };
  // The most descriptors that other threads can close during the call. select(2) continues to wait
  // for a closed descriptor, and reports it as ready when another descriptor wakes the call or its
  // time is over.
  constexpr int kMostClosed = 64;
  struct {
    int fd, sets;
  } closed[kMostClosed];
  int closed_count = 0;
  const auto leave_out_closed = [&] {
    for (int fd = 0; fd < count && closed_count < kMostClosed; ++fd) {
      int of_sets = 0;
      for (int i = 0; i < 3; ++i)
        if (sets[i] != nullptr && has(asked[i], fd)) of_sets |= 1 << i;
      if (of_sets == 0 || kernel(SYS_fcntl, fd, F_GETFD) >= 0) continue;
      closed[closed_count++] = {fd, of_sets};
      for (int i = 0; i < 3; ++i)
        if ((of_sets & 1 << i) != 0) asked[i][fd / 8] &= static_cast<char>(~(1 << fd % 8));
    }
  };
  const auto add_closed = [&] {
    long added = 0;
    for (int i = 0; i < closed_count; ++i) {
      const auto [fd, of_sets] = closed[i];
      for (int set = 0; set < 3; ++set) {
        if ((of_sets & 1 << set) == 0) continue;
        char* const bytes_of_set = reinterpret_cast<char*>(sets[set]);
        bytes_of_set[fd / 8] |= static_cast<char>(1 << fd % 8);
        ++added;
      }
    }
    return added;
  };
  const MaskWithoutFaults used(mask);
  const auto look = [&]() -> long {
    restore();
    const timespec now{};
    struct {
      const sigset_t* mask;
      size_t size;
    } masked{used.get(), kMaskSize};
    const long found = kernel(SYS_pselect6, count, reads, writes, others, &now, &masked);
    if (found < 0) restore();
    return found;
  };
  const uint64_t place = (reads != nullptr    ? reinterpret_cast<uint64_t>(reads)
                          : writes != nullptr ? reinterpret_cast<uint64_t>(writes)
                                              : 0);
  // Between two attempts the sets contain the caller's descriptors, for reports.
  const bool done = wait_for(Call::of(SYS_pselect6, count, reads, writes, others), deadline, place,
                             result, [&](Which which) {
                               long found = look();
                               if (found == -EBADF && which != Which::kFirst) {
                                 leave_out_closed();
                                 found = look();
                               }
                               if (found > 0 || which == Which::kLast) found += add_closed();
                               if (found == 0) restore();
                               return found;
                             });
  if (done && *result == 0) {
    for (size_t i = 0; i < 3; ++i) {
      if (sets[i] != nullptr) memset(sets[i], 0, bytes);
    }
  }
  return done;
}

bool wait_in_epoll(int fd, epoll_event* events, int count, int64_t deadline, const sigset_t* mask,
                   int* result) {
  const MaskWithoutFaults used(mask);
  if (deadline > now_ns()) hold_file(fd);
  const bool done = wait_for(Call::of(SYS_epoll_pwait, fd, events, count, -1), deadline,
                             static_cast<uint64_t>(fd), result, [&](Which) {
                               return kernel(SYS_epoll_pwait, held_file(fd), events, count, 0,
                                             used.get(), kMaskSize);
                             });
  const int error = errno;
  release_file();
  errno = error;
  return done;
}

}  // namespace
}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(int, poll, (pollfd * entries, nfds_t count, int timeout)) {
  int result = 0;
  if (!active() ||
      !wait_in_poll(entries, count, deadline_of_milliseconds(timeout), nullptr, &result))
    return next_poll(entries, count, timeout);
  return result;
}

ROCEMU_REPLACE(int, __poll_chk, (pollfd * entries, nfds_t count, int timeout, size_t room)) {
  if (room / sizeof *entries < count) __builtin_trap();
  return rocemu_shim_poll(entries, count, timeout);
}

ROCEMU_REPLACE(int, ppoll,
               (pollfd * entries, nfds_t count, const timespec* timeout, const sigset_t* mask)) {
  int result = 0;
  if ((timeout != nullptr && !is_valid(*timeout)) || !active() ||
      !wait_in_poll(entries, count, deadline_of(timeout), mask, &result))
    return next_ppoll(entries, count, timeout, mask);
  return result;
}

ROCEMU_REPLACE(int, __ppoll_chk,
               (pollfd * entries, nfds_t count, const timespec* timeout, const sigset_t* mask,
                size_t room)) {
  if (room / sizeof *entries < count) __builtin_trap();
  return rocemu_shim_ppoll(entries, count, timeout, mask);
}

ROCEMU_REPLACE(int, select,
               (int count, fd_set* reads, fd_set* writes, fd_set* others, timeval* timeout)) {
  if (timeout != nullptr && (timeout->tv_sec < 0 || timeout->tv_usec < 0))
    return next_select(count, reads, writes, others, timeout);
  if (!active()) return next_select(count, reads, writes, others, timeout);
  int64_t deadline = rocemu::abi::kNever;
  if (timeout != nullptr) {
    const timespec time{timeout->tv_sec + timeout->tv_usec / 1'000'000,
                        timeout->tv_usec % 1'000'000 * 1000};
    deadline = deadline_of(&time);
  }
  int result = 0;
  if (!wait_in_select(count, reads, writes, others, deadline, nullptr, &result))
    return next_select(count, reads, writes, others, timeout);
  if (timeout != nullptr) {  // select(2): Linux stores the remaining time there
    const int64_t left = deadline > now_ns() ? (deadline - now_ns()) / 1000 : 0;
    *timeout = {left / 1'000'000, left % 1'000'000};
  }
  return result;
}

ROCEMU_REPLACE(int, pselect,
               (int count, fd_set* reads, fd_set* writes, fd_set* others, const timespec* timeout,
                const sigset_t* mask)) {
  int result = 0;
  if ((timeout != nullptr && !is_valid(*timeout)) || !active() ||
      !wait_in_select(count, reads, writes, others, deadline_of(timeout), mask, &result))
    return next_pselect(count, reads, writes, others, timeout, mask);
  return result;
}

ROCEMU_REPLACE(int, epoll_wait, (int fd, epoll_event* events, int count, int timeout)) {
  int result = 0;
  if (!active() ||
      !wait_in_epoll(fd, events, count, deadline_of_milliseconds(timeout), nullptr, &result))
    return next_epoll_wait(fd, events, count, timeout);
  return result;
}

ROCEMU_REPLACE(int, epoll_pwait,
               (int fd, epoll_event* events, int count, int timeout, const sigset_t* mask)) {
  int result = 0;
  if (!active() ||
      !wait_in_epoll(fd, events, count, deadline_of_milliseconds(timeout), mask, &result))
    return next_epoll_pwait(fd, events, count, timeout, mask);
  return result;
}

ROCEMU_REPLACE(int, epoll_pwait2,
               (int fd, epoll_event* events, int count, const timespec* timeout,
                const sigset_t* mask)) {
  int result = 0;
  if ((timeout != nullptr && !is_valid(*timeout)) || !active() ||
      !wait_in_epoll(fd, events, count, deadline_of(timeout), mask, &result))
    return next_epoll_pwait2(fd, events, count, timeout, mask);
  return result;
}
