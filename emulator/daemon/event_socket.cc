#include "emulator/daemon/event_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace rocemu::daemon {

EventSocket::Created EventSocket::create(EventLoop& loop, size_t record_size,
                                         std::function<void()> on_hangup) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return {};
  UniqueFd client_end(ends[1]);
  std::unique_ptr<EventSocket> socket(new EventSocket(UniqueFd(ends[0]), record_size));
  struct stat status {};
  if (fstat(client_end.get(), &status) != 0) return {};
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
  if (!watching_write_) flush();  // otherwise the socket is full, and epoll says when it is not
  return true;
}

void EventSocket::flush() {
  while (!waiting_.empty()) {
    if (send(daemon_end_.get(), waiting_.front().data(), record_size_,
             MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      break;  // full: EPOLLOUT follows; or hung up: EPOLLHUP does
    }
    waiting_.pop_front();
  }
  if (watch_ && watching_write_ == waiting_.empty()) {
    watching_write_ = !waiting_.empty();
    watch_.set_events(watching_write_ ? uint32_t{EPOLLOUT} : 0);
  }
}

uint32_t EventSocket::forget(uint64_t user_handle, int client_end) {
  uint32_t taken_back = 0;
  std::deque<Record> kept;
  if (client_end >= 0) {
    Record record{};
    // MSG_DONTWAIT: the descriptor's own flags are the client's. Nobody but us can write into the
    // socket, so this ends. A thread of the client that reads at the same time gets some event of
    // those that are out, or waits until they are back.
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

  const auto found = delivered_.find(user_handle);
  if (found == delivered_.end()) return 0;
  const uint32_t remaining = found->second - taken_back;
  delivered_.erase(found);
  return remaining;
}

bool EventSocket::is_client_end(int fd) const {
  struct stat status {};
  return fstat(fd, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

}  // namespace rocemu::daemon
