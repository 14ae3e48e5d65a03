// Accesses one client's memory by system calls: process_vm_readv/writev if the kernel permits it
// (one call for many ranges), else the client's own /proc/self/mem, which also works across pid
// namespaces and for processes that are not dumpable.
//
// The mem file ignores page protection: a write to a read-only page of the client, which
// process_vm_writev refuses, succeeds (on a private copy of the page). The write of a NIC would
// succeed, too, since a NIC has pinned the page and does not notice mprotect(2).
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <span>
#include <vector>

#include "emulator/engine/base/host_memory.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class MemoryReach {
 public:
  enum class Way { kNone, kProcessVm, kMemFile };
  /// Buffers for copying, which only one thread may use at a time
  struct Scratch {
    std::vector<iovec> local, remote;
  };

  /// Chooses the method of access. `mem_file` is the client's /proc/self/mem, or empty.
  /// `prefer_mem_file` is for tests.
  MemoryReach(pid_t pid, UniqueFd mem_file, bool prefer_mem_file);

  Way way() const { return way_; }
  /// Returns a copy for another thread. way() of the copy is kNone if no file descriptor is left.
  MemoryReach duplicate() const;

  engine::MemoryResult read(std::span<const engine::RemoteRange> from,
                            std::span<const std::span<uint8_t>> to, Scratch& scratch) const;
  engine::MemoryResult write(std::span<const engine::RemoteRange> to,
                             std::span<const std::span<const uint8_t>> from,
                             Scratch& scratch) const;

  /// Writes as if the pages were pinned: also to pages that have become read-only, while bytes for
  /// unmapped pages are dropped. Takes a system call for each page. Returns kDone, or kGone if the
  /// process has ended.
  engine::MemoryResult write_pinned(std::span<const engine::RemoteRange> to,
                                    std::span<const std::span<const uint8_t>> from) const;

 private:
  MemoryReach(Way way, pid_t pid, UniqueFd mem_file);

  /// Returns whether the process has executed another program (execve(2)), whose memory must not be
  /// accessed. Looks only after every kBytesPerLook bytes. `address` is any address of the process.
  bool has_executed(uint64_t bytes, uint64_t address) const;

  template <class Bytes>
  engine::MemoryResult copy(std::span<const engine::RemoteRange> remote,
                            std::span<const std::span<Bytes>> local, Scratch& scratch) const;
  /// Copies by process_vm_readv or process_vm_writev. Returns kGone if there is no process or its
  /// main thread has ended.
  template <class Bytes>
  engine::MemoryResult copy_between_processes(std::span<const engine::RemoteRange> remote,
                                              std::span<const std::span<Bytes>> local,
                                              Scratch& scratch) const;
  template <class Bytes>
  engine::MemoryResult copy_through_file(std::span<const engine::RemoteRange> remote,
                                         std::span<const std::span<Bytes>> local) const;

  Way way_ = Way::kNone;
  pid_t pid_;
  UniqueFd mem_file_;  // refers to the memory of the program that opened it
  mutable uint64_t bytes_since_look_ = 0;
  mutable bool has_executed_ = false;
};

}  // namespace rocemu::daemon
