// Application memory as the engine reaches it: process_vm_readv/writev where the kernel permits it
// for a client (one call for many ranges), else the client's own /proc/self/mem, which works across
// pid namespaces and for processes that are not dumpable.
//
// What a client has lent is mapped here, and takes no system call (lent_memory.h).
//
// Two limits. The mem file ignores page protection: a write to a read-only page of the client,
// which process_vm_writev refuses, succeeds there (on a private copy of the page). It hurts only
// the client that registered the page as writable, so it is let through. And a page whose fault the
// client handles itself (userfaultfd, FUSE) makes the daemon wait for it.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <unordered_map>
#include <vector>

#include "emulator/daemon/lent_memory.h"
#include "emulator/engine/host_memory.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class ProcessMemory {
 public:
  enum class Way { kNone, kProcessVm, kMemFile };

  /// `mem_file` is the client's /proc/self/mem, or empty. Chooses the way; with kNone there is
  /// none, and the client is not added. `prefer_mem_file` is for tests.
  Way add(engine::ClientId client, pid_t pid, UniqueFd mem_file, bool prefer_mem_file = false);
  void remove(engine::ClientId client);

  /// See LentMemory.
  int lend(engine::ClientId client, const engine::RemoteRange& what, const UniqueFd& file);
  int take_back(engine::ClientId client, uint64_t address);

  engine::MemoryResult read(engine::ClientId client, std::span<const engine::RemoteRange> from,
                            std::span<const std::span<uint8_t>> to);
  engine::MemoryResult write(engine::ClientId client, std::span<const engine::RemoteRange> to,
                             std::span<const std::span<const uint8_t>> from);

 private:
  struct Client {
    Way way;
    pid_t pid;
    UniqueFd mem_file;
    LentMemory lent{};
  };

  template <class Bytes>
  engine::MemoryResult copy(engine::ClientId client, std::span<const engine::RemoteRange> remote,
                            std::span<const std::span<Bytes>> local);

  std::unordered_map<engine::ClientId, Client> clients_;
  std::vector<iovec> local_;  // of the system call at hand
  std::vector<iovec> remote_;
};

}  // namespace rocemu::daemon
