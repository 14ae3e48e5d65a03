// An event loop: epoll(7) with a callback for each file descriptor
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

  /// Watches a file descriptor until this object is destroyed. Must not outlive the loop, and must
  /// be destroyed before the file descriptor is closed.
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

  /// Creates an epoll instance. Throws StartError if the system refuses to create it.
  EventLoop();

  /// Starts to watch the file descriptor. Returns an empty Watch if that is not possible; errno has
  /// the reason. A callback may destroy any Watch, including its own.
  [[nodiscard]] Watch watch(int fd, uint32_t events, Callback callback);

  /// Waits for events and runs their callbacks. Returns the number of events. Waits forever if
  /// there is no timeout.
  int wait(std::optional<engine::Duration> timeout);
  /// Runs one callback: of the descriptors that are ready with one of the `wanted` events, it
  /// selects the one that has been watched longest. Returns false if none is ready. Must not be
  /// used with edge-triggered watches, since the other ready descriptors must be reported again.
  bool run_first(uint32_t wanted = UINT32_MAX);
  /// Returns a descriptor that is readable when a watched descriptor is ready, so that one loop can
  /// be watched by another.
  int fd() const { return epoll_.get(); }

 private:
  int wait_for_events(epoll_event* events, int count, std::optional<engine::Duration> timeout);

  UniqueFd epoll_;
  bool has_pwait2_ = true;
  uint64_t last_token_ = 0;
  // The callbacks by token. They are not by file descriptor, because the current batch can still
  // contain an event of a closed descriptor whose number already belongs to another file.
  std::unordered_map<uint64_t, std::shared_ptr<Callback>> callbacks_;
};

}  // namespace rocemu::daemon
