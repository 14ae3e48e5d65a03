// The connection manager's events, until the layer above takes them.
#pragma once

#include <deque>
#include <optional>

#include "emulator/engine/cm/cm_events.h"
#include "emulator/engine/cm/connection.h"

namespace rocemu::engine::cm {

class EventQueue {
 public:
  /// Adds an event of the connection. Returns it, for what only some kinds of events say; nullptr
  /// if the layer above has destroyed the connection, which has no events then.
  Event* add(const Connection& connection, EventKind kind,
             const std::optional<wire::CmMessage>& message = std::nullopt);
  /// Removes and returns the oldest event.
  std::optional<Event> take();
  /// True while so many events wait that no message may be received: it might add another one.
  bool is_full() const;

 private:
  std::deque<Event> events_;
};

}  // namespace rocemu::engine::cm
