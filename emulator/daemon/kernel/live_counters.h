// Updates the counters in sysfs at the moment at which a program opens one. Before the program's
// open(2), the shim connects to `listener` and waits for an end of file.
#pragma once

#include <map>
#include <string>

#include "emulator/daemon/base/event_loop.h"
#include "emulator/daemon/base/listener.h"
#include "emulator/daemon/kernel/nldev.h"
#include "emulator/daemon/kernel/runtime_directory.h"
#include "emulator/daemon/kernel/sysfs_tree.h"

namespace rocemu::daemon {

class LiveCounters {
 public:
  /// Serves `listener`. All arguments must outlive this object.
  LiveCounters(EventLoop& loop, UniqueFd listener, const SysfsTree& tree,
               RuntimeDirectory& directory, NldevSource& source);

 private:
  void refresh();

  const SysfsTree& tree_;
  RuntimeDirectory& directory_;
  NldevSource& source_;
  std::map<std::string, std::string> written_;  // by path
  Listener listener_;
};

}  // namespace rocemu::daemon
