#include "emulator/daemon/client/silent_connections.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "emulator/daemon/base/descriptors.h"

namespace rocemu::daemon {
namespace {

/// The maximum number of connections that have not sent a hello. If a quarter of the descriptor
/// limit is less, that is the maximum.
constexpr size_t kMaxSilent = 1024;
/// The time limit for a hello. It is long because a debugger, for example, can stop a program
/// between its connection and its hello.
constexpr engine::Duration kMaxSilence = std::chrono::seconds(30);

}  // namespace

void SilentConnections::add(ClientSession& session, engine::Instant now) {
  sessions_.emplace(session.id(), Silent{&session, now});
  if (sessions_.size() > std::min(kMaxSilent, descriptor_limit() / 4)) end_oldest();
}

void SilentConnections::end_oldest() {
  ClientSession& oldest = *sessions_.begin()->second.session;
  if (!std::exchange(has_warned_, true)) {
    spdlog::warn(
        "connections that send no hello are ended: {} is the first, and there may be many more",
        oldest.description());
  }
  sessions_.erase(sessions_.begin());
  oldest.end("");
}

void SilentConnections::end_due(engine::Instant now) {
  while (!sessions_.empty() && now - sessions_.begin()->second.since >= kMaxSilence) end_oldest();
}

std::optional<engine::Instant> SilentConnections::next_end() const {
  if (sessions_.empty()) return std::nullopt;
  return sessions_.begin()->second.since + kMaxSilence;
}

}  // namespace rocemu::daemon
