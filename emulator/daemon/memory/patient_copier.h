// Copies to and from the memory of a client that may have to provide its pages first
// (userfaultfd(2), or a mapped file of a file system in user space). A system call that accesses
// such a page sleeps until the page is provided, perhaps forever, and only a fatal signal ends it.
// Therefore a separate thread makes the call, and callers wait for it only for a moment.
//
// The data of a write is copied before the call, so that a late call still has it. Until a late
// call has returned, no other access to that client's memory is made, because its late write must
// precede all later writes.
#pragma once

#include <memory>

#include "emulator/daemon/memory/memory_reach.h"
#include "emulator/daemon/memory/wait_allowance.h"

namespace rocemu::daemon {

class PatientCopier {
 public:
  /// Starts a copier. `returned` is an eventfd, which is written when a late call returns.
  /// `allowance` belongs to the program, which may have several copiers. Returns null if no thread
  /// or descriptor is left.
  static std::unique_ptr<PatientCopier> start(const MemoryReach& reach, int returned,
                                              std::shared_ptr<WaitAllowance> allowance);
  /// Lets the thread end by itself when its current call has returned.
  ~PatientCopier();

  /// Copies data. Returns MemoryResult::kNotYet if the call takes longer than the allowance, or if
  /// the previous call has not returned yet.
  engine::MemoryResult read(std::span<const engine::RemoteRange> from,
                            std::span<const std::span<uint8_t>> to);
  engine::MemoryResult write(std::span<const engine::RemoteRange> to,
                             std::span<const std::span<const uint8_t>> from);
  /// Returns whether a late call has not returned yet.
  bool is_busy() const;

 private:
  struct Shared;
  PatientCopier(std::shared_ptr<Shared> shared, std::shared_ptr<WaitAllowance> allowance);

  engine::MemoryResult run();

  std::shared_ptr<Shared> shared_;
  std::shared_ptr<WaitAllowance> allowance_;
};

}  // namespace rocemu::daemon
