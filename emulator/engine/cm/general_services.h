// QP 1 of every device, the general services interface: MADs in frames (IBTA vol 1, 13.5 and annex
// A17). Among all management classes only the connection manager is supported.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "emulator/engine/cm/cm_events.h"
#include "emulator/engine/cm/environment.h"
#include "wire/cm/mad.h"
#include "wire/packet.h"

namespace rocemu::engine::cm {

class GeneralServices {
 public:
  explicit GeneralServices(Environment& environment) : environment_(environment) {}

  /// Sends the MAD as a UD SEND Only from QP 1 to QP 1.
  void send(const Route& route, std::span<const uint8_t, wire::kMadSize> mad,
            const Resend& resend = {});

  /// Returns the MAD in a packet for QP 1 of the device, or nothing: the packet is counted and
  /// dropped.
  std::optional<std::span<const uint8_t, wire::kMadSize>> admit(DeviceIndex device,
                                                                const wire::Packet& packet);

  /// Returns the route back to the sender of a packet that was admitted.
  Route route_back(DeviceIndex device, const wire::Packet& packet) const;

  /// Answers a MAD that does not belong to the connection manager with the reason, if it requests a
  /// response, and counts it.
  void refuse(DeviceIndex device, const wire::Packet& packet);

 private:
  Environment& environment_;
  std::map<DeviceIndex, wire::Psn> next_psn_;
};

/// Returns whether the route starts at an address of the device, and ends at one of the same
/// family.
bool is_usable(const Environment& environment, const Route& route);

/// Returns the position of an address in the device's GID table.
std::optional<uint8_t> gid_index_of(const Environment& environment, DeviceIndex device,
                                    const wire::IpAddress& address);

}  // namespace rocemu::engine::cm
