// All rdma_cm event channels of the daemon
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "emulator/daemon/rdmacm/cm_session.h"

namespace rocemu::daemon {

class CmSessionTable : public CmSessionOwner {
 public:
  engine::CmChannelId next_channel() { return engine::CmChannelId{++last_channel_}; }
  void add(std::unique_ptr<CmSession> session);

  void deliver(const engine::CmEvent& event);

  void ended(CmSession& session) override { ended_.push_back(session.channel()); }
  CmSession* with_cookie(uint64_t cookie) override;

  /// Returns the processes of the programs that have event channels.
  std::vector<pid_t> pids() const;
  std::optional<pid_t> pid_of(engine::CmChannelId channel) const;
  /// Returns the inode of our end of the socket of each channel.
  std::map<engine::CmChannelId, uint64_t> inodes() const;

  /// Closes and destroys the sessions that have ended. Returns whether there were any.
  bool reap(EnginePort& engine);

 private:
  uint32_t last_channel_ = 0;
  std::map<engine::CmChannelId, std::unique_ptr<CmSession>> sessions_;
  std::vector<engine::CmChannelId> ended_;
};

}  // namespace rocemu::daemon
