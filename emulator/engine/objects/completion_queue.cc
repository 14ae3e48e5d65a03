#include "emulator/engine/objects/completion_queue.h"

#include <algorithm>
#include <bit>

namespace rocemu::engine {

bool CompletionQueue::add(bool qualifies) {
  ++produced_;
  solicited_ = solicited_ << 1 | (qualifies ? 1 : 0);
  if (qualifies) last_solicited_ = produced_;
  if (armed_ != Notify::kAny && (armed_ != Notify::kSolicited || !qualifies)) return false;
  if (++moderated_ < completions_per_event()) return false;
  answer(produced_);
  return true;
}

bool CompletionQueue::moderate(const Moderation& by) {
  moderation = by;
  if (!event_waits() || moderated_ < completions_per_event()) return false;
  answer(produced_);
  return true;
}

uint32_t CompletionQueue::completions_per_event() const {
  return moderation.period == Duration::zero() ? 1 : std::max(moderation.count, 1u);
}

uint32_t CompletionQueue::solicited_among(uint32_t count) const {
  const uint64_t latest = count < 64 ? (uint64_t{1} << count) - 1 : UINT64_MAX;
  const auto known = static_cast<uint32_t>(std::popcount(solicited_ & latest));
  return known == 0 && last_solicited_ > produced_ - count ? 1 : known;
}

uint64_t CompletionQueue::find_solicited(uint32_t count, uint32_t n) const {
  for (uint32_t age = std::min(count, 64u); age-- > 0;) {
    if ((solicited_ >> age & 1) != 0 && --n == 0) return produced_ - age;
  }
  return last_solicited_;
}

void CompletionQueue::answer(uint64_t produced) {
  answered_ = produced;
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
  // The number of completions since the `seen`-th. No client is 2^31 completions behind: a larger
  // difference means that `seen` is in the future.
  const uint32_t unseen = produced() - seen;
  if (unseen > INT32_MAX || unseen > produced_) return ArmResult::kImpossible;
  // IBTA vol 1, 11.4.2.2: requests made before a completion count as one, so the event for that
  // completion also answered this request.
  const uint64_t seen_in_all = produced_ - unseen;
  if (seen_in_all < answered_) return ArmResult::kAnswered;
  // A request for the next completion of any kind replaces a request for the next solicited
  // completion. In the opposite case the earlier request is kept.
  if (armed_ != Notify::kAny) armed_ = solicited_only ? Notify::kSolicited : Notify::kAny;
  moderated_ = std::max(moderated_, solicited_only ? solicited_among(unseen) : unseen);
  const uint32_t needed = completions_per_event();
  if (moderated_ < needed) return ArmResult::kArmed;
  answer(solicited_only ? find_solicited(unseen, needed) : seen_in_all + needed);
  return ArmResult::kEventDue;
}

}  // namespace rocemu::engine
