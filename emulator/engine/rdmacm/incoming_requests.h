// Handles requests from the connection manager. Each request becomes a new id on the channel of the
// id that listens for it, or is refused.
#pragma once

#include "emulator/engine/cm/cm_events.h"
#include "emulator/engine/cm/connection_manager.h"
#include "emulator/engine/cm/environment.h"
#include "emulator/engine/rdmacm/event_output.h"
#include "emulator/engine/rdmacm/id_table.h"
#include "emulator/engine/rdmacm/listening.h"

namespace rocemu::engine::cm {

class IncomingRequests {
 public:
  IncomingRequests(IdTable& ids, const Listening& listening, ConnectionManager& connections,
                   const Environment& environment, EventOutput& output)
      : ids_(ids),
        listening_(listening),
        connections_(connections),
        environment_(environment),
        output_(output) {}

  /// Handles a kRequest or kResolveRequest event.
  void handle(const Event& event);

 private:
  void refuse(const Event& event);

  IdTable& ids_;
  const Listening& listening_;
  ConnectionManager& connections_;
  const Environment& environment_;
  EventOutput& output_;
};

}  // namespace rocemu::engine::cm
