// Chooses the local address of an id among the addresses of the fabric's devices
#pragma once

#include <optional>

#include "emulator/engine/cm/environment.h"
#include "emulator/engine/rdmacm/rdma_id.h"

namespace rocemu::engine::cm {

std::optional<LocalAddress> local_address(const Environment& environment,
                                          const wire::IpAddress& address);
/// Returns the local address that has the longest common prefix with the destination, on the first
/// device if several do. The source for an address of the machine is thus that address itself. For
/// a destination in 127.0.0.0/8, it is instead the first address in this range, normally 127.0.0.1,
/// as in Linux's local routes. Returns nothing if the destination is outside the fabric and no
/// device has a network outside, or if no device has an address of the same family.
std::optional<LocalAddress> source_for(const Environment& environment,
                                       const SocketAddress& destination);
/// Returns whether this is a loopback address that no device has, and that no host outside the
/// fabric can have: no device has a network over the loopback interface.
bool is_loopback_of_nobody(const Environment& environment, const SocketAddress& address);
std::optional<LocalAddress> first_address(const Environment& environment, Family family);

const wire::IpAddress& address_of(const Environment& environment, const LocalAddress& local);

}  // namespace rocemu::engine::cm
