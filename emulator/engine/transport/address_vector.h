// Address vectors: converts the application's vector to the header fields of frames
#pragma once

#include "emulator/engine/objects/objects.h"

namespace rocemu::engine {

/// Returns 0, EINVAL if no RoCE port can use the vector, or ETIMEDOUT if the vector has an address
/// on the link that no device has (DevicePolicy::resolve_neighbors).
int check_address_vector(const Devices& devices, DeviceIndex device, const abi::AhAttr& attr);

/// Returns the path for a vector, which must have been checked. If the vector has no GRH
/// (DevicePolicy::require_grh), the destination is the device that owns the peer.
Path resolve_path(const Objects& objects, DeviceIndex device, const abi::AhAttr& attr, QpNumber own,
                  QpNumber peer);

/// Returns the UDP source port of all datagrams of a QP. The rule is Linux's, so that captures can
/// be compared.
uint16_t datagram_source_port(const DeviceConfig& config, QpNumber own);

}  // namespace rocemu::engine
