// read(2) of a completion channel or of an async event file, from which libibverbs reads events.
// The descriptor is a socket; this function returns the errors that a real device's descriptor has
// when the device is removed, and when the buffer is too small for the event.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "emulator/abi/control.h"
#include "emulator/abi/runtime_dir.h"
#include "verbs_provider/shim/device_socket.h"
#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/system/raw.h"
#include "verbs_provider/system/signal_restart.h"

namespace rocemu::shim {
namespace {

Next<ssize_t(int, void*, size_t)> next_read("read");

bool is_event_socket(int fd) {
  sockaddr_un address;
  memset(&address, 0, sizeof(address));
  socklen_t length = sizeof(address);
  constexpr size_t kPrefix = sizeof(abi::kEventSocketPrefix) - 1;
  return raw_syscall(SYS_getpeername, fd, &address, &length) == 0 &&
         address.sun_family == AF_UNIX && address.sun_path[0] == '\0' &&
         memcmp(address.sun_path + 1, abi::kEventSocketPrefix, kPrefix) == 0;
}

bool is_nonblocking(int fd) {
  return (raw_syscall(SYS_fcntl, fd, F_GETFL) & O_NONBLOCK) != 0;
}

/// Returns whether the next event is larger than the program's buffer, and stays.
/// ibv_get_cq_event() reads 8 bytes. This size is not checked, since another system call would slow
/// down the function.
bool is_next_too_large(int fd, size_t size) {
  constexpr size_t kLargest = sizeof(abi::AsyncEventRecord);
  if (size >= kLargest || size == sizeof(abi::CompletionEventRecord)) return false;
  char event[kLargest];
  const ssize_t whole = recv(fd, event, sizeof event, MSG_DONTWAIT | MSG_PEEK);
  return whole > 0 && static_cast<size_t>(whole) > size;
}

/// Receives an event. Returns 0, or the errno value with which the read fails. This is a
/// cancellation point, so it must not have state of ours that would have to be undone.
int receive_event(int fd, void* event, size_t size, ssize_t* received) {
  for (;;) {
    // The socket is polled first and no thread waits in recv(2), because recv(2) clears the error,
    // which all waiting threads must get, now and later.
    pollfd entry{fd, POLLIN, 0};
    int ready = poll(&entry, 1, 0);
    if (ready == 0) {
      if (is_nonblocking(fd)) return EAGAIN;
      ready = poll(&entry, 1, -1);
    }
    if (ready < 0) {
      if (errno == EINTR && restarts_after_signals()) continue;
      return errno;
    }
    // The other end is closed. There are no more events, as on Linux, which frees the events of a
    // removed device.
    if ((entry.revents & (POLLERR | POLLHUP)) != 0) return EIO;
    // As Linux's ib_uverbs_event_read()
    if (is_next_too_large(fd, size)) return EINVAL;
    *received = recv(fd, event, size, MSG_DONTWAIT);
    if (*received > 0) return 0;
    // Another thread took the event, or the device was removed just now.
    if (*received == 0 || (errno != EAGAIN && errno != EINTR && errno != ECONNRESET)) return EIO;
  }
}

__attribute__((noinline)) ssize_t read_event(int fd, void* event, size_t size) {
  const int saved = errno;
  ssize_t received = -1;
  const int error = receive_event(fd, event, size, &received);
  errno = error != 0 ? error : saved;
  return error != 0 ? -1 : received;
}

}  // namespace
}  // namespace rocemu::shim

using namespace rocemu::shim;

ROCEMU_REPLACE(ssize_t, read, (int fd, void* data, size_t size)) {
  const bool is_small = size <= sizeof(rocemu::abi::AsyncEventRecord);
  if (__builtin_expect(is_small, 0) && has_seen_device() && is_event_socket(fd)) {
    return read_event(fd, data, size);
  }
  return next_read(fd, data, size);
}
