// The listeners of the connection manager, by service ID
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "emulator/engine/cm/cm_events.h"
#include "wire/result.h"

namespace rocemu::engine::cm {

struct Listener {
  ListenerId id;
  Listen options;
};

class Listeners {
 public:
  /// Adds a listener. Returns EADDRINUSE if a listener has the same service ID, device and address,
  /// and ENOMEM if there are too many listeners.
  wire::Result<ListenerId, int> add(const Listen& listen);
  /// Removes the listener with that ID. Does nothing if there is none.
  void remove(ListenerId id);
  /// Returns the listener for a request to this address: the most specific one or, among equally
  /// specific ones, the oldest. Returns nullptr if there is none.
  const Listener* find(uint64_t service_id, DeviceIndex device,
                       const wire::IpAddress& address) const;

 private:
  std::map<ListenerId, uint64_t> service_ids_;
  std::map<uint64_t, std::vector<Listener>> services_;
  uint32_t last_id_ = 0;
};

}  // namespace rocemu::engine::cm
