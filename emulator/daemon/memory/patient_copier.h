// Copies to and from the memory of a client that may have to provide it first (userfaultfd(2), a
// mapped file of a file system in user space): a system call that reaches such a page sleeps until
// it does, for ever perhaps, and only a signal that kills ends that. So a thread of its own makes
// the call, for which others wait a moment only.
//
// What is to be written is copied first, so that a late call has what it needs. Until it has
// returned nothing else of that client is touched: what it writes late is older than all that is
// written afterwards.
#pragma once

#include <memory>

#include "emulator/daemon/memory/memory_reach.h"
#include "emulator/daemon/memory/wait_allowance.h"

namespace rocemu::daemon {

class PatientCopier {
 public:
  /// Signals the return of a late call by `returned`, an eventfd. `allowance` is that of the
  /// program, which may have several copiers. Null if there is no thread or descriptor left.
  static std::unique_ptr<PatientCopier> start(const MemoryReach& reach, int returned,
                                              std::shared_ptr<WaitAllowance> allowance);
  /// The thread ends by itself, when its call has returned.
  ~PatientCopier();

  /// Returns MemoryResult::kNotYet if the call takes longer than the allowance, or if the previous
  /// call has not returned yet.
  engine::MemoryResult read(std::span<const engine::RemoteRange> from,
                            std::span<const std::span<uint8_t>> to);
  engine::MemoryResult write(std::span<const engine::RemoteRange> to,
                             std::span<const std::span<const uint8_t>> from);
  /// A late call has not returned.
  bool is_busy() const;

 private:
  struct Shared;
  PatientCopier(std::shared_ptr<Shared> shared, std::shared_ptr<WaitAllowance> allowance);

  engine::MemoryResult run();

  std::shared_ptr<Shared> shared_;
  std::shared_ptr<WaitAllowance> allowance_;
};

}  // namespace rocemu::daemon
