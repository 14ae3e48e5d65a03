// QP 1 of every device, the general services interface: it sends and receives MADs in frames (IBTA
// vol 1, 13.5 and annex A17). The connection manager is the only supported management class.
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

  /// Returns the MAD in a packet for QP 1 of the device. If the packet contains none that QP 1
  /// accepts, counts and drops the packet and returns nothing.
  std::optional<std::span<const uint8_t, wire::kMadSize>> admit(DeviceIndex device,
                                                                const wire::Packet& packet);

  /// Returns the route to the sender of a packet that admit() accepted.
  Route route_back(DeviceIndex device, const wire::Packet& packet) const;

  /// Counts a MAD that no supported management class can handle. If the MAD requests a response,
  /// sends one that contains the reason.
  void refuse(DeviceIndex device, const wire::Packet& packet);

 private:
  Environment& environment_;
  std::map<DeviceIndex, wire::Psn> next_psn_;
};

/// Returns whether the route starts at an address of the device and ends at an address of the same
/// family.
bool is_usable(const Environment& environment, const Route& route);

/// Returns the position of an address in the device's GID table.
std::optional<uint8_t> gid_index_of(const Environment& environment, DeviceIndex device,
                                    const wire::IpAddress& address);

}  // namespace rocemu::engine::cm
