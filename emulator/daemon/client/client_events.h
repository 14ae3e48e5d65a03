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

  /// Returns the client's end, or nothing if the system has no more descriptors.
  UniqueFd open_async();

  struct NewChannel {
    engine::ChannelId id;
    UniqueFd client_end;  // empty if the system has no more descriptors
  };
  NewChannel open_channel();
  /// Fails all channels: threads that wait for an event, now or later, get an error.
  void close_channels() { channels_.clear(); }
  size_t channels() const { return channels_.size(); }
  /// The inodes of the client's ends: those of its channels, and that of the asynchronous events or
  /// 0.
  std::vector<uint64_t> channel_inodes() const;
  uint64_t async_inode() const { return async_ != nullptr ? async_->inode() : 0; }
  bool has_channel(engine::ChannelId id) const { return channels_.contains(id.value); }

  /// Returns false if too many events wait for the client. Events for sockets that the client
  /// closed are dropped.
  bool deliver(const engine::CompletionEvent& event);
  bool deliver(const engine::AsyncEvent& event);

  /// Removes the unread events of an object that is being destroyed, and returns the number of
  /// events that the client has read. The client's own ends of the sockets, which are needed for
  /// this, are searched for among `fds`.
  uint32_t forget_completions(engine::ChannelId channel, uint64_t user_handle,
                              std::span<const UniqueFd> fds);
  uint32_t forget_async(uint64_t user_handle, std::span<const UniqueFd> fds);

 private:
  EventLoop& loop_;
  std::unique_ptr<EventSocket> async_;
  std::map<uint64_t, std::unique_ptr<EventSocket>> channels_;  // by inode
};

}  // namespace rocemu::daemon
