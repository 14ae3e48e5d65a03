// The descriptor of a completion channel, or the async fd of a context. It is a socket from which
// the client reads one event with each read(2). A socket holds about 280 unread events; further
// events wait here. Unread events of an object that is being destroyed can be removed, as
// ibv_destroy_cq(3) requires.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>

#include "emulator/abi/control.h"
#include "emulator/daemon/base/event_loop.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class EventSocket {
 public:
  /// The number of events that can wait here for a client that does not read. If there are more,
  /// the client is ended.
  static constexpr size_t kMaxWaiting = 1'000'000;

  struct Created {
    std::unique_ptr<EventSocket> socket;
    UniqueFd client_end;
  };

  /// Creates a socket and the client's end of it. `record_size` is the size of an
  /// abi::CompletionEventRecord or abi::AsyncEventRecord. `on_hangup` runs when the client has
  /// closed its end, and may destroy the EventSocket. The result has no socket if the system has no
  /// more descriptors.
  static Created create(EventLoop& loop, size_t record_size, std::function<void()> on_hangup);

  /// Sends an event, or lets it wait. Returns false if kMaxWaiting events wait already. Drops the
  /// event if the client has closed its end.
  bool deliver(const abi::CompletionEventRecord& record);
  bool deliver(const abi::AsyncEventRecord& record);

  /// Removes all unread events of the object with this user handle, and returns the number of its
  /// events that the client has read. `client_end` is the client's own descriptor of its end, from
  /// which unread events are read back. If it is -1, events in the socket count as read.
  uint32_t forget(uint64_t user_handle, int client_end);

  /// Returns whether `fd` is the client's end of this socket.
  bool is_client_end(int fd) const;

  uint64_t inode() const { return inode_; }
  size_t waiting() const { return waiting_.size(); }

 private:
  /// An event of either kind. Both kinds begin with the user handle, and a completion event has
  /// nothing else.
  using Record = std::array<uint64_t, 2>;

  EventSocket(UniqueFd daemon_end, size_t record_size) noexcept
      : daemon_end_(std::move(daemon_end)), record_size_(record_size) {}
  bool deliver_record(const Record& record);
  void flush();

  UniqueFd daemon_end_;
  EventLoop::Watch watch_;  // after the fd: destroyed first
  size_t record_size_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  bool hung_up_ = false;
  bool watching_write_ = false;
  std::deque<Record> waiting_;
  /// The number of events, by user handle, that were sent or are waiting, and were not removed.
  std::unordered_map<uint64_t, uint32_t> delivered_;
};

}  // namespace rocemu::daemon
