// Which address of which device of the fabric is an id's own.
#pragma once

#include <optional>

#include "emulator/engine/cm/environment.h"
#include "emulator/engine/rdmacm/rdma_id.h"

namespace rocemu::engine::cm {

std::optional<LocalAddress> local_address(const Environment& environment,
                                          const wire::IpAddress& address);
/// Returns the address most like the destination, of the first device if several are. An address of
/// the machine is thus its own source, but 127.0.0.0/8 has 127.0.0.1 for that, as in Linux's local
/// routes. Nothing: the destination is outside the fabric, and no device has a network beyond it.
std::optional<LocalAddress> source_for(const Environment& environment,
                                       const SocketAddress& destination);
/// True for a loopback address that neither a device has nor, over a network on the loopback
/// interface, somebody else.
bool is_loopback_of_nobody(const Environment& environment, const SocketAddress& address);
std::optional<LocalAddress> first_address(const Environment& environment, Family family);

const wire::IpAddress& address_of(const Environment& environment, const LocalAddress& local);

}  // namespace rocemu::engine::cm
