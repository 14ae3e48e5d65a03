// The clients. Each client is a context that a program opened on a device (ibv_open_device(3)). A
// client that was created by ibv_import_device(3) shares its objects with the client that it
// imported.
#pragma once

#include <map>
#include <optional>

#include "emulator/engine/base/ids.h"

namespace rocemu::engine {

class Clients {
 public:
  /// Adds a client. If `shares_with` is set, it is a client with which the new client shares its
  /// objects.
  void attach(ClientId client, DeviceIndex device, std::optional<ClientId> shares_with);
  void remove(ClientId client);

  bool contains(ClientId client) const { return devices_.contains(client); }
  /// Returns the device of the client, which must exist.
  DeviceIndex device_of(ClientId client) const { return devices_.at(client); }
  std::optional<DeviceIndex> find_device_of(ClientId client) const;
  /// Calls the visitor with each client of the device, in the order of the clients' ids.
  template <class Visitor>
  void for_each_of(DeviceIndex device, Visitor visit) const {
    for (const auto& [client, of] : devices_) {
      if (of == device) visit(client);
    }
  }

  bool share_objects(ClientId a, ClientId b) const { return group_of(a) == group_of(b); }
  /// Returns another client that shares the objects of this one, if there is one.
  std::optional<ClientId> heir_of(ClientId client) const;

 private:
  ClientId group_of(ClientId client) const;

  std::map<ClientId, DeviceIndex> devices_;
  std::map<ClientId, ClientId> groups_;  // for those that share: the first client
};

}  // namespace rocemu::engine
