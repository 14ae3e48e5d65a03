#include "emulator/engine/completion_queue.h"

namespace rocemu::engine {

bool CompletionQueue::add(bool qualifies) {
  ++produced_;
  if (qualifies) last_solicited_ = produced_;
  if (armed_ != Notify::kAny && (armed_ != Notify::kSolicited || !qualifies)) return false;
  ++moderated_;
  if (moderation.period != Duration::zero() && moderated_ < moderation.count) return false;
  disarm();
  return true;
}

void CompletionQueue::disarm() {
  armed_ = Notify::kNone;  // one shot: ibv_req_notify_cq(3)
  moderated_ = 0;
  event_deadline.reset();
}

bool CompletionQueue::consume(uint32_t count) {
  if (count - consumed_ > waiting()) return false;
  consumed_ = count;
  return true;
}

CompletionQueue::ArmResult CompletionQueue::arm(uint32_t seen, bool solicited_only) {
  // How many were added since. Nobody is 2^31 behind: more than that is a `seen` in the future.
  const uint32_t unseen = produced() - seen;
  if (unseen > INT32_MAX || unseen > produced_) return ArmResult::kImpossible;
  if ((solicited_only ? last_solicited_ : produced_) > produced_ - unseen) {
    disarm();
    return ArmResult::kEventDue;
  }
  // IBTA vol 1, 11.4.2.2: a request for the next completion replaces one for the next solicited
  // completion; the other way round the wider one stands.
  if (armed_ != Notify::kAny) armed_ = solicited_only ? Notify::kSolicited : Notify::kAny;
  return ArmResult::kArmed;
}

}  // namespace rocemu::engine
