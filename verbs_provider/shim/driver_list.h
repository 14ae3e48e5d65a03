// Makes libibverbs find rocemu's provider.
#pragma once

namespace rocemu::shim {

/// Puts the provider beside this library first in IBV_DRIVERS (and in RDMAV_DRIVERS, which has
/// precedence, if that is set); the user's entries follow it.
///
/// This is called when libibverbs starts its search for devices, just before it reads these
/// variables, and not when the library is loaded. Programs without RDMA therefore have no cost and
/// an unchanged environment, and programs that start a daemon late or clear their environment are
/// served as well.
void announce_provider();

}  // namespace rocemu::shim
