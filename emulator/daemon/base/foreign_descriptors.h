// Protects the daemon from descriptors that clients send: any operation on such a descriptor can
// block until another process acts. close(2) waits for the peer of a TCP socket with SO_LINGER, and
// for the server of a file system in user space (FUSE), which can be the client. fstat(2) and
// fstatfs(2) also wait for such a server.
#pragma once

#include <vector>

#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

/// Keeps the descriptors of the kinds that messages have: Unix-domain sockets, memory files and
/// files of procfs. Makes every other element of `fds` empty, and closes its descriptor in another
/// thread. If `memory` is true, also keeps one file of the procfs of another pid namespace, which
/// takes a few milliseconds to recognize: a hello has one for the memory of its process.
void set_foreign_aside(std::vector<UniqueFd>& fds, bool memory);

}  // namespace rocemu::daemon
