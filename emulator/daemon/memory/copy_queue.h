// The direct copies (engine::HostMemory::begin_copy) of one client, which the client's own threads
// make while they poll (abi::CopyJobs). A client that does not poll makes none: then the daemon
// takes the jobs back, and asks the client less often from then on.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "emulator/abi/rings.h"
#include "emulator/engine/base/host_memory.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/time.h"

namespace rocemu::daemon {

class CopyQueue {
 public:
  /// `ring` is the client's doorbell ring, and `pid` its process.
  CopyQueue(abi::CopyJobs& jobs, const abi::DoorbellRing& ring, pid_t pid)
      : jobs_(jobs), ring_(ring), pid_(pid) {}

  /// Returns whether the client should be asked for another copy now. After it has failed to make
  /// one, the result is false for a number of calls.
  bool may_begin();
  /// Asks the client, which is the copy's maker, for the copy. `peer` is the queue of the other
  /// client. Returns false if there are too many copies or ranges.
  bool begin(const engine::DirectCopy& copy, const CopyQueue& peer);
  engine::CopyProgress progress(const engine::CopyKey& key) const;
  /// Forgets a copy that has ended, or all of them that are of the QP.
  void forget(const engine::CopyKey& key);
  void forget(engine::QpNumber qp);
  bool empty() const { return copies_.empty(); }
  bool is_any_under_way() const { return under_way_ != 0; }
  /// Returns whether there is a copy from or to the other client's memory.
  bool has_peer(engine::ClientId client) const;

  /// Notes which copies have ended. Takes back the jobs that no thread has taken in time. Returns
  /// whether any copy has ended.
  bool update(engine::Instant now);
  /// Ends all copies: takes back the jobs that no thread has taken, and waits for the one that a
  /// thread is making.
  void end();

 private:
  struct Copy {
    engine::CopyKey key;
    engine::ClientId peer;
    uint16_t number;                    // of the job
    const std::atomic<uint64_t>* mark;  // the peer's, which the job sets; null for a READ
    engine::CopyProgress progress = engine::CopyProgress::kUnderWay;
  };

  /// Returns the position of a member of the shared memory.
  uint64_t offset_in_jobs(const void* member) const {
    return reinterpret_cast<uintptr_t>(member) - reinterpret_cast<uintptr_t>(&jobs_);
  }
  abi::CopyJobs::State load() const;
  /// Changes the state as `change` does, unless `change` returns false. Returns the new state.
  template <class Change>
  abi::CopyJobs::State change(Change change);
  void note_ended(abi::CopyJobs::State state);
  /// Takes back the jobs that no thread has taken, and asks the client less often from now on.
  void take_back();
  /// Makes the job that a thread has taken copy nothing, unless the thread's system call has begun.
  /// If it has not begun or has returned, the job has ended. Returns false if it may still copy.
  bool give_up();
  bool is_outside_call(uint32_t thread);

  abi::CopyJobs& jobs_;
  const abi::DoorbellRing& ring_;
  pid_t pid_;
  std::deque<Copy> copies_;  // in the order of their jobs; ended ones until they are forgotten
  size_t under_way_ = 0;
  abi::CopyJobs::State seen_{};
  std::optional<engine::Instant> changed_;  // when update() first saw the present state
  std::optional<uint64_t> user_time_;       // of the thread, when give_up() first looked
  uint64_t marks_ = 0;                      // ever used
  uint32_t gave_up_ = 0;                    // jobs on which give_up() has given up
  bool may_ask_ = true;
  uint32_t pass_over_ = 0;    // the number of copies for which the client is not asked
  uint32_t passed_over_ = 0;  // those of them so far
};

}  // namespace rocemu::daemon
