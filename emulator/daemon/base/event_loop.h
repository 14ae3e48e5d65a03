// epoll with a callback per file descriptor.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>

#include "emulator/engine/base/time.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class EventLoop {
 public:
  using Callback = std::function<void(uint32_t events)>;

  /// Watches its file descriptor until it is destroyed. Must not outlive the loop, and must go
  /// before its file descriptor is closed.
  class Watch {
   public:
    Watch() = default;
    Watch(Watch&& other) noexcept { *this = std::move(other); }
    Watch& operator=(Watch&& other) noexcept;
    ~Watch() { reset(); }

    explicit operator bool() const { return loop_ != nullptr; }
    void set_events(uint32_t events);
    void reset();

   private:
    friend class EventLoop;
    EventLoop* loop_ = nullptr;
    int fd_ = -1;
    uint64_t token_ = 0;
  };

  /// Throws StartError if the system has no epoll left.
  EventLoop();

  /// An empty Watch if the file descriptor cannot be watched; errno says why. A callback may
  /// destroy any Watch, its own included.
  [[nodiscard]] Watch watch(int fd, uint32_t events, Callback callback);

  /// Waits for events and runs their callbacks; returns how many. No timeout: for ever.
  int wait(std::optional<engine::Duration> timeout);
  /// Of what is ready now with one of these events, only what has been watched longest. False if
  /// nothing is. Not for edge-triggered watches: what is left must be ready again.
  bool run_first(uint32_t wanted = UINT32_MAX);
  /// Readable when something is ready, so that one loop can be watched by another.
  int fd() const { return epoll_.get(); }

 private:
  int wait_for_events(epoll_event* events, int count, std::optional<engine::Duration> timeout);

  UniqueFd epoll_;
  bool has_pwait2_ = true;
  uint64_t last_token_ = 0;
  // By token rather than by fd: an event of a closed fd may still be in the batch at hand when its
  // number belongs to something else.
  std::unordered_map<uint64_t, std::shared_ptr<Callback>> callbacks_;
};

}  // namespace rocemu::daemon
