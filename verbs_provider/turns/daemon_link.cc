#include "verbs_provider/turns/daemon_link.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "emulator/abi/runtime_dir.h"
#include "emulator/abi/turn_handshake.h"
#include "verbs_provider/shim/daemon_socket.h"
#include "verbs_provider/shim/find_runtime_dir.h"
#include "verbs_provider/shim/served_paths.h"
#include "verbs_provider/shim/text.h"
#include "verbs_provider/system/kernel.h"

namespace rocemu::turns {
namespace {

/// The lowest number for our descriptors, if the limit is that high: programs count from 0, and
/// some expect the lowest free number.
constexpr int kOurDescriptors = 960;

std::atomic<abi::TurnTable*> the_table{nullptr};
int handback_fd = -1;
/// The identity of the eventfd's file: a program that closes descriptors it does not know may open
/// another file with the same number.
struct stat handback_file {};
int socket_fd = -1;

/// Moves a descriptor to the highest free number below the limit, with close-on-exec set.
int move_up(int fd) {
  for (int from = kOurDescriptors; from > 2; from /= 2) {
    const long moved = kernel(SYS_fcntl, fd, F_DUPFD_CLOEXEC, from);
    if (moved < 0) continue;
    kernel(SYS_close, fd);
    return static_cast<int>(moved);
  }
  return fd;
}

bool receive_reply(int fd, abi::TurnsReply* reply, int* fds) {
  iovec part{reply, sizeof *reply};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  long size;
  do {
    size = kernel(SYS_recvmsg, fd, &message, MSG_CMSG_CLOEXEC);
  } while (size == -EINTR);
  if (size != sizeof *reply || reply->magic != abi::kTurnsMagic) return false;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (fds == nullptr) return true;
  if (header == nullptr || header->cmsg_len != CMSG_LEN(2 * sizeof(int))) return false;
  memcpy(fds, CMSG_DATA(header), 2 * sizeof(int));
  return true;
}

bool send_all(int fd, const void* data, size_t size, int passed) {
  iovec part{const_cast<void*>(data), size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (passed >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &passed, sizeof(int));
  }
  long sent;
  do {
    sent = kernel(SYS_sendmsg, fd, &message, MSG_NOSIGNAL);
  } while (sent == -EINTR);
  return sent == static_cast<long>(size);
}

}  // namespace

abi::TurnTable* table() {
  return the_table.load(std::memory_order_relaxed);
}

bool connect_to_daemon(OwnSlot own, uint32_t* given) {
  char path[shim::kMaxPath];
  if (!shim::find_runtime_dir(path, sizeof path)) return false;
  const size_t length = strlen(path);
  shim::Text end(path + length, sizeof path - length);
  end.add("/");
  end.add(abi::kTurnsSocket);
  if (!end.fits()) return false;
  const long fd = shim::connect_to_daemon(path, SOCK_CLOEXEC);
  if (fd < 0) return false;
  const int socket = move_up(static_cast<int>(fd));
  const abi::TurnsHello hello{abi::kTurnsMagic, abi::kTurnsVersion, own.number,
                              static_cast<int32_t>(kernel(SYS_gettid)), own.serial};
  abi::TurnsReply reply{};
  int fds[2] = {-1, -1};
  if (!send_all(socket, &hello, sizeof hello, -1) || !receive_reply(socket, &reply, fds) ||
      reply.slot >= abi::TurnTable::kSlots) {
    kernel(SYS_close, socket);
    return false;
  }
  if (the_table.load() == nullptr) {
    const long memory = kernel(SYS_mmap, nullptr, sizeof(abi::TurnTable), PROT_READ | PROT_WRITE,
                               MAP_SHARED, fds[0], 0L);
    if (memory > 0) the_table.store(reinterpret_cast<abi::TurnTable*>(memory));
  }
  kernel(SYS_close, fds[0]);
  handback_fd = move_up(fds[1]);
  kernel(SYS_fstat, handback_fd, &handback_file);
  socket_fd = socket;
  *given = reply.slot;
  return the_table.load() != nullptr;
}

void disconnect() {
  if (socket_fd >= 0) kernel(SYS_close, socket_fd);
  if (handback_fd >= 0) kernel(SYS_close, handback_fd);
  socket_fd = handback_fd = -1;
}

bool is_daemon_gone() {
  pollfd entry{socket_fd, 0, 0};
  const timespec now{};
  return kernel(SYS_ppoll, &entry, 1L, &now, nullptr, 0L) > 0 &&
         (entry.revents & (POLLHUP | POLLERR)) != 0;
}

bool write_handback() {
  struct stat now {};
  if (kernel(SYS_fstat, handback_fd, &now) != 0 || now.st_dev != handback_file.st_dev ||
      now.st_ino != handback_file.st_ino)
    return false;
  if (!abi::must_notify(*table())) return true;
  const uint64_t one = 1;
  return kernel(SYS_write, handback_fd, &one, sizeof one) == sizeof one;
}

int64_t ask(const abi::TurnsRequest& request, int fd) {
  abi::TurnsReply reply{};
  if (!send_all(socket_fd, &request, sizeof request, fd) ||
      !receive_reply(socket_fd, &reply, nullptr))
    return -1;
  return reply.slot;
}

}  // namespace rocemu::turns
