// Descriptors from clients: any operation on such a descriptor can block until another process
// acts. close(2) waits for the peer of a TCP socket with SO_LINGER, and for the server of a file
// system in user space (FUSE), which can be the client; fstat(2) and fstatfs(2) wait for that
// server as well.
#pragma once

#include <vector>

#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

/// Keeps the descriptors of the kinds that messages have: Unix-domain sockets, memory files, files
/// of procfs. Every other descriptor is replaced by an empty one, and another thread closes it. A
/// file of the procfs of another pid namespace, which takes a few milliseconds to recognize, is
/// kept only if `memory` is true: a hello has one, for the memory of its process.
void set_foreign_aside(std::vector<UniqueFd>& fds, bool memory);

}  // namespace rocemu::daemon
