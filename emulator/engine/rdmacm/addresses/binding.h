// Binds ids to local addresses and ports. Errors and states are those of Linux's rdma_cm.
#pragma once

#include "emulator/engine/cm/environment.h"
#include "emulator/engine/events.h"
#include "emulator/engine/rdmacm/addresses/port_spaces.h"
#include "emulator/engine/rdmacm/id_table.h"

namespace rocemu::engine::cm {

class Binding {
 public:
  Binding(const IdTable& ids, const Environment& environment)
      : ids_(ids), environment_(environment) {}

  // ---- Commands, each of which returns 0 or an errno value ----
  int bind_ip(const CmCommand& command);
  int bind(const CmCommand& command);

  /// Binds an idle id. Returns 0 or an errno value.
  int bind_to(RdmaId& id, const SocketAddress& address);
  /// Returns 0 if the id may listen on its port, or an errno value (PortSpaces::check_listen).
  int check_listen(const RdmaId& id) const { return ports_.check_listen(id); }
  void unbind(RdmaId& id) { ports_.unbind(id); }

 private:
  const IdTable& ids_;
  const Environment& environment_;
  PortSpaces ports_;
};

}  // namespace rocemu::engine::cm
