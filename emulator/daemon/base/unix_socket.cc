#include "emulator/daemon/base/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "emulator/daemon/base/start_error.h"

namespace rocemu::daemon {
namespace {

constexpr size_t kMaxFds = 8;  // the largest request or reply has 3

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), kMaxSocketPath));
  return address;
}

}  // namespace

UniqueFd listen_at(const std::string& path, int type) {
  if (path.size() > kMaxSocketPath) {
    throw StartError("the path of a socket would be too long (" + std::to_string(path.size()) +
                     " bytes, at most " + std::to_string(kMaxSocketPath) + "): " + path);
  }
  UniqueFd listener(socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener) fail_start("cannot create a socket", errno);
  const sockaddr_un address = address_of(path);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener.get(), SOMAXCONN) != 0) {
    fail_start("cannot listen at " + path, errno);
  }
  return listener;
}

std::optional<PeerCredentials> peer_credentials(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  return PeerCredentials{credentials.pid, credentials.uid};
}

std::optional<FileId> file_id(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

bool is_client_of_same_listener(int fd, int accepted) {
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET) {
    return false;
  }
  sockaddr_un theirs{};
  sockaddr_un ours{};
  socklen_t their_size = sizeof theirs;
  socklen_t our_size = sizeof ours;
  return getpeername(fd, reinterpret_cast<sockaddr*>(&theirs), &their_size) == 0 &&
         getsockname(accepted, reinterpret_cast<sockaddr*>(&ours), &our_size) == 0 &&
         ours.sun_family == AF_UNIX && their_size == our_size &&
         std::memcmp(&theirs, &ours, our_size) == 0;
}

bool is_served(const std::string& path) {
  if (path.size() > kMaxSocketPath) return false;
  UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!probe) return false;
  const sockaddr_un address = address_of(path);
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return true;
  }
  return errno == EAGAIN;  // its queue of connections is full: it is busy, but alive
}

Message receive_message(int socket, std::span<std::byte> buffer) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))];
  iovec data{buffer.data(), buffer.size()};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t size;
  do {
    size = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size < 0) {
    const bool nothing = errno == EAGAIN || errno == EWOULDBLOCK;
    return {nothing ? Message::Status::kNothing : Message::Status::kClosed, 0, {}};
  }

  Message message{Message::Status::kOk, static_cast<size_t>(size), {}};
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      message.fds.emplace_back(fd);
    }
  }
  const bool cut = (header.msg_flags & MSG_CTRUNC) != 0;
  if ((header.msg_flags & MSG_TRUNC) != 0 || (cut && message.fds.size() >= kMaxFds)) {
    message.status = Message::Status::kTruncated;
  } else if (size == 0) {
    message.status = Message::Status::kClosed;
  }
  message.fds_lost = cut;
  return message;
}

SendStatus send_message(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
  iovec data{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    if (fds.size() > kMaxFds) return SendStatus::kFailed;
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
  }
  ssize_t size;
  do {
    size = sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (size < 0 && errno == EINTR);
  if (size >= 0) return SendStatus::kOk;
  return errno == EAGAIN || errno == EWOULDBLOCK ? SendStatus::kFull : SendStatus::kFailed;
}

}  // namespace rocemu::daemon
