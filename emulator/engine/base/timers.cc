#include "emulator/engine/base/timers.h"

#include <algorithm>
#include <functional>

namespace rocemu::engine {

void TimerQueue::set(QpNumber qp, TimerSet& timers, TimerKind kind, Instant at) {
  Timer& timer = timers[static_cast<size_t>(kind)];
  timer.deadline = at;
  if (timer.queued && *timer.queued <= at) return;  // the queued entry is early enough
  timer.queued = at;
  heap_.push_back({at, qp, kind});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

void TimerQueue::expire(const Entry& entry, TimerSet& timers) {
  timers[static_cast<size_t>(entry.kind)] = Timer{};
  pop();
}

void TimerQueue::pop() {
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
  heap_.pop_back();
}

}  // namespace rocemu::engine
