// The socket that stands for a netlink socket of the RDMA subsystem, recognised as devices are.
#pragma once

namespace rocemu::shim {

/// socket(AF_NETLINK, type, NETLINK_RDMA) of the daemon that owns the runtime directory `dir`: a
/// descriptor, or a negative errno value.
int open_rdma_netlink(const char* dir, int type);

/// Whether the descriptor is such a socket.
bool is_rdma_netlink(int fd);

/// Whether this process image has opened one. Until then nobody need ask.
bool has_seen_rdma_netlink();

}  // namespace rocemu::shim
