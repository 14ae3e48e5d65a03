// The behavior of ibv_poll_cq(3) and ibv_start_poll when they find nothing: they let other threads
// run, since the daemon may need this processor to produce a completion. They never do so for long,
// because the application may have other things to poll, or hold a lock.
#pragma once

#include <cstdint>

#include "verbs_provider/polling/wait_policy.h"
#include "verbs_provider/structs/cq.h"

namespace rocemu::provider {

/// Returns the waiting policy of the calling thread.
WaitPolicy& wait_policy();

/// Notes that the calling thread polls the CQ, whatever it finds. The caller must hold the CQ's
/// lock.
void note_poll(Cq* cq);
/// Notes that the calling thread's poll of the CQ found a completion.
void note_completion(const Cq* cq);

class EmptyPoll {
 public:
  /// Describes an empty poll. The caller must hold the CQ's lock.
  explicit EmptyPoll(Cq* cq);

  /// Waits as long as the policy permits. The caller must not hold the lock. Returns false if the
  /// daemon has ended, which every 1,000th empty poll checks.
  bool wait(ibv_context* context);

 private:
  /// Makes wait() sleep for at most `at_most_ns`, and shows the daemon the producer index of the
  /// CQ, `completions`, at which it must wake the thread.
  void sleep_until(uint32_t completions, int64_t at_most_ns);
  void sleep_while_watched(uint32_t completions);
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
