// The events of the connection manager that the layer above has not taken yet
#pragma once

#include <deque>
#include <optional>

#include "emulator/engine/cm/cm_events.h"
#include "emulator/engine/cm/connection.h"

namespace rocemu::engine::cm {

class EventQueue {
 public:
  /// Adds an event of the connection. Returns the event, so that the caller can set the members
  /// that only some kinds of events have. Returns nullptr if the layer above has destroyed the
  /// connection, which then has no events.
  Event* add(const Connection& connection, EventKind kind,
             const std::optional<wire::CmMessage>& message = std::nullopt);
  /// Removes and returns the oldest event.
  std::optional<Event> take();
  /// Returns whether the queue is full. If it is, no message may be received, since a message might
  /// add another event.
  bool is_full() const;

 private:
  std::deque<Event> events_;
};

}  // namespace rocemu::engine::cm
