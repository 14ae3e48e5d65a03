#include "emulator/engine/completion_queue.h"

namespace rocemu::engine {
namespace {

// Counts wrap at 2^32 and are never further apart than a CQ is large.
bool after(uint32_t a, uint32_t b) {
  return static_cast<int32_t>(a - b) > 0;
}

}  // namespace

bool CompletionQueue::add(bool qualifies) {
  ++produced_;
  if (qualifies) {
    last_solicited_ = produced_;
    any_solicited_ = true;
  }
  if (armed_ == Notify::kAny || (armed_ == Notify::kSolicited && qualifies)) {
    armed_ = Notify::kNone;  // one shot: ibv_req_notify_cq(3)
    return true;
  }
  return false;
}

bool CompletionQueue::consume(uint32_t count) {
  if (count - consumed_ > waiting()) return false;
  consumed_ = count;
  return true;
}

CompletionQueue::ArmResult CompletionQueue::arm(uint32_t seen, bool solicited_only) {
  if (after(seen, produced_)) return ArmResult::kImpossible;
  const bool due =
      solicited_only ? any_solicited_ && after(last_solicited_, seen) : after(produced_, seen);
  if (due) {
    armed_ = Notify::kNone;
    return ArmResult::kEventDue;
  }
  // IBTA vol 1, 11.4.2.2: a request for the next completion replaces one for the next solicited
  // completion; the other way round the wider one stands.
  if (armed_ != Notify::kAny) armed_ = solicited_only ? Notify::kSolicited : Notify::kAny;
  return ArmResult::kArmed;
}

}  // namespace rocemu::engine
