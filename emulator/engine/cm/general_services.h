// QP 1 of every device, the general services interface: MADs in frames (IBTA vol 1, 13.5 and annex
// A17). Any class's, though only the connection manager is at home here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "emulator/engine/cm/cm_events.h"
#include "wire/cm/mad.h"
#include "wire/packet.h"

namespace rocemu::engine {
class Fabric;
}  // namespace rocemu::engine

namespace rocemu::engine::cm {

class GeneralServices {
 public:
  explicit GeneralServices(Fabric& fabric) : fabric_(fabric) {}

  /// A UD SEND Only from QP 1 to QP 1.
  void send(const Route& route, std::span<const uint8_t, wire::kMadSize> mad);

  /// The MAD in a packet for QP 1 of the device, or nothing: the packet is counted and dropped.
  std::optional<std::span<const uint8_t, wire::kMadSize>> admit(DeviceIndex device,
                                                                const wire::Packet& packet);

  /// The way back to where a packet came from, that was admitted.
  Route route_back(DeviceIndex device, const wire::Packet& packet) const;

  /// What nobody else understood: answered with why, or counted and dropped.
  void refuse(DeviceIndex device, const wire::Packet& packet);

 private:
  Fabric& fabric_;
  std::map<DeviceIndex, wire::Psn> next_psn_;
};

/// Does the route begin at an address that the device has, and end at one of the same family?
bool is_usable(const Fabric& fabric, const Route& route);

/// Position of an address in the device's GID table.
std::optional<uint8_t> gid_index_of(const Fabric& fabric, DeviceIndex device,
                                    const wire::IpAddress& address);

}  // namespace rocemu::engine::cm
