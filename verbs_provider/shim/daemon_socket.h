// Connections to the daemon's sockets.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

namespace rocemu::shim {

/// Returns a SOCK_SEQPACKET connection to the listener at `path`, with the SOCK_CLOEXEC and
/// SOCK_NONBLOCK of `type_flags`, or a negative errno value.
long connect_to_daemon(const char* path, int type_flags);

struct PeerName {
  char path[sizeof(sockaddr_un::sun_path) + 1];  // null-terminated
};

/// Stores the name of the listener to which `fd` is connected. Returns false if `fd` is not a
/// socket that is connected to a listener with a name.
bool peer_of_fd(int fd, PeerName* peer);

}  // namespace rocemu::shim
