// The sockets at the other end of a process's sockets, on this machine
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace rocemu {

/// Returns the inodes of the peers of all Unix sockets of this network namespace (sock_diag(7)).
std::map<uint64_t, uint64_t> peers_of_unix_sockets();

/// Returns the inode of the socket whose addresses are those of this socket of the process,
/// swapped.
std::optional<uint64_t> peer_of_tcp_socket(pid_t process, uint64_t inode);

/// Returns what a process's socket without a peer waits for: "a connection", "a datagram" or "the
/// acceptance of its connection". Empty if it waits for something else.
std::string awaited_peer(pid_t process, uint64_t inode);

}  // namespace rocemu
