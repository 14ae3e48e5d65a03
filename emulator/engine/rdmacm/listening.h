// The listening ids, with their service IDs, and the number of requests to each of them whose
// events the program has not read yet
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "emulator/engine/cm/connection_manager.h"
#include "emulator/engine/events.h"
#include "emulator/engine/rdmacm/addresses/binding.h"
#include "emulator/engine/rdmacm/id_table.h"
#include "wire/cm/ip_cm.h"

namespace rocemu::engine::cm {

class Listening {
 public:
  Listening(const IdTable& ids, Binding& binding, ConnectionManager& connections)
      : ids_(ids), binding_(binding), connections_(connections) {}

  // ---- Commands, each of which returns 0 or an errno value ----
  int listen(const CmCommand& command);
  /// Removes a request from the backlog, because the program has read the event of the request.
  int request_was_read(const CmCommand& command);

  /// Returns the id that gets a request for this service ID: an id that listens on the header's
  /// destination or, if the request has no header, an AF_IB id. Returns nullptr if there is none.
  RdmaId* find(uint64_t service_id, const std::optional<wire::IpCmHeader>& header) const;
  bool has_listener(uint64_t service_id) const { return services_.contains(service_id); }
  void stop(RdmaId& id);
  /// Removes a request from its listener's backlog, because the program has read the event of the
  /// request or will never read it.
  void leave_backlog(RdmaId& requested);

 private:
  /// The connection manager's listener that serves all ids with the same service ID
  struct Service {
    ListenerId listener;
    std::vector<RdmaIdNumber> ids;
  };

  int start(RdmaId& id);

  const IdTable& ids_;
  Binding& binding_;
  ConnectionManager& connections_;
  std::map<uint64_t, Service> services_;
};

}  // namespace rocemu::engine::cm
