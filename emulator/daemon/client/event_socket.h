// The descriptor of a completion channel, or the async fd of a context. It is a socket from which
// the client reads one event with each read(). A socket holds about 280 unread messages; further
// ones wait here. Events of an object that is being destroyed can be removed again, as
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
  /// The number of events that can wait here for a client that does not read; a client with more is
  /// ended.
  static constexpr size_t kMaxWaiting = 1'000'000;

  struct Created {
    std::unique_ptr<EventSocket> socket;
    UniqueFd client_end;
  };

  /// `record_size` is that of an abi::CompletionEventRecord or abi::AsyncEventRecord. `on_hangup`
  /// runs when the client closed its end, and may destroy the EventSocket. The result has no socket
  /// if the system has no more descriptors.
  static Created create(EventLoop& loop, size_t record_size, std::function<void()> on_hangup);

  /// Returns false if more than kMaxWaiting events wait. After a hang-up events are dropped.
  bool deliver(const abi::CompletionEventRecord& record);
  bool deliver(const abi::AsyncEventRecord& record);

  /// Removes all unread events of the object with this user handle, and returns the number that the
  /// client has read. `client_end` is the client's own descriptor of its end, through which the
  /// unread ones are read back; with -1 those in the socket count as read.
  uint32_t forget(uint64_t user_handle, int client_end);

  /// Returns whether `fd` is the client's end of this socket.
  bool is_client_end(int fd) const;

  uint64_t inode() const { return inode_; }
  size_t waiting() const { return waiting_.size(); }

 private:
  /// Both kinds of record start with the user handle; a completion's has nothing else.
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
  std::unordered_map<uint64_t, uint32_t> delivered_;  // by user handle: events given to the socket
                                                      // or the queue and not taken back
};

}  // namespace rocemu::daemon
