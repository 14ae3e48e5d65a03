// Replaces reads and writes of descriptors that can block: pipes, sockets, terminals. The thread
// waits in turns, and makes the call itself when the call will not block.
#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/system/kernel.h"
#include "verbs_provider/system/signal_restart.h"
#include "verbs_provider/turns/held_files.h"
#include "verbs_provider/turns/random_files.h"
#include "verbs_provider/turns/times.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

/// Returns the deadline from SO_RCVTIMEO or SO_SNDTIMEO of socket(7).
int64_t socket_deadline(int fd, int option) {
  timeval timeout{};
  socklen_t size = sizeof timeout;
  if (kernel(SYS_getsockopt, fd, SOL_SOCKET, option, &timeout, &size) != 0) return abi::kNever;
  if (timeout.tv_sec == 0 && timeout.tv_usec == 0) return abi::kNever;
  return deadline_after(timeout.tv_sec * kBillion + timeout.tv_usec * 1000);
}

bool is_nonblocking(int fd) {
  const long flags = kernel(SYS_fcntl, fd, F_GETFL);
  return flags < 0 || (flags & O_NONBLOCK) != 0;
}

bool is_ready(int fd, short events) {
  pollfd entry{fd, events, 0};
  const timespec now{};
  return kernel(SYS_ppoll, &entry, 1L, &now, nullptr, 0L) != 0;
}

/// Waits in turns until system call `number` would not block, and then makes the call by `make`.
template <class Make>
auto when_ready(long number, int fd, short events, int flags, Make make) -> decltype(make(fd)) {
  if (!active()) return make(fd);
  const Call call = Call::of(number, fd);
  if ((flags & MSG_DONTWAIT) != 0 || is_nonblocking(fd)) {
    const auto result = make(fd);
    if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      found_nothing(call, static_cast<uint64_t>(fd));
    } else {
      progressed();
    }
    return result;
  }
  const bool is_output = events == POLLOUT;
  int64_t deadline = 0;
  bool holds = false;
  while (!is_ready(held_file(fd), events)) {
    if (!holds) {
      deadline = socket_deadline(fd, is_output ? SO_SNDTIMEO : SO_RCVTIMEO);
      hold_file(fd);
      holds = true;
    }
    const End end = wait(
        call, deadline, [&] { return is_ready(held_file(fd), events); },
        is_output ? uint32_t{abi::ThreadSlot::kWaitsForRoom} : 0);
    if (end == End::kReady || end == End::kLeft) break;
    if (end == End::kInterrupted && deadline == abi::kNever && shim::restarts_after_signals())
      continue;
    release_file();
    errno = end == End::kInterrupted ? EINTR : EAGAIN;
    return -1;
  }
  progressed();
  if (!holds) return make(fd);
  const auto result = make(held_file(fd));
  const int error = errno;
  release_file();
  errno = error;
  return result;
}

shim::Next<ssize_t(int, void*, size_t)> next_read("read");
shim::Next<ssize_t(int, const iovec*, int)> next_readv("readv");
shim::Next<ssize_t(int, void*, size_t, int)> next_recv("recv");
shim::Next<ssize_t(int, void*, size_t, int, sockaddr*, socklen_t*)> next_recvfrom("recvfrom");
shim::Next<ssize_t(int, msghdr*, int)> next_recvmsg("recvmsg");
shim::Next<int(int, sockaddr*, socklen_t*)> next_accept("accept");
shim::Next<int(int, sockaddr*, socklen_t*, int)> next_accept4("accept4");
shim::Next<ssize_t(int, const void*, size_t)> next_write("write");
shim::Next<ssize_t(int, const iovec*, int)> next_writev("writev");
shim::Next<ssize_t(int, const void*, size_t, int)> next_send("send");
shim::Next<ssize_t(int, const void*, size_t, int, const sockaddr*, socklen_t)> next_sendto(
    "sendto");
shim::Next<ssize_t(int, const msghdr*, int)> next_sendmsg("sendmsg");
shim::Next<int(int, int)> next_flock("flock");

}  // namespace
}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(ssize_t, read, (int fd, void* data, size_t size)) {
  if (is_random_file(fd) && fill_randomly(data, size)) return static_cast<ssize_t>(size);
  return when_ready(SYS_read, fd, POLLIN, 0, [&](int on) { return next_read(on, data, size); });
}
ROCEMU_REPLACE(ssize_t, __read_chk, (int fd, void* data, size_t size, size_t room)) {
  if (size > room) __builtin_trap();
  return rocemu_shim_read(fd, data, size);
}
ROCEMU_REPLACE(ssize_t, readv, (int fd, const iovec* parts, int count)) {
  return when_ready(SYS_readv, fd, POLLIN, 0, [&](int on) { return next_readv(on, parts, count); });
}
ROCEMU_REPLACE(ssize_t, recv, (int fd, void* data, size_t size, int flags)) {
  return when_ready(SYS_recvfrom, fd, POLLIN, flags,
                    [&](int on) { return next_recv(on, data, size, flags); });
}
ROCEMU_REPLACE(ssize_t, __recv_chk, (int fd, void* data, size_t size, size_t room, int flags)) {
  if (size > room) __builtin_trap();
  return rocemu_shim_recv(fd, data, size, flags);
}
ROCEMU_REPLACE(ssize_t, recvfrom,
               (int fd, void* data, size_t size, int flags, sockaddr* address, socklen_t* length)) {
  return when_ready(SYS_recvfrom, fd, POLLIN, flags,
                    [&](int on) { return next_recvfrom(on, data, size, flags, address, length); });
}
ROCEMU_REPLACE(ssize_t, __recvfrom_chk,
               (int fd, void* data, size_t size, size_t room, int flags, sockaddr* address,
                socklen_t* length)) {
  if (size > room) __builtin_trap();
  return rocemu_shim_recvfrom(fd, data, size, flags, address, length);
}
ROCEMU_REPLACE(ssize_t, recvmsg, (int fd, msghdr* message, int flags)) {
  return when_ready(SYS_recvmsg, fd, POLLIN, flags,
                    [&](int on) { return next_recvmsg(on, message, flags); });
}
ROCEMU_REPLACE(int, accept, (int fd, sockaddr* address, socklen_t* length)) {
  return when_ready(SYS_accept, fd, POLLIN, 0,
                    [&](int on) { return next_accept(on, address, length); });
}
ROCEMU_REPLACE(int, accept4, (int fd, sockaddr* address, socklen_t* length, int flags)) {
  return when_ready(SYS_accept4, fd, POLLIN, 0,
                    [&](int on) { return next_accept4(on, address, length, flags); });
}
ROCEMU_REPLACE(ssize_t, write, (int fd, const void* data, size_t size)) {
  return when_ready(SYS_write, fd, POLLOUT, 0, [&](int on) { return next_write(on, data, size); });
}
ROCEMU_REPLACE(ssize_t, writev, (int fd, const iovec* parts, int count)) {
  return when_ready(SYS_writev, fd, POLLOUT, 0,
                    [&](int on) { return next_writev(on, parts, count); });
}
ROCEMU_REPLACE(ssize_t, send, (int fd, const void* data, size_t size, int flags)) {
  return when_ready(SYS_sendto, fd, POLLOUT, flags,
                    [&](int on) { return next_send(on, data, size, flags); });
}
ROCEMU_REPLACE(ssize_t, sendto,
               (int fd, const void* data, size_t size, int flags, const sockaddr* address,
                socklen_t length)) {
  return when_ready(SYS_sendto, fd, POLLOUT, flags,
                    [&](int on) { return next_sendto(on, data, size, flags, address, length); });
}
ROCEMU_REPLACE(ssize_t, sendmsg, (int fd, const msghdr* message, int flags)) {
  return when_ready(SYS_sendmsg, fd, POLLOUT, flags,
                    [&](int on) { return next_sendmsg(on, message, flags); });
}

ROCEMU_REPLACE(int, flock, (int fd, int operation)) {
  if ((operation & LOCK_NB) != 0 || !active()) return next_flock(fd, operation);
  int result = -1;
  hold_file(fd);
  const End end = wait(Call::of(SYS_flock, fd, operation), rocemu::abi::kNever, [&] {
    result = next_flock(held_file(fd), operation | LOCK_NB);
    return result == 0 || errno != EWOULDBLOCK;
  });
  const int error = errno;
  release_file();
  errno = error;
  if (end == End::kLeft) return next_flock(fd, operation);
  if (end == End::kInterrupted) errno = EINTR;
  return end == End::kInterrupted ? -1 : result;
}
