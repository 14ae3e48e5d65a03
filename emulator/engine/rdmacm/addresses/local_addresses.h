// The choice of an id's own address among those of the fabric's devices
#pragma once

#include <optional>

#include "emulator/engine/cm/environment.h"
#include "emulator/engine/rdmacm/rdma_id.h"

namespace rocemu::engine::cm {

std::optional<LocalAddress> local_address(const Environment& environment,
                                          const wire::IpAddress& address);
/// Returns the address most similar to the destination, of the first device if there are several.
/// An address of the machine is thus its own source, except that 127.0.0.0/8 has the source
/// 127.0.0.1, as in Linux's local routes. Returns nothing if the destination is outside the fabric,
/// and no device has a network outside.
std::optional<LocalAddress> source_for(const Environment& environment,
                                       const SocketAddress& destination);
/// Returns whether it is a loopback address that no device has and that cannot belong to another
/// host over a network on the loopback interface.
bool is_loopback_of_nobody(const Environment& environment, const SocketAddress& address);
std::optional<LocalAddress> first_address(const Environment& environment, Family family);

const wire::IpAddress& address_of(const Environment& environment, const LocalAddress& local);

}  // namespace rocemu::engine::cm
