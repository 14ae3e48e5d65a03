// Chooses the local address of an id among the addresses of the fabric's devices
#pragma once

#include <optional>

#include "emulator/engine/cm/environment.h"
#include "emulator/engine/rdmacm/rdma_id.h"

namespace rocemu::engine::cm {

std::optional<LocalAddress> local_address(const Environment& environment,
                                          const wire::IpAddress& address);
/// Returns the local address that is most similar to the destination; if several are, that of the
/// first device. The source for an address of the machine is thus that address itself, except that
/// the source for 127.0.0.0/8 is 127.0.0.1, as in Linux's local routes. Returns nothing if the
/// destination is outside the fabric and no device has a network outside.
std::optional<LocalAddress> source_for(const Environment& environment,
                                       const SocketAddress& destination);
/// Returns whether this is a loopback address that no device has, and that no other host on a
/// network over the loopback interface can have.
bool is_loopback_of_nobody(const Environment& environment, const SocketAddress& address);
std::optional<LocalAddress> first_address(const Environment& environment, Family family);

const wire::IpAddress& address_of(const Environment& environment, const LocalAddress& local);

}  // namespace rocemu::engine::cm
