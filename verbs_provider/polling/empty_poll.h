// What ibv_poll_cq(3) and ibv_start_poll do when they find nothing: they let others run, since the
// daemon may need this processor to make something come. Never for long: the application may have
// other things to look at, or hold a lock.
#pragma once

#include <cstdint>

#include "verbs_provider/polling/wait_policy.h"
#include "verbs_provider/structs/cq.h"

namespace rocemu::provider {

/// The calling thread's.
WaitPolicy& wait_policy();

/// The calling thread looks at that CQ, whatever it finds. Under the CQ's lock.
void note_poll(Cq* cq);
/// It found something there.
void note_completion(const Cq* cq);

class EmptyPoll {
 public:
  /// Under the CQ's lock.
  explicit EmptyPoll(Cq* cq);

  /// Without the lock. False if the daemon is gone, which every 1,000th empty poll asks.
  bool wait(ibv_context* context);

 private:
  /// Says so to the daemon.
  void sleep_until(uint32_t completions, int64_t at_most_ns);
  void sleep() const;

  Cq* cq_;
  uint32_t seen_;
  uint32_t polls_;
  WaitPolicy::Way way_ = WaitPolicy::Way::kPollOn;
  bool blocks_soon_ = false;         // for an event
  const void* sleeps_on_ = nullptr;  // a futex
  int64_t at_most_ns_ = 0;
};

}  // namespace rocemu::provider
