#include "emulator/daemon/kernel/live_counters.h"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace rocemu::daemon {

LiveCounters::LiveCounters(EventLoop& loop, UniqueFd listener, const SysfsTree& tree,
                           RuntimeDirectory& directory, NldevSource& source)
    : tree_(tree),
      directory_(directory),
      source_(source),
      listener_(loop, std::move(listener),
                [this](UniqueFd /*closed behind this*/, PeerCredentials) { refresh(); }) {}

void LiveCounters::refresh() {
  const engine::FabricSnapshot snapshot = source_.snapshot();
  for (uint32_t i = 0; i < snapshot.devices.size(); ++i) {
    if (!source_.has_device({i})) continue;
    const engine::DeviceSnapshot& device = snapshot.devices[i];
    for (SysfsFile& file : tree_.counter_files(device.name, i, device.counters, device.pauses)) {
      std::string& written = written_.try_emplace(file.path, "0\n").first->second;
      if (written == file.content) continue;
      if (!directory_.replace_sysfs(file)) {
        spdlog::error("cannot update the counters of {} in sysfs: {}", device.name,
                      std::strerror(errno));
        return;
      }
      written = std::move(file.content);
    }
  }
}

}  // namespace rocemu::daemon
