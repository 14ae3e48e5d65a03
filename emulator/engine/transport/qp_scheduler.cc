#include "emulator/engine/transport/qp_scheduler.h"

#include <algorithm>
#include <utility>

namespace rocemu::engine {

QueuePair* QpScheduler::take_quantum() {
  QueuePair* qp = qps_.find(quanta_.front());
  quanta_.pop_front();
  ++taken_;
  if (qp == nullptr || !qp->scheduled) return nullptr;
  qp->scheduled = false;
  return qp;
}

void QpScheduler::wait_for_memory(const QueuePair& qp) {
  if (std::ranges::find(waiting_for_memory_, qp.number) == waiting_for_memory_.end()) {
    waiting_for_memory_.push_back(qp.number);
  }
}

std::vector<QpNumber> QpScheduler::take_waiting_for_memory() {
  return std::exchange(waiting_for_memory_, {});
}

std::optional<TimerQueue::Entry> QpScheduler::next_timer() {
  return timers_.next([this](QpNumber number) {
    QueuePair* qp = qps_.find(number);
    return qp != nullptr ? &qp->timers : nullptr;
  });
}

QueuePair& QpScheduler::expire(const TimerQueue::Entry& entry) {
  QueuePair& qp = *qps_.find(entry.qp);
  timers_.expire(entry, qp.timers);
  return qp;
}

}  // namespace rocemu::engine
