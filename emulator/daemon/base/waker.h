// Lets other threads end the sleep of an event loop.
#pragma once

#include "emulator/daemon/base/event_loop.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class Waker {
 public:
  /// Throws StartError if the system has no eventfd left.
  explicit Waker(EventLoop& loop);

  /// By any thread. The loop's wait, or its next one, ends at once.
  void wake();

 private:
  UniqueFd fd_;
  EventLoop::Watch watch_;
};

}  // namespace rocemu::daemon
