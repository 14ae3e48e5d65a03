#include "emulator/daemon/client/client_events.h"

#include <utility>

namespace rocemu::daemon {
namespace {

/// Returns the descriptor among `fds` that is the client's end of this socket; -1 if there is none.
/// Only this descriptor may be read.
int client_end_among(std::span<const UniqueFd> fds, const EventSocket& socket) {
  for (const UniqueFd& fd : fds) {
    if (socket.is_client_end(fd.get())) return fd.get();
  }
  return -1;
}

}  // namespace

UniqueFd ClientEvents::open_async() {
  EventSocket::Created async =
      EventSocket::create(loop_, sizeof(abi::AsyncEventRecord), [this] { async_.reset(); });
  async_ = std::move(async.socket);
  return std::move(async.client_end);
}

std::vector<uint64_t> ClientEvents::channel_inodes() const {
  std::vector<uint64_t> inodes;
  for (const auto& [inode, socket] : channels_) inodes.push_back(inode);
  return inodes;
}

ClientEvents::NewChannel ClientEvents::open_channel() {
  // The callback, which runs later, needs the inode, which is known only after create().
  const auto inode = std::make_shared<uint64_t>(0);
  EventSocket::Created channel = EventSocket::create(loop_, sizeof(abi::CompletionEventRecord),
                                                     [this, inode] { channels_.erase(*inode); });
  if (channel.socket == nullptr) return {};
  *inode = channel.socket->inode();
  channels_.insert_or_assign(*inode, std::move(channel.socket));
  return {{*inode}, std::move(channel.client_end)};
}

bool ClientEvents::deliver(const engine::CompletionEvent& event) {
  const auto found = channels_.find(event.channel.value);
  return found == channels_.end() ||
         found->second->deliver(abi::CompletionEventRecord{event.user_handle});
}

bool ClientEvents::deliver(const engine::AsyncEvent& event) {
  return async_ == nullptr || async_->deliver(abi::AsyncEventRecord{
                                  event.element, static_cast<uint32_t>(event.type), 0});
}

uint32_t ClientEvents::forget_completions(engine::ChannelId channel, uint64_t user_handle,
                                          std::span<const UniqueFd> fds) {
  const auto found = channels_.find(channel.value);
  if (found == channels_.end()) return 0;
  return found->second->forget(user_handle, client_end_among(fds, *found->second));
}

uint32_t ClientEvents::forget_async(uint64_t user_handle, std::span<const UniqueFd> fds) {
  return async_ == nullptr ? 0 : async_->forget(user_handle, client_end_among(fds, *async_));
}

}  // namespace rocemu::daemon
