// Descriptors that a client has sent: any operation on one may block on another process. close(2)
// waits for the peer of a TCP socket with SO_LINGER, and for the server of a file system in user
// space (FUSE), which may be the client; fstat(2) and fstatfs(2) wait for that server as well.
#pragma once

#include <vector>

#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

/// Keeps those of the kinds that messages have: Unix-domain sockets, memory files, files of procfs.
/// In the place of any other, which another thread closes, there is none then. A file of the procfs
/// of another pid namespace, which takes some milliseconds at most to recognise, is kept only if
/// `memory` is true: a hello has one, the memory of its process.
void set_foreign_aside(std::vector<UniqueFd>& fds, bool memory);

}  // namespace rocemu::daemon
