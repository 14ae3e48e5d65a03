// What a poll does that finds nothing, of ibv_poll_cq(3) and of ibv_start_poll.
#pragma once

#include <cstdint>

#include "verbs_provider/objects/cq.h"

namespace rocemu::provider {

/// What a look at a CQ found.
struct Look {
  uint64_t produced;          // as Cq::produced()
  uint32_t to_sleep_for = 0;  // completions, of which a thread that is far ahead needs no earlier
};

/// After a short wait for a completion if none is there: to give way takes as long, and a short
/// message may arrive meanwhile. Not for a thread that looks at many CQs in turn and would wait for
/// each, nor while the daemon waits for this processor, nor for one that has posted far ahead
/// (backlog.h). Under the CQ's lock.
Look await_completion(Cq* cq);

/// Nothing came. The daemon may need this processor to make something come. Where other threads
/// want it too, a yielding thread waits for the time slices of all of them, but a woken one runs at
/// once: after a long yield the next polls sleep until the daemon adds a completion. A thread that
/// has posted far ahead sleeps too. Never for long: the application may have other things to look
/// at.
class EmptyPoll {
 public:
  /// Under the CQ's lock.
  EmptyPoll(Cq* cq, const Look& look);

  /// Without the lock. False if the daemon is gone, which is asked every so many polls in a row.
  bool wait(ibv_context* context);

 private:
  void sleep() const;
  void yield();

  Cq* cq_;
  uint32_t seen_;
  uint32_t polls_;
  const void* sleeps_on_ = nullptr;  // a futex; else it yields
  bool is_away_ = false;             // until there are many
};

}  // namespace rocemu::provider
