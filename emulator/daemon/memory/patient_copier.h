// Copies to and from the memory of a client that may have to provide it first (userfaultfd(2), a
// mapped file of a file system in user space). A system call that accesses such a page sleeps until
// the page is provided, perhaps forever, and only a fatal signal ends it. A separate thread
// therefore makes the call, and callers wait for it only for a moment.
//
// Data to write is copied first, so that a late call still has it. Until a late call has returned,
// nothing else of that client is accessed: its late write is older than all later writes.
#pragma once

#include <memory>

#include "emulator/daemon/memory/memory_reach.h"
#include "emulator/daemon/memory/wait_allowance.h"

namespace rocemu::daemon {

class PatientCopier {
 public:
  /// `returned` is an eventfd that reports the return of a late call. `allowance` belongs to the
  /// program, which may have several copiers. Returns null if no thread or descriptor is left.
  static std::unique_ptr<PatientCopier> start(const MemoryReach& reach, int returned,
                                              std::shared_ptr<WaitAllowance> allowance);
  /// The thread ends by itself when its current call has returned.
  ~PatientCopier();

  /// Returns MemoryResult::kNotYet if the call takes longer than the allowance, or if the previous
  /// call has not returned yet.
  engine::MemoryResult read(std::span<const engine::RemoteRange> from,
                            std::span<const std::span<uint8_t>> to);
  engine::MemoryResult write(std::span<const engine::RemoteRange> to,
                             std::span<const std::span<const uint8_t>> from);
  /// Returns whether a late call has not returned.
  bool is_busy() const;

 private:
  struct Shared;
  PatientCopier(std::shared_ptr<Shared> shared, std::shared_ptr<WaitAllowance> allowance);

  engine::MemoryResult run();

  std::shared_ptr<Shared> shared_;
  std::shared_ptr<WaitAllowance> allowance_;
};

}  // namespace rocemu::daemon
