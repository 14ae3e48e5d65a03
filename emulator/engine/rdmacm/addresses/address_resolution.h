// Resolution: from an id's destination to the device that reaches it. Errors and states as in
// Linux's rdma_cm; where a real machine asks its routing table and ARP, here the fabric knows all
// addresses, unless a device has a network beyond it: what only ARP could find is then taken to be
// there, and RDMA_CM_EVENT_UNREACHABLE reports that it is not.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "emulator/engine/base/time.h"
#include "emulator/engine/cm/environment.h"
#include "emulator/engine/events.h"
#include "emulator/engine/rdmacm/addresses/binding.h"
#include "emulator/engine/rdmacm/event_output.h"
#include "emulator/engine/rdmacm/id_table.h"

namespace rocemu::engine::cm {

class AddressResolution {
 public:
  AddressResolution(const IdTable& ids, Binding& binding, const Environment& environment,
                    EventOutput& events)
      : ids_(ids), binding_(binding), environment_(environment), events_(events) {}

  // ---- Commands: 0 or an errno value ----
  int resolve_ip(const CmCommand& command);
  int resolve_addr(const CmCommand& command);
  int resolve_route(const CmCommand& command);

  std::optional<Instant> next_deadline() const;
  /// Ends the resolutions that took too long with an event.
  void expire();
  /// Ends the id's resolution, if there is one, without an event.
  void cancel(RdmaId& id);

 private:
  int resolve(RdmaId& id, const std::optional<SocketAddress>& source,
              const SocketAddress& destination, uint32_t timeout_ms);
  /// Ends the resolution now, or lets it fail after the time that ARP or neighbour discovery would
  /// have had for an address that nobody answers for.
  void complete(RdmaId& id, uint32_t timeout_ms);
  /// True if a network beyond the fabric could be asked for the destination.
  bool may_be_outside(const RdmaId& id) const;

  const IdTable& ids_;
  Binding& binding_;
  const Environment& environment_;
  EventOutput& events_;
  std::set<std::pair<Instant, RdmaIdNumber>> deadlines_;
};

}  // namespace rocemu::engine::cm
