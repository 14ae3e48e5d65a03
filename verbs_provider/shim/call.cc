#include "verbs_provider/shim/call.h"

#include <atomic>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_provider/hooks/note_call.h"
#include "verbs_provider/hooks/provider_calls.h"
#include "verbs_provider/shim/connection_lock.h"
#include "verbs_provider/shim/messages.h"
#include "verbs_provider/system/raw.h"

namespace rocemu::shim {
namespace {

struct ReceivedFds {
  int fds[kMaxFds];
  int count = 0;

  void close_from(int first) {
    for (int i = first; i < count; ++i) raw_syscall(SYS_close, fds[i]);
    if (count > first) count = first;
  }
};

int send_request(int fd, const abi::Request& request, const int* fds, int count) {
  iovec part{const_cast<abi::Request*>(&request), sizeof(request)};
  ControlBuffer control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (count > 0) control.attach(&message, fds, count);
  const long sent =
      complete(fd, POLLOUT, [&] { return raw_syscall(SYS_sendmsg, fd, &message, MSG_NOSIGNAL); });
  if (sent == -EBADF || sent == -ENOMEM || sent == -ENOBUFS) return static_cast<int>(-sent);
  return sent == static_cast<long>(sizeof(request)) ? 0 : EIO;
}

int receive_reply(int fd, abi::Reply* reply, ReceivedFds* received) {
  iovec part{reply, sizeof(*reply)};
  ControlBuffer control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  const long size = complete(
      fd, POLLIN, [&] { return raw_syscall(SYS_recvmsg, fd, &message, MSG_CMSG_CLOEXEC); });
  if (size < 0) return EIO;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t bytes = header->cmsg_len - CMSG_LEN(0);
    memcpy(received->fds, CMSG_DATA(header), bytes);
    received->count = static_cast<int>(bytes / sizeof(int));
  }
  if (size != static_cast<long>(sizeof(*reply)) || (message.msg_flags & MSG_TRUNC) != 0) return EIO;
  if ((message.msg_flags & MSG_CTRUNC) != 0) return EMFILE;
  return 0;
}

}  // namespace
}  // namespace rocemu::shim

using namespace rocemu;
using namespace rocemu::shim;

extern "C" __attribute__((visibility("default"))) int rocemu_call(int fd,
                                                                  const abi::Request* request,
                                                                  abi::Reply* reply,
                                                                  const int* send_fds, int n_send,
                                                                  int* recv_fds, int n_recv) {
  static std::atomic<uint32_t> next_sequence{1};
  if (fd < 0) return EBADF;
  if (n_send < 0 || n_send > kMaxFds || n_recv < 0 || n_recv > kMaxFds) return EINVAL;
  for (int i = 0; i < n_recv; ++i) recv_fds[i] = -1;

  abi::Request numbered = *request;
  numbered.magic = abi::kMagic;
  numbered.version = abi::kVersion;
  // A child continues its parent's numbering; the process number distinguishes their requests.
  numbered.sequence =
      next_sequence.fetch_add(1, std::memory_order_relaxed) ^ static_cast<uint32_t>(getpid()) << 16;

  note_call(request->op);
  const ConnectionLock lock(fd);
  if (const int error = send_request(fd, numbered, send_fds, n_send); error != 0) return error;
  ReceivedFds received;
  int error;
  const turns::WaitForReply waits;
  for (;;) {
    error = receive_reply(fd, reply, &received);
    // The reply may be for another request: that of a thread or forked child that was killed while
    // it waited.
    if (error != 0 || reply->sequence == numbered.sequence) break;
    received.close_from(0);
  }
  if (error == 0 && (reply->magic != abi::kMagic || reply->op != request->op)) error = EIO;
  if (error == 0) error = reply->error;
  received.close_from(error == 0 ? n_recv : 0);
  for (int i = 0; i < received.count; ++i) recv_fds[i] = received.fds[i];
  return error;
}
