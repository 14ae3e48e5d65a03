#include "emulator/engine/objects/clients.h"

namespace rocemu::engine {

void Clients::attach(ClientId client, DeviceIndex device, std::optional<ClientId> shares_with) {
  devices_[client] = device;
  if (!shares_with) return;
  const ClientId group = group_of(*shares_with);
  groups_[group] = groups_[client] = group;
}

void Clients::remove(ClientId client) {
  groups_.erase(client);
  devices_.erase(client);
}

std::optional<DeviceIndex> Clients::find_device_of(ClientId client) const {
  const auto found = devices_.find(client);
  return found != devices_.end() ? std::optional(found->second) : std::nullopt;
}

std::optional<ClientId> Clients::heir_of(ClientId client) const {
  for (const auto& [other, device] : devices_) {
    if (other != client && share_objects(other, client)) return other;
  }
  return std::nullopt;
}

ClientId Clients::group_of(ClientId client) const {
  const auto found = groups_.find(client);
  return found != groups_.end() ? found->second : client;
}

}  // namespace rocemu::engine
