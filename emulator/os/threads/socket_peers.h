// Finds the sockets on this machine that are the peers of a process's sockets.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace rocemu {

/// Returns the inodes of the peers of all Unix sockets of this network namespace (sock_diag(7)).
std::map<uint64_t, uint64_t> peers_of_unix_sockets();

/// Returns the inode of the TCP peer: the socket whose local and remote addresses are this socket's
/// remote and local addresses.
std::optional<uint64_t> peer_of_tcp_socket(pid_t process, uint64_t inode);

/// Returns what a process's socket without a peer waits for: "a connection", "a datagram" or "the
/// acceptance of its connection". Empty if it waits for something else.
std::string awaited_peer(pid_t process, uint64_t inode);

}  // namespace rocemu
