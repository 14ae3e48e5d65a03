// Calls a function when the machine's network interfaces or their addresses change.
#pragma once

#include <functional>

#include "emulator/daemon/base/event_loop.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class LinkWatch {
 public:
  /// Starts to watch the interfaces. Throws StartError.
  LinkWatch(EventLoop& loop, std::function<void()> changed);

 private:
  UniqueFd socket_;
  EventLoop::Watch watch_;
};

}  // namespace rocemu::daemon
