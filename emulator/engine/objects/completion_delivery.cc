#include "emulator/engine/objects/completion_delivery.h"

namespace rocemu::engine {

void CompletionDelivery::deliver(CqId id, const abi::Cqe& cqe, bool solicits) {
  if (hold_ != nullptr) [[unlikely]] {
    const CompletionQueue* cq = objects_.cqs.find(id);
    abi::Cqe shaped = cqe;
    hold_->shape(shaped);
    if (cq != nullptr && hold_->hold(*cq, shaped, solicits)) return;
    return deliver_now(id, shaped, solicits);
  }
  deliver_now(id, cqe, solicits);
}

void CompletionDelivery::deliver_now(CqId id, const abi::Cqe& cqe, bool solicits) {
  CompletionQueue* cq = objects_.cqs.find(id);
  if (cq == nullptr || cq->failed) return;
  if (cq->full()) {
    // The client's consumer index is read at the last moment, and only if the CQ seems full.
    if (!cq->consume(host_memory_.completions_taken(cq->client, id))) {
      return violation(cq->client, "took more completions than there were");
    }
    if (cq->full()) return overrun(*cq);
  }
  abi::Cqe stamped = cqe;
  stamped.timestamp_ns = nanoseconds_since_start(step_.now());
  step_.emit(Completion{cq->client, id, stamped});
  if (cq->add(solicits)) {
    notify(*cq);
  } else {
    limit_wait(*cq);
  }
}

// Implements ibv_poll_cq(3): "CQ overrun ... the async event IBV_EVENT_CQ_ERR will be triggered,
// and the CQ cannot be used". The QPs that use the CQ fail with it (IBTA vol 1, 11.6.3.1 and
// 10.2.6).
void CompletionDelivery::overrun(CompletionQueue& cq) {
  cq.failed = true;
  objects_.device_of(cq.client).counters.add(Counter::kCqOverruns);
  step_.emit(CqFailed{cq.client, cq.id});
  events_.raise(cq.client, abi::EventType::kCqErr, cq.user_handle);
  overrun_.push_back(cq.id);
}

std::optional<CqId> CompletionDelivery::take_overrun() {
  if (overrun_.empty()) return std::nullopt;
  const CqId id = overrun_.back();
  overrun_.pop_back();
  return id;
}

void CompletionDelivery::arm(const ArmCq& input) {
  CompletionQueue* cq = objects_.cqs.find(input.cq);
  if (cq == nullptr || cq->client != input.client) {
    return violation(input.client, "arm doorbell for a CQ of another client");
  }
  switch (cq->arm(input.producer, input.solicited_only)) {
    case CompletionQueue::ArmResult::kArmed:
      return limit_wait(*cq);
    case CompletionQueue::ArmResult::kAnswered:
      return;
    case CompletionQueue::ArmResult::kEventDue:
      return notify(*cq);
    case CompletionQueue::ArmResult::kImpossible:
      return violation(input.client, "armed a CQ after completions that do not exist");
  }
}

void CompletionDelivery::moderate(CompletionQueue& cq, const Moderation& moderation) {
  if (cq.moderate(moderation)) notify(cq);
}

void CompletionDelivery::release_events() {
  for (auto at = next_event(); at && *at <= step_.now(); at = next_event()) {
    CompletionQueue& cq = *objects_.cqs.find(waiting_.begin()->second);
    cq.disarm();
    notify(cq);
  }
}

std::optional<Instant> CompletionDelivery::next_event() {
  while (!waiting_.empty()) {
    const auto& [at, id] = *waiting_.begin();
    const CompletionQueue* cq = objects_.cqs.find(id);
    if (cq != nullptr && cq->event_deadline == at) return at;
    waiting_.erase(waiting_.begin());
  }
  return std::nullopt;
}

void CompletionDelivery::notify(const CompletionQueue& cq) {
  if (cq.channel.value == 0) return;
  if (hold_ != nullptr && hold_->hold_event(cq)) return;
  step_.emit(CompletionEvent{cq.client, cq.id, cq.channel, cq.user_handle});
}

void CompletionDelivery::notify_now(CqId id) {
  const CompletionQueue* cq = objects_.cqs.find(id);
  if (cq != nullptr) step_.emit(CompletionEvent{cq->client, id, cq->channel, cq->user_handle});
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
