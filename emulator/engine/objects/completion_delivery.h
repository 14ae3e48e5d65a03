// Adds completions to CQs and sends the requested completion events (IBTA vol 1, 11.4.2;
// ibv_req_notify_cq(3), ibv_modify_cq(3)).
#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "emulator/engine/base/host_memory.h"
#include "emulator/engine/objects/async_events.h"
#include "emulator/engine/objects/completion_queue.h"
#include "emulator/engine/objects/objects.h"
#include "emulator/engine/step.h"

namespace rocemu::engine {

class CompletionDelivery {
 public:
  /// All arguments must outlive this object.
  CompletionDelivery(Objects& objects, HostMemory& host_memory, AsyncEvents& events, Step& step)
      : objects_(objects), host_memory_(host_memory), events_(events), step_(step) {}

  /// Adds the completion to the CQ, which overruns if it is full. `solicits` is the parameter
  /// `qualifies` of CompletionQueue::add. Does nothing if the CQ has failed or was destroyed.
  void deliver(CqId id, const abi::Cqe& cqe, bool solicits);
  /// Sets the object that decides which completions are delivered later. It must outlive this
  /// object.
  void set_hold(DeliveryHold* hold) { hold_ = hold; }
  /// Delivers a completion that the DeliveryHold held back until now.
  void deliver_now(CqId id, const abi::Cqe& cqe, bool solicits);
  void notify_now(CqId id);
  void overrun(CompletionQueue& cq);
  /// Removes and returns a CQ that overran; the caller must now fail its users
  /// (transport/failure.h). Returns nothing if there is no such CQ.
  std::optional<CqId> take_overrun();
  bool has_overrun() const { return !overrun_.empty(); }
  /// Implements ibv_req_notify_cq(3).
  void arm(const ArmCq& input);
  /// Implements ibv_modify_cq(3).
  void moderate(CompletionQueue& cq, const Moderation& moderation);

  /// Sends the events that have waited for more completions as long as they may.
  void release_events();
  /// Returns the time when the next waiting event is due, and forgets events that no longer wait.
  std::optional<Instant> next_event();
  /// Returns whether events may be waiting.
  bool has_events() const { return !waiting_.empty(); }

 private:
  void notify(const CompletionQueue& cq);
  /// Ensures that an event that waits for more completions is sent when its time is over.
  void limit_wait(CompletionQueue& cq);
  void violation(ClientId client, const char* reason);

  Objects& objects_;
  HostMemory& host_memory_;
  AsyncEvents& events_;
  Step& step_;
  DeliveryHold* hold_ = nullptr;
  std::vector<CqId> overrun_;
  std::set<std::pair<Instant, CqId>> waiting_;  // by CompletionQueue::event_deadline
};

}  // namespace rocemu::engine
