// Detects calls that wait for the descriptor of one completion channel, and for nothing else: such
// a wait is checked like ibv_get_cq_event(3). A thread that also waits for other descriptors, for a
// time or for signals can be woken by those, so its wait may be correct.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "verbs_provider/sanitizer/event_waits.h"
#include "verbs_provider/sanitizer/library_calls.h"
#include "verbs_provider/sanitizer/program.h"
#include "verbs_provider/system/kernel.h"

namespace rocemu::sanitizer {
namespace {

using provider::Guard;
using turns::kernel;

constexpr int kNone = -1;

/// Returns the descriptor if it is the only one for which poll(2) waits, for reading; else kNone.
/// poll(2) ignores negative descriptors.
int only_descriptor(const pollfd* entries, nfds_t count) {
  int fd = kNone;
  for (nfds_t i = 0; entries != nullptr && i < count; ++i) {
    if (entries[i].fd < 0) continue;
    if (fd != kNone || (entries[i].events & POLLIN) == 0) return kNone;
    fd = entries[i].fd;
  }
  return fd;
}

/// Returns the descriptor if it is the only one for which select(2) waits, for reading; else kNone.
int only_descriptor(int count, const fd_set* reads, const fd_set* writes, const fd_set* others) {
  const auto has = [](const fd_set* set, int fd) { return set != nullptr && FD_ISSET(fd, set); };
  int only = kNone;
  for (int fd = 0; fd < std::min(count, FD_SETSIZE); ++fd) {
    if (has(writes, fd) || has(others, fd)) return kNone;
    if (!has(reads, fd)) continue;
    if (only != kNone) return kNone;
    only = fd;
  }
  return only;
}

/// Returns whether a CQ of the program has a channel. In programs without such a CQ, descriptors
/// are not examined.
bool has_channels() {
  Program* const program = Program::get();
  if (program == nullptr) return false;
  const Guard guard(program->lock);
  bool has = false;
  program->objects().cqs.for_each([&](const Cq& cq) { has |= cq.channel != nullptr; });
  return has;
}

/// Returns the descriptor if it is the only one of an epoll instance, for reading; else kNone.
int only_descriptor_of_epoll(int epoll) {
  if (!has_channels()) return kNone;
  char name[48];
  std::snprintf(name, sizeof name, "/proc/thread-self/fdinfo/%d", epoll);
  const long file = kernel(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC, 0);
  if (file < 0) return kNone;
  char text[1024];
  const long size = kernel(SYS_read, file, text, sizeof text - 1);
  kernel(SYS_close, file);
  if (size <= 0) return kNone;
  text[size] = 0;
  const char* const first = strstr(text, "tfd:");
  if (first == nullptr || strstr(first + 1, "tfd:") != nullptr) return kNone;
  int fd = kNone;
  unsigned events = 0;
  const bool is_read = sscanf(first, "tfd: %d events: %x", &fd, &events) == 2;
  return is_read && (events & EPOLLIN) != 0 ? fd : kNone;
}

/// A wait of the calling thread, if it waits for a channel that has no event.
class DescriptorWait {
 public:
  /// Begins the wait. Does not change errno.
  DescriptorWait(int fd, const char* call) {
    const int error = errno;
    Program* const program = fd == kNone ? nullptr : Program::get();
    if (program != nullptr && begin_descriptor_wait(*program, fd, call)) program_ = program;
    errno = error;
  }
  ~DescriptorWait() {
    if (program_ == nullptr) return;
    const int error = errno;
    end_event_wait(*program_);
    errno = error;
  }
  DescriptorWait(const DescriptorWait&) = delete;
  DescriptorWait& operator=(const DescriptorWait&) = delete;

 private:
  Program* program_ = nullptr;
};

}  // namespace
}  // namespace rocemu::sanitizer

using namespace rocemu::sanitizer;

#define ROCEMU_BEFORE extern "C" __attribute__((visibility("default")))

ROCEMU_BEFORE int poll(pollfd* entries, nfds_t count, int timeout) {
  static auto* const real = behind<int(pollfd*, nfds_t, int)>("poll");
  const DescriptorWait wait(timeout < 0 ? only_descriptor(entries, count) : kNone, "poll");
  return real(entries, count, timeout);
}

/// The variant of poll(2) for arrays whose size the compiler knows.
ROCEMU_BEFORE int __poll_chk(pollfd* entries, nfds_t count, int timeout, size_t size) {
  static auto* const real = behind<int(pollfd*, nfds_t, int, size_t)>("__poll_chk");
  const DescriptorWait wait(timeout < 0 ? only_descriptor(entries, count) : kNone, "poll");
  return real(entries, count, timeout, size);
}

ROCEMU_BEFORE int ppoll(pollfd* entries, nfds_t count, const timespec* timeout,
                        const sigset_t* mask) {
  static auto* const real = behind<int(pollfd*, nfds_t, const timespec*, const sigset_t*)>("ppoll");
  const bool waits = timeout == nullptr && mask == nullptr;
  const DescriptorWait wait(waits ? only_descriptor(entries, count) : kNone, "ppoll");
  return real(entries, count, timeout, mask);
}

ROCEMU_BEFORE int select(int count, fd_set* reads, fd_set* writes, fd_set* others,
                         timeval* timeout) {
  static auto* const real = behind<int(int, fd_set*, fd_set*, fd_set*, timeval*)>("select");
  const DescriptorWait wait(
      timeout == nullptr ? only_descriptor(count, reads, writes, others) : kNone, "select");
  return real(count, reads, writes, others, timeout);
}

ROCEMU_BEFORE int pselect(int count, fd_set* reads, fd_set* writes, fd_set* others,
                          const timespec* timeout, const sigset_t* mask) {
  static auto* const real =
      behind<int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)>("pselect");
  const bool waits = timeout == nullptr && mask == nullptr;
  const DescriptorWait wait(waits ? only_descriptor(count, reads, writes, others) : kNone,
                            "pselect");
  return real(count, reads, writes, others, timeout, mask);
}

ROCEMU_BEFORE int epoll_wait(int epoll, epoll_event* events, int count, int timeout) {
  static auto* const real = behind<int(int, epoll_event*, int, int)>("epoll_wait");
  const DescriptorWait wait(timeout < 0 ? only_descriptor_of_epoll(epoll) : kNone, "epoll_wait");
  return real(epoll, events, count, timeout);
}

ROCEMU_BEFORE int epoll_pwait(int epoll, epoll_event* events, int count, int timeout,
                              const sigset_t* mask) {
  static auto* const real =
      behind<int(int, epoll_event*, int, int, const sigset_t*)>("epoll_pwait");
  const bool waits = timeout < 0 && mask == nullptr;
  const DescriptorWait wait(waits ? only_descriptor_of_epoll(epoll) : kNone, "epoll_pwait");
  return real(epoll, events, count, timeout, mask);
}
