// The direct copies of all clients (engine::HostMemory::begin_copy, docs/design/direct-copy.md)
#pragma once

#include <sys/types.h>

#include <unordered_map>
#include <vector>

#include "emulator/abi/rings.h"
#include "emulator/daemon/memory/copy_queue.h"
#include "emulator/engine/base/host_memory.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/time.h"

namespace rocemu::daemon {

class DirectCopies {
 public:
  /// Adds a client, unless its process may not make copies or be their target. `jobs` and `ring`
  /// are shared with it.
  void add(engine::ClientId client, abi::CopyJobs& jobs, const abi::DoorbellRing& ring, pid_t pid);
  /// Ends the copies from and to the client, and removes it.
  void remove(engine::ClientId client);

  /// Implement HostMemory's functions of similar names.
  bool may_begin(engine::ClientId maker);
  bool begin(const engine::DirectCopy& copy);
  engine::CopyProgress progress(engine::ClientId maker, const engine::CopyKey& key) const;
  void forget(engine::ClientId maker, const engine::CopyKey& key);
  void forget(engine::ClientId maker, engine::QpNumber qp);
  void end();

  /// Ends the copies from and to the client's memory. Returns whether there were any.
  bool end_of(engine::ClientId client);
  /// Sets whether copies may begin. They begin only if they are not suspended either.
  void let_begin(bool may) { may_begin_ = may; }
  void suspend(bool suspends) { is_suspended_ = suspends; }
  bool empty() const { return copying_.empty(); }
  /// Returns whether update() must be called again soon.
  bool awaits_any() const;
  /// Notes which copies have ended. Returns whether any have, so that a MemoryReady input is due.
  bool update(engine::Instant now);

 private:
  CopyQueue* find(engine::ClientId client);
  const CopyQueue* find(engine::ClientId client) const;

  std::unordered_map<engine::ClientId, CopyQueue> queues_;
  std::vector<engine::ClientId> copying_;  // that have copies
  bool have_ended_ = false;                // some, and update() has not returned so yet
  bool may_begin_ = true, is_suspended_ = false;
};

}  // namespace rocemu::daemon
