#include "emulator/schedule/priority_order.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "emulator/schedule/mixed.h"

namespace rocemu::schedule {
namespace {

constexpr PctConstants kPct = kPctConstants;
constexpr uint64_t kOfPriority = 1, kOfChange = 2, kOfLowered = 3, kOfPhase = 4, kOfStop = 5;
constexpr uint64_t kNoStep = UINT64_MAX;
constexpr uint64_t kNic = 0;  // no thread has that serial
constexpr uint32_t kHighest = UINT32_MAX;

}  // namespace

PriorityOrder::PriorityOrder(ScheduleChoice choice)
    : choice_(std::move(choice)), stops_(choice_.stops.begin(), choice_.stops.end()) {
  if (choice_.number != 0 && !choice_.has_stops) {
    const uint64_t index = (choice_.number - 1) / 2;
    if (choice_.number % 2 != 0) {
      interval_ = PctConstants::kIntervals[index % std::size(PctConstants::kIntervals)];
    } else {
      depth_ = 1 + static_cast<uint32_t>(index % kPct.depths);
      window_ = PctConstants::kWindows[index / kPct.depths % std::size(PctConstants::kWindows)];
    }
  }
  nic_ = initial(kNic);
  change_ = next_change();
}

uint64_t PriorityOrder::draw(uint64_t kind, uint64_t number) const {
  return mixed(mixed(mixed(choice_.number) ^ kind) ^ number);
}

PriorityOrder::Priority PriorityOrder::initial(uint64_t serial) const {
  // In start order the NIC has the lowest priority, because it acts when all threads wait.
  if (choice_.number == 0) return {kHighest, serial == kNic ? 0 : ~serial, serial};
  return {kHighest, draw(kOfPriority, serial), serial};
}

/// Returns the priority after a change, which is lower than all priorities that were set by changes
/// in earlier windows. The order of changes in the same window is random, like in PCT, which gives
/// them the priorities 1, 2, 3 and so on in random order.
PriorityOrder::Priority PriorityOrder::lowered(uint64_t serial) const {
  const uint64_t changes = std::max(depth_ - 1, 1U);
  const auto level = static_cast<uint32_t>(kHighest - 1 - (lowerings_ - 1) / changes);
  return {level, draw(kOfLowered, lowerings_), serial};
}

/// Returns the first step after `steps_` at which priorities change. These steps are random in each
/// window. The first window is shortened by a random number of steps, so that any number of steps
/// can separate two changes.
uint64_t PriorityOrder::next_change() const {
  if (depth_ == 1) return kNoStep;
  const uint64_t phase = draw(kOfPhase, 0) % window_;
  uint64_t next = kNoStep;
  for (uint64_t window = (steps_ + phase) / window_; next == kNoStep; ++window) {
    for (uint32_t i = 0; i + 1 < depth_; ++i) {
      const uint64_t at =
          window * window_ + draw(kOfChange, window * kPct.depths + i) % window_ + 1;
      if (at > steps_ + phase) next = std::min(next, at - phase);
    }
  }
  return next;
}

/// Draws the call after which the thread stops next. It is 1 to 2 * interval - 1 calls away.
void PriorityOrder::draw_stop(uint64_t serial, ThreadState& state) const {
  if (interval_ == 0) return;
  const uint64_t drawn = mixed(draw(kOfStop, serial) ^ state.calls);
  state.next_stop = state.calls + 1 + drawn % (2 * uint64_t{interval_} - 1);
}

uint64_t PriorityOrder::calls_to_stop(uint64_t serial, const ThreadState& state) const {
  if (interval_ != 0) return state.next_stop - state.calls;
  const auto stop = stops_.upper_bound({serial, state.calls});
  return stop != stops_.end() && stop->thread == serial ? stop->call - state.calls : kNoStep;
}

bool PriorityOrder::stops_now(uint64_t serial, const ThreadState& state) const {
  return interval_ != 0 ? state.calls == state.next_stop : stops_.contains({serial, state.calls});
}

bool PriorityOrder::count(uint64_t steps) {
  steps_ += steps;
  if (steps_ < change_) return false;
  change_ = next_change();
  ++lowerings_;
  return true;
}

bool PriorityOrder::see(std::span<const Thread> threads, Instant now) {
  now_ = now;
  bool has_new = false;
  for (const Thread& thread : threads) {
    const auto [state, is_new] = threads_.try_emplace(
        thread.serial, ThreadState{.priority = initial(thread.serial), .since = now});
    if (is_new) draw_stop(thread.serial, state->second);
    has_new |= is_new;
  }
  return has_new;
}

void PriorityOrder::happened() {
  for (auto& [serial, state] : threads_)
    if (std::exchange(state.has_looked, false)) state.since = now_;
}

bool PriorityOrder::may_look(const Thread& thread) const {
  const auto found = threads_.find(thread.serial);
  return thread.polling || found == threads_.end() || !found->second.has_looked;
}

bool PriorityOrder::is_before(const Thread& one, const Thread& other) const {
  return threads_.at(one.serial).priority > threads_.at(other.serial).priority;
}

bool PriorityOrder::is_behind_nic(const Thread& thread) const {
  return threads_.at(thread.serial).priority < nic_;
}

/// Holds a thread back if it has a lower priority than the NIC or than a polling thread, so that
/// the NIC or that thread acts first. Holds a stopped thread back until all other threads have
/// acted, too. Ignores events that are due too late for `patience`.
Instant PriorityOrder::held_until(const Thread& thread, const Due& due) const {
  const auto found = threads_.find(thread.serial);
  if (found == threads_.end()) return Instant::min();
  const ThreadState& state = found->second;
  const Instant until = state.since + kPct.patience;
  if (until <= due.now) return Instant::min();
  Instant next = state.priority < nic_ ? due.device : kNever;
  // A thread that has not polled since the latest event polls when the time for its earlier polls
  // is over.
  for (const Thread& other : due.threads) {
    if (!other.polling || other.serial == thread.serial || !threads_.contains(other.serial))
      continue;
    const ThreadState& its = threads_.at(other.serial);
    if (!its.has_looked && its.priority > state.priority && other.polling->ready_at > due.now)
      next = std::min(next, other.polling->ready_at);
  }
  if (state.is_stopped) {
    next = std::min(next, due.timers);
    for (const Thread& other : due.threads)
      if (other.deadline > due.now) next = std::min(next, other.deadline);
  }
  return next <= until ? until : Instant::min();
}

bool PriorityOrder::could_another_run(const Thread& thread, std::span<const Thread> threads) const {
  return std::ranges::any_of(threads, [&](const Thread& other) {
    return other.serial != thread.serial && !other.polling && may_look(other);
  });
}

/// Makes a thread return its turn after each call if another thread or the NIC has a higher
/// priority, since that one may wait for the call. In a schedule with stops, a thread runs until it
/// waits or reaches its next stop.
uint32_t PriorityOrder::calls_for(const Thread& thread, std::span<const Thread> threads,
                                  bool is_quiet) const {
  const ThreadState& state = threads_.at(thread.serial);
  uint64_t calls = kPct.most_steps;
  if (has_stops()) {
    calls = std::min(calls, calls_to_stop(thread.serial, state));
  } else {
    const auto is_above = [&](const Thread& other) {
      return !other.polling && is_before(other, thread);
    };
    const bool is_below = is_behind_nic(thread) || std::ranges::any_of(threads, is_above);
    calls = is_below && !is_quiet ? 1 : std::min(calls, change_ - steps_);
  }
  return static_cast<uint32_t>(calls);
}

bool PriorityOrder::turn_ended(uint64_t serial, const Turn& turn) {
  ThreadState& state = threads_.at(serial);
  state.calls += turn.calls;
  if (turn.progressed) ++acts_;
  state.is_stopped = false;
  state.is_preempted = turn.is_preempted;
  state.acts = acts_;
  // A thread that made progress polls once more, since an answer may have arrived. The first poll
  // of a place counts as progress, so the thread continues at the same instant.
  state.has_looked = !turn.is_preempted && !turn.progressed;
  state.since = now_;
  steps_at_instant_ += std::max(turn.calls, 1U);
  bool is_lowered = count(turn.calls) && !has_stops();
  const bool is_busy = turn.progressed && steps_at_instant_ >= kPct.most_steps;
  if (is_busy) {
    steps_at_instant_ = 0;
    ++lowerings_;
  }
  if (turn.is_preempted && stops_now(serial, state)) {
    is_lowered = true;
    ++lowerings_;
    draw_stop(serial, state);
  }
  is_lowered |= is_busy;
  // A stop lasts until the thread's next turn; a change of priority is permanent.
  if (has_stops()) state.priority = initial(serial);
  if (is_lowered) {
    state.priority = lowered(serial);
    state.is_stopped = turn.is_preempted;
  }
  return !is_busy;
}

uint64_t PriorityOrder::stopped_after(const Thread& thread) const {
  const ThreadState& state = threads_.at(thread.serial);
  return state.is_preempted && state.acts != acts_ ? state.calls : 0;
}

void PriorityOrder::nic_acted() {
  ++acts_;
  if (count(1)) nic_ = lowered(kNic);
}

}  // namespace rocemu::schedule
