// What a poll does that finds nothing, of ibv_poll_cq(3) and of ibv_start_poll: it lets others run,
// since the daemon may need this processor to make something come. Never for long: the application
// may have other things to look at.
#pragma once

#include <cstdint>

#include "verbs_provider/objects/cq.h"
#include "verbs_provider/polling/wait_policy.h"

namespace rocemu::provider {

/// The calling thread's.
WaitPolicy& wait_policy();

/// The calling thread looks at that CQ, whatever it finds.
void note_poll(const Cq* cq);
/// It found something there.
void note_completion(const Cq* cq);

class EmptyPoll {
 public:
  /// Under the CQ's lock.
  explicit EmptyPoll(Cq* cq);

  /// Without the lock. False if the daemon is gone, which is asked every so many polls in a row.
  bool wait(ibv_context* context);

 private:
  /// Says so to the daemon.
  void sleep_until(uint32_t completions, int64_t at_most_ns);
  void sleep() const;

  Cq* cq_;
  uint32_t seen_;
  uint32_t polls_;
  bool waits_ = true;                // else the thread goes on to another CQ, or blocks, at once
  bool blocks_soon_ = false;         // for an event
  const void* sleeps_on_ = nullptr;  // a futex; else it yields or spins
  int64_t at_most_ns_ = 0;
};

}  // namespace rocemu::provider
