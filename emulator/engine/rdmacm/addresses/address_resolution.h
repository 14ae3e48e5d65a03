// Resolution: finds the device that reaches an id's destination. Errors and states are those of
// Linux's rdma_cm. A real machine queries its routing table and ARP; the fabric knows all its
// addresses, and answers after the time of an ARP request and its reply. If a device has a network
// outside the fabric, an address that only ARP could find is assumed to be in that network. If it
// is not, RDMA_CM_EVENT_UNREACHABLE reports this.
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

  // ---- Commands, each of which returns 0 or an errno value ----
  int resolve_ip(const CmCommand& command);
  int resolve_addr(const CmCommand& command);
  int resolve_route(const CmCommand& command);

  std::optional<Instant> next_deadline() const;
  /// Ends the resolutions that are due, because a host answers or the timeout has passed, and sends
  /// an event for each.
  void expire();
  /// Ends the id's resolution, if there is one, without sending an event.
  void cancel(RdmaId& id);

 private:
  int resolve(RdmaId& id, const std::optional<SocketAddress>& source,
              const SocketAddress& destination, uint32_t timeout_ms);
  /// Returns whether a host answers for the destination, or the destination needs no answer.
  bool is_reachable(const RdmaId& id) const;
  /// Returns whether the destination is the program's own machine.
  bool is_loopback(const RdmaId& id) const;
  /// Selects the local address from which to reach the destination, and sends the event.
  void finish(RdmaId& id);
  /// Returns whether the destination may be in a network outside the fabric.
  bool may_be_outside(const RdmaId& id) const;

  const IdTable& ids_;
  Binding& binding_;
  const Environment& environment_;
  EventOutput& events_;
  std::set<std::pair<Instant, RdmaIdNumber>> deadlines_;
};

}  // namespace rocemu::engine::cm
