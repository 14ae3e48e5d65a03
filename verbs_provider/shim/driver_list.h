// Tells libibverbs where our provider is.
#pragma once

namespace rocemu::shim {

/// Puts the provider beside this library first in IBV_DRIVERS (and in RDMAV_DRIVERS, which would
/// win, if that is set); what the user has there stays behind it.
///
/// Called when libibverbs begins to look for devices, which is before it reads these variables, and
/// not when the library is loaded: no program that has nothing to do with RDMA pays for it or finds
/// its environment changed, and one that starts its own daemon late or clears its environment is
/// served as well.
void announce_provider();

}  // namespace rocemu::shim
