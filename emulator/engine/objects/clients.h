// The clients: each is a context that a program opened on a device (ibv_open_device(3)). Clients
// that were created from each other by ibv_import_device(3) share their objects.
#pragma once

#include <map>
#include <optional>

#include "emulator/engine/base/ids.h"

namespace rocemu::engine {

class Clients {
 public:
  /// `shares_with` is a client with which the new one shares its objects.
  void attach(ClientId client, DeviceIndex device, std::optional<ClientId> shares_with);
  void remove(ClientId client);

  bool contains(ClientId client) const { return devices_.contains(client); }
  /// Returns the device of the client, which must exist.
  DeviceIndex device_of(ClientId client) const { return devices_.at(client); }
  std::optional<DeviceIndex> find_device_of(ClientId client) const;
  /// Visits the device's clients in the order of their ids.
  template <class Visitor>
  void for_each_of(DeviceIndex device, Visitor visit) const {
    for (const auto& [client, of] : devices_) {
      if (of == device) visit(client);
    }
  }

  bool share_objects(ClientId a, ClientId b) const { return group_of(a) == group_of(b); }
  /// Returns another client that shares the objects of this one.
  std::optional<ClientId> heir_of(ClientId client) const;

 private:
  ClientId group_of(ClientId client) const;

  std::map<ClientId, DeviceIndex> devices_;
  std::map<ClientId, ClientId> groups_;  // for those that share: the first client
};

}  // namespace rocemu::engine
