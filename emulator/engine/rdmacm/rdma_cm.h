// The kernel's side of librdmacm, equivalent to Linux's rdma_ucm and rdma_cm: event channels,
// rdma_cm ids, and the commands of abi/ucma.h. The connection manager of the fabric, one layer
// below, exchanges the messages.
//
// This class owns the parts, and passes each command to the part that executes it (the table in
// rdma_cm.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/engine/cm/connection_manager.h"
#include "emulator/engine/cm/environment.h"
#include "emulator/engine/events.h"
#include "emulator/engine/rdmacm/addresses/address_resolution.h"
#include "emulator/engine/rdmacm/addresses/binding.h"
#include "emulator/engine/rdmacm/event_output.h"
#include "emulator/engine/rdmacm/id_table.h"
#include "emulator/engine/rdmacm/incoming_requests.h"
#include "emulator/engine/rdmacm/listening.h"
#include "emulator/engine/rdmacm/multicast_joins.h"
#include "emulator/engine/snapshot.h"

namespace rocemu::engine::cm {

class RdmaCm {
 public:
  /// All arguments must outlive this object.
  RdmaCm(Environment& environment, ConnectionManager& connections, faults::FaultInjector& injector,
         uint64_t seed);
  RdmaCm(const RdmaCm&) = delete;
  RdmaCm& operator=(const RdmaCm&) = delete;

  /// Sets the outputs to which events are added until the next step. Ends the address resolutions
  /// that are due, and sends their events.
  void begin_step(Outputs& outputs);
  /// Handles the events of the connection manager. Returns false if there were none.
  bool handle_events();
  std::optional<Instant> next_deadline() const { return resolution_.next_deadline(); }
  /// These functions return lists that are sorted by the numbers of the ids.
  std::vector<ListenerSnapshot> listeners() const;
  std::vector<RdmaIdSnapshot> ids() const;

  /// Notifies all ids of a device that was removed.
  void remove_device(DeviceIndex device);
  /// Destroys all ids of the channel.
  void close(CmChannelId channel);
  CmReply execute(const CmCommand& command);

  /// Sends an event that a rule raises: to all ids bound to the device or, without a device, to all
  /// ids.
  void raise(abi::ucma::EventType type, int32_t status, std::optional<DeviceIndex> device) {
    events_.raise(type, status, device);
  }

 private:
  using Response = std::vector<std::byte>;

  /// Executes a command. Returns 0 or a positive errno value.
  int dispatch(const CmCommand& command, Response& response);
  int destroy_id(const CmCommand& command, Response& response);
  void destroy(RdmaId& id);
  /// Releases everything that the parts of this class keep for the id.
  void release(RdmaId& id);

  Environment& environment_;
  ConnectionManager& connections_;
  IdTable ids_;
  EventOutput events_;
  Binding binding_;
  AddressResolution resolution_;
  Listening listening_;
  MulticastJoins joins_;
  IncomingRequests requests_;
};

}  // namespace rocemu::engine::cm
