// Functions with which messages are sent and received over the daemon's sockets
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "verbs_provider/system/raw.h"

namespace rocemu::shim {

inline constexpr int kMaxFds = 8;

/// The descriptors of one message
struct ControlBuffer {
  alignas(cmsghdr) char bytes[CMSG_SPACE(kMaxFds * sizeof(int))];

  /// Attaches the descriptors to an outgoing message; `count` is at most kMaxFds.
  void attach(msghdr* message, const int* fds, int count) {
    const size_t size = static_cast<size_t>(count) * sizeof(int);
    memset(bytes, 0, sizeof(bytes));
    message->msg_control = bytes;
    message->msg_controllen = CMSG_SPACE(size);
    cmsghdr* header = CMSG_FIRSTHDR(message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(header), fds, size);
  }
};

inline void wait_until_ready(int fd, short events) {
  pollfd entry{fd, events, 0};
  raw_syscall(SYS_ppoll, &entry, 1, nullptr, nullptr, 0);  // not poll, which arm64 lacks
}

/// Repeats a call that a signal interrupted, and waits if the application made our socket
/// non-blocking.
template <class Call>
long complete(int fd, short events, Call call) {
  for (;;) {
    const long result = call();
    if (result == -EAGAIN) {
      wait_until_ready(fd, events);
    } else if (result != -EINTR) {
      return result;
    }
  }
}

}  // namespace rocemu::shim
