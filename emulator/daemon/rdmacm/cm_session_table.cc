#include "emulator/daemon/rdmacm/cm_session_table.h"

#include <spdlog/spdlog.h>

namespace rocemu::daemon {

void CmSessionTable::add(std::unique_ptr<CmSession> session) {
  const engine::CmChannelId channel = session->channel();
  sessions_.emplace(channel, std::move(session));
}

void CmSessionTable::deliver(const engine::CmEvent& event) {
  const auto found = sessions_.find(event.channel);
  if (found != sessions_.end()) found->second->deliver(*event.event);
}

CmSession* CmSessionTable::with_cookie(uint64_t cookie) {
  if (cookie == 0) return nullptr;
  for (const auto& [channel, session] : sessions_) {
    if (session->cookie() == cookie && !session->has_ended()) return session.get();
  }
  return nullptr;
}

std::vector<pid_t> CmSessionTable::pids() const {
  std::vector<pid_t> pids;
  for (const auto& [channel, session] : sessions_) pids.push_back(session->pid());
  return pids;
}

std::optional<pid_t> CmSessionTable::pid_of(engine::CmChannelId channel) const {
  const auto found = sessions_.find(channel);
  return found == sessions_.end() ? std::nullopt : std::optional(found->second->pid());
}

std::map<engine::CmChannelId, uint64_t> CmSessionTable::inodes() const {
  std::map<engine::CmChannelId, uint64_t> inodes;
  for (const auto& [channel, session] : sessions_) inodes.emplace(channel, session->inode());
  return inodes;
}

bool CmSessionTable::reap(EnginePort& engine) {
  if (ended_.empty()) return false;
  // When one session is closed, another may end; it is appended to the list.
  for (size_t i = 0; i < ended_.size(); ++i) {
    const auto found = sessions_.find(ended_[i]);
    if (found == sessions_.end()) continue;
    if (const CmSession& session = *found->second; session.end_reason().empty()) {
      spdlog::debug("event channel {} is closed", session.channel().value);
    } else {
      spdlog::warn("event channel {} (pid {}) ended: {}", session.channel().value, session.pid(),
                   session.end_reason());
    }
    const engine::CmChannelId channel = found->first;
    sessions_.erase(found);
    engine.submit(engine::CloseCmChannel{channel});
  }
  ended_.clear();
  return true;
}

}  // namespace rocemu::daemon
