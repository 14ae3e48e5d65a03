// Schedules the QPs that have something to send, those that wait for the application's memory, and
// the timers of QPs.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "emulator/engine/base/owned_table.h"
#include "emulator/engine/base/timers.h"
#include "emulator/engine/objects/queue_pair.h"

namespace rocemu::engine {

class QpScheduler {
 public:
  using QueuePairs = OwnedTable<QpNumber, QueuePair>;

  explicit QpScheduler(QueuePairs& qps) : qps_(qps) {}

  /// Gives the QP a quantum to transmit, after all QPs that already have a quantum.
  void schedule(QueuePair& qp) {
    if (qp.scheduled) return;
    qp.scheduled = true;
    quanta_.push_back(qp.number);
    ++scheduled_;
  }
  bool has_quanta() const { return !quanta_.empty(); }
  /// Removes and returns the QP with the next quantum, which must exist. Returns nullptr if the QP
  /// was destroyed or silenced.
  QueuePair* take_quantum();
  /// Returns the number of quanta that were ever scheduled.
  uint64_t quanta_scheduled() const { return scheduled_; }
  uint64_t quanta_taken() const { return taken_; }

  /// Notes that the QP continues when memory that was MemoryResult::kNotYet may have been provided.
  void wait_for_memory(const QueuePair& qp);
  std::vector<QpNumber> take_waiting_for_memory();

  void set_timer(QueuePair& qp, TimerKind kind, Instant at) {
    timers_.set(qp.number, qp.timers, kind, at);
  }
  std::optional<TimerQueue::Entry> next_timer();
  /// Removes the entry that next_timer() returned. Returns its QP.
  QueuePair& expire(const TimerQueue::Entry& entry);

 private:
  QueuePairs& qps_;
  std::deque<QpNumber> quanta_;
  uint64_t scheduled_ = 0, taken_ = 0;
  std::vector<QpNumber> waiting_for_memory_;
  TimerQueue timers_;
};

}  // namespace rocemu::engine
