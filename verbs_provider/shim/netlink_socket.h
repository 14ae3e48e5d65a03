// The socket that emulates a netlink socket of the RDMA subsystem. It is recognized in the same way
// as the sockets of devices.
#pragma once

namespace rocemu::shim {

/// Opens the equivalent of socket(AF_NETLINK, type, NETLINK_RDMA) at the daemon that owns the
/// runtime directory `dir`. Returns a descriptor, or a negative errno value.
int open_rdma_netlink(const char* dir, int type);

/// Returns whether the descriptor is a socket that emulates a netlink socket of RDMA.
bool is_rdma_netlink(int fd);

/// Returns whether this process image has opened a socket by open_rdma_netlink(). Until then
/// callers need not check.
bool has_seen_rdma_netlink();

}  // namespace rocemu::shim
