#include "emulator/daemon/client/event_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "emulator/abi/runtime_dir.h"
#include "emulator/daemon/base/descriptors.h"

namespace rocemu::daemon {
namespace {

/// Binds the daemon's end to a name by which programs recognize the client's end.
bool give_name(int daemon_end) {
  struct stat status {};
  if (fstat(daemon_end, &status) != 0) return false;
  const std::string name = fmt::format("{}{}", abi::kEventSocketPrefix, status.st_ino);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // after the 0: an abstract name
  const size_t size = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  return bind(daemon_end, reinterpret_cast<const sockaddr*>(&address),
              static_cast<socklen_t>(size)) == 0;
}

/// Fills the send buffer of the client's end with data that is never read. poll(2) therefore never
/// reports space for writing, like for the kernel's event files, which cannot be written. In
/// addition, when our end is closed, the client gets an error instead of an end of file.
bool make_unwritable(int client_end) {
  constexpr int kSmallest = 1;  // the system raises it to its minimum
  if (setsockopt(client_end, SOL_SOCKET, SO_SNDBUF, &kSmallest, sizeof kSmallest) != 0) {
    return false;
  }
  constexpr std::array<std::byte, 2048> kFilling{};
  ssize_t sent = 0;
  while (sent >= 0) {
    sent = send(client_end, kFilling.data(), kFilling.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  return errno == EAGAIN;
}

}  // namespace

EventSocket::Created EventSocket::create(EventLoop& loop, size_t record_size,
                                         std::function<void()> on_hangup) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return {};
  UniqueFd client_end(ends[1]);
  std::unique_ptr<EventSocket> socket(new EventSocket(UniqueFd(ends[0]), record_size));
  if (is_reserved(ends[0])) {
    tell_of_shortage();
    return {};
  }
  struct stat status {};
  if (fstat(client_end.get(), &status) != 0) return {};
  if (!give_name(ends[0]) || !make_unwritable(client_end.get())) return {};
  socket->device_ = status.st_dev;
  socket->inode_ = status.st_ino;
  socket->watch_ =
      loop.watch(socket->daemon_end_.get(), 0,
                 [self = socket.get(), hangup = std::move(on_hangup)](uint32_t events) {
                   if ((events & (EPOLLHUP | EPOLLERR)) == 0) {
                     self->flush();
                     return;
                   }
                   self->hung_up_ = true;
                   self->waiting_.clear();
                   self->watch_.reset();
                   hangup();
                 });
  if (!socket->watch_) return {};
  return {std::move(socket), std::move(client_end)};
}

bool EventSocket::deliver(const abi::CompletionEventRecord& record) {
  return deliver_record({record.cq_user_handle, 0});
}

bool EventSocket::deliver(const abi::AsyncEventRecord& record) {
  Record copy;
  static_assert(sizeof copy == sizeof record);
  std::memcpy(copy.data(), &record, sizeof copy);
  return deliver_record(copy);
}

bool EventSocket::deliver_record(const Record& record) {
  if (hung_up_) return true;
  if (waiting_.size() >= kMaxWaiting) return false;
  ++delivered_[record[0]];
  waiting_.push_back(record);
  if (!watching_write_) flush();  // otherwise the socket is full, and epoll reports when it is not
  return true;
}

void EventSocket::flush() {
  while (!waiting_.empty()) {
    if (send(daemon_end_.get(), waiting_.front().data(), record_size_,
             MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      break;  // full: EPOLLOUT follows; or hung up: EPOLLHUP follows
    }
    waiting_.pop_front();
  }
  if (watch_ && watching_write_ == waiting_.empty()) {
    watching_write_ = !waiting_.empty();
    watch_.set_events(watching_write_ ? uint32_t{EPOLLOUT} : 0);
  }
}

uint32_t EventSocket::forget(uint64_t user_handle, int client_end) {
  const auto found = delivered_.find(user_handle);
  if (found == delivered_.end()) return 0;
  uint32_t taken_back = 0;
  std::deque<Record> kept;
  if (client_end >= 0) {
    Record record{};
    // MSG_DONTWAIT is needed because the client controls the descriptor's flags. The loop ends,
    // since only this process can write into the socket. A thread of the client that reads at the
    // same time gets one of the events that are being removed, or waits until the other events have
    // been written back.
    while (recv(client_end, record.data(), record_size_, MSG_DONTWAIT) ==
           static_cast<ssize_t>(record_size_)) {
      if (record[0] == user_handle) {
        ++taken_back;
      } else {
        kept.push_back(record);
      }
    }
  }
  for (const Record& record : waiting_) {
    if (record[0] == user_handle) {
      ++taken_back;
    } else {
      kept.push_back(record);
    }
  }
  waiting_ = std::move(kept);
  flush();
  const uint32_t remaining = found->second - taken_back;
  delivered_.erase(found);
  return remaining;
}

bool EventSocket::is_client_end(int fd) const {
  struct stat status {};
  return fstat(fd, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

}  // namespace rocemu::daemon
