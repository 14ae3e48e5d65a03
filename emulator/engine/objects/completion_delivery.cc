#include "emulator/engine/objects/completion_delivery.h"

namespace rocemu::engine {

bool CompletionDelivery::deliver(CqId id, const abi::Cqe& cqe, bool solicits) {
  CompletionQueue* cq = cqs_.find(id);
  if (cq == nullptr || cq->failed) return true;
  if (cq->full()) {
    // What the client has taken meanwhile is asked for at the last moment, and only then.
    if (!cq->consume(host_memory_.completions_taken(cq->client, id))) {
      violation(cq->client, "took more completions than there were");
      return true;
    }
    if (cq->full()) return false;
  }
  abi::Cqe stamped = cqe;
  stamped.timestamp_ns = nanoseconds_since_start(step_.now());
  step_.emit(Completion{cq->client, id, stamped});
  if (cq->add(solicits)) {
    notify(*cq);
  } else {
    limit_wait(*cq);
  }
  return true;
}

void CompletionDelivery::arm(const ArmCq& input) {
  CompletionQueue* cq = cqs_.find(input.cq);
  if (cq == nullptr || cq->client != input.client) {
    return violation(input.client, "arm doorbell for a CQ not its own");
  }
  switch (cq->arm(input.producer, input.solicited_only)) {
    case CompletionQueue::ArmResult::kArmed:
      return limit_wait(*cq);
    case CompletionQueue::ArmResult::kAnswered:
      return;
    case CompletionQueue::ArmResult::kEventDue:
      return notify(*cq);
    case CompletionQueue::ArmResult::kImpossible:
      return violation(input.client, "armed a CQ behind completions that are not there");
  }
}

void CompletionDelivery::moderate(CompletionQueue& cq, const Moderation& moderation) {
  if (cq.moderate(moderation)) notify(cq);
}

void CompletionDelivery::release_events() {
  for (auto at = next_event(); at && *at <= step_.now(); at = next_event()) {
    CompletionQueue& cq = *cqs_.find(waiting_.begin()->second);
    cq.disarm();
    notify(cq);
  }
}

std::optional<Instant> CompletionDelivery::next_event() {
  while (!waiting_.empty()) {
    const auto& [at, id] = *waiting_.begin();
    const CompletionQueue* cq = cqs_.find(id);
    if (cq != nullptr && cq->event_deadline == at) return at;
    waiting_.erase(waiting_.begin());
  }
  return std::nullopt;
}

void CompletionDelivery::notify(const CompletionQueue& cq) {
  if (cq.channel.value == 0) return;
  step_.emit(CompletionEvent{cq.client, cq.id, cq.channel, cq.user_handle});
}

void CompletionDelivery::limit_wait(CompletionQueue& cq) {
  if (!cq.event_waits() || cq.event_deadline) return;
  cq.event_deadline = step_.now() + cq.moderation.period;
  waiting_.emplace(*cq.event_deadline, cq.id);
}

void CompletionDelivery::violation(ClientId client, const char* reason) {
  step_.emit(ClientViolation{client, reason});
}

}  // namespace rocemu::engine
