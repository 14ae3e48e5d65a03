// Connections to the daemon's sockets.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

namespace rocemu::shim {

/// A SOCK_SEQPACKET connection to the listener at `path`, with SOCK_CLOEXEC and SOCK_NONBLOCK of
/// `type_flags`; or a negative errno value.
long connect_to_daemon(const char* path, int type_flags);

struct PeerName {
  char path[sizeof(sockaddr_un::sun_path) + 1];  // terminated
};

/// The name of the listener that `fd` is connected to; false if it is no such socket.
bool peer_of_fd(int fd, PeerName* peer);

}  // namespace rocemu::shim
