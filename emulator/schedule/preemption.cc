#include "emulator/schedule/preemption.h"

#include "emulator/schedule/mixed.h"

namespace rocemu::schedule {
namespace {

constexpr PreemptionConstants kConstants = kPreemptionConstants;
constexpr uint64_t kOfCalls = 1, kOfDelay = 2, kOfInterval = 3;

}  // namespace

Preemption::Preemption(uint64_t schedule)
    : schedule_(schedule),
      interval_(2U << (mixed(mixed(schedule) ^ kOfInterval) % kConstants.intervals)) {}

uint64_t Preemption::draw(const Thread& thread, uint64_t kind) const {
  return mixed(mixed(mixed(mixed(schedule_) ^ kind) ^ thread.serial) ^ thread.preemptions);
}

uint32_t Preemption::calls_for(const Thread& thread) const {
  if (schedule_ == 0) return 0;
  if (thread.calls_left != 0) return thread.calls_left;
  return 1 + static_cast<uint32_t>(draw(thread, kOfCalls) % (2 * interval_ - 1));
}

Instant Preemption::ends(const Thread& thread) const {
  const uint64_t drawn = draw(thread, kOfDelay) % (kConstants.delays + 1);
  const Duration delay =
      drawn == 0 ? Duration{} : kConstants.least_delay * (int64_t{1} << (drawn - 1));
  return *thread.preempted_at + delay;
}

}  // namespace rocemu::schedule
