// The sockets on which a client receives events: its completion channels and the one asynchronous
// event socket of its context
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "emulator/daemon/base/event_loop.h"
#include "emulator/daemon/client/event_socket.h"
#include "emulator/engine/events.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class ClientEvents {
 public:
  explicit ClientEvents(EventLoop& loop) : loop_(loop) {}
  ClientEvents(const ClientEvents&) = delete;
  ClientEvents& operator=(const ClientEvents&) = delete;

  /// Opens the socket for asynchronous events. Returns the client's end; nothing if the system has
  /// no more descriptors.
  UniqueFd open_async();

  struct NewChannel {
    engine::ChannelId id;
    UniqueFd client_end;  // empty if the system has no more descriptors
  };
  NewChannel open_channel();
  /// Closes all channels: threads that wait for a completion event, now or later, get an error.
  void close_channels() { channels_.clear(); }
  size_t channels() const { return channels_.size(); }
  /// Returns the inodes of the client's ends of the completion channels. async_inode() returns that
  /// of the socket for asynchronous events, or 0.
  std::vector<uint64_t> channel_inodes() const;
  uint64_t async_inode() const { return async_ != nullptr ? async_->inode() : 0; }
  bool has_channel(engine::ChannelId id) const { return channels_.contains(id.value); }

  /// Sends an event to the client. Returns false if too many events wait for the client. Drops the
  /// event if the client has closed the socket.
  bool deliver(const engine::CompletionEvent& event);
  bool deliver(const engine::AsyncEvent& event);

  /// Removes the unread events of an object that is being destroyed. Returns the number of its
  /// events that the client has read. To remove events, this needs the client's end of the socket,
  /// and searches for it among `fds`.
  uint32_t forget_completions(engine::ChannelId channel, uint64_t user_handle,
                              std::span<const UniqueFd> fds);
  uint32_t forget_async(uint64_t user_handle, std::span<const UniqueFd> fds);

 private:
  EventLoop& loop_;
  std::unique_ptr<EventSocket> async_;
  std::map<uint64_t, std::unique_ptr<EventSocket>> channels_;  // by inode
};

}  // namespace rocemu::daemon
