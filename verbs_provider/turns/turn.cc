#include "verbs_provider/turns/turn.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>

#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emulator/abi/turn_handshake.h"
#include "verbs_provider/system/kernel.h"
#include "verbs_provider/turns/cycle_counter.h"
#include "verbs_provider/turns/fault_action.h"
#include "verbs_provider/turns/forks.h"
#include "verbs_provider/turns/held_files.h"
#include "verbs_provider/turns/signal_mask.h"
#include "verbs_provider/turns/turn_spin.h"

namespace rocemu::turns {
namespace {

using abi::ThreadSlot;

/// The interval at which a waiting thread checks that the daemon still exists. A daemon that ends
/// normally wakes the threads.
constexpr long kLookNs = 100'000'000;
/// Further clock readings in one turn wait for time to pass: kMaxClockReads of them cost as much as
/// kPollsOfClockReads polls (schedule::PollConstants::of_clock_reads).
constexpr uint32_t kMaxClockReads = 256, kPollsOfClockReads = 20;
/// If a thread has made more polls than this in its turn and then reads a clock, the clock shows
/// the time that the polls took.
constexpr uint32_t kPollsBetweenClocks = 32;
/// The number of places that are remembered for the empty polls of one turn.
constexpr uint32_t kMaxPollKeys = 32;
/// The number of sets of places among which a thread can alternate, with one set for each turn.
constexpr uint32_t kMaxLooks = 8;

std::atomic<bool> has_left{false};
/// Not 0 in the process that joined the run; zero in a child of a fork that ran none of our
/// handlers (madvise(2), MADV_WIPEONFORK).
uint32_t* same_process = nullptr;
/// The sets of places that a thread has polled in its latest turns.
struct LatestLooks {
  uint64_t pattern[kMaxLooks];
  uint32_t next;

  bool contain(uint64_t wanted) const {
    for (const uint64_t one : pattern)
      if (one == wanted) return true;
    return false;
  }
  void add(uint64_t one) { pattern[next++ % kMaxLooks] = one; }
  void forget() {
    for (uint64_t& one : pattern) one = 0;
  }
};

struct Self {
  ThreadSlot* slot;
  uint32_t keys;
  uint32_t clock_reads;
  uint32_t polls;    // in this turn
  uint32_t granted;  // number of polls
  uint32_t streak;   // empty polls in earlier turns since the last success
  uint64_t key[kMaxPollKeys];
  uint64_t pattern;  // of the places of this turn
  uint64_t last_pattern;
  LatestLooks before_polls, before_locks;  // of turns that ended in this way
  TurnSpin spin;
};
__attribute__((tls_model("initial-exec"))) thread_local Self self{};

pthread_key_t end_key;

uint64_t mix(uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccd;
  value ^= value >> 33;
  return value;
}

/// A thread that waits for its turn has all signals blocked. Their handlers run at the beginning of
/// the turn, and therefore at a defined time.
class BlockedSignals {
 public:
  BlockedSignals() {
    const uint64_t all = ~uint64_t{0};
    kernel(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask_, kSignalMaskSize);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  /// Runs the handlers of pending signals. Returns whether there were any.
  bool let_come() const {
    uint64_t pending = 0;
    kernel(SYS_rt_sigpending, &pending, kSignalMaskSize);
    bool handled = false;
    for (uint64_t left = pending & ~mask_; left != 0; left &= left - 1) {
      handled |= has_handler(__builtin_ctzll(left) + 1);
    }
    kernel(SYS_rt_sigprocmask, SIG_SETMASK, &mask_, nullptr, kSignalMaskSize);
    return handled;
  }

 private:
  static bool has_handler(int signal) {
    struct {  // the beginning is the same on all architectures
      uintptr_t handler;
      unsigned long rest[7];
    } action{};
    if (kernel(SYS_rt_sigaction, signal, nullptr, &action, kSignalMaskSize) != 0) return false;
    return action.handler != reinterpret_cast<uintptr_t>(SIG_DFL) &&
           action.handler != reinterpret_cast<uintptr_t>(SIG_IGN);
  }

  uint64_t mask_ = 0;
};

int64_t real_now_ns() {
  timespec now{};
  kernel(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

/// Yields the processor to other threads for a moment, until the thread gets its turn. Returns
/// whether it has got the turn.
bool spin_for_turn(ThreadSlot& slot) {
  const auto may_spin = [] { return table()->may_threads_spin.load() != 0; };
  if (!may_spin()) return false;
  const int64_t since = real_now_ns();
  if (!self.spin.is_worthwhile(since)) return false;
  int64_t now = since;
  bool has_turn = abi::take_turn(slot);
  while (!has_turn && now - since < kTurnSpinConstants.longest_ns && may_spin()) {
    kernel(SYS_sched_yield);
    has_turn = abi::take_turn(slot);
    now = real_now_ns();
  }
  self.spin.ended(has_turn, now - since, now);
  return has_turn;
}

void wait_for_turn(ThreadSlot* slot) {
  if (spin_for_turn(*slot)) return;
  const timespec look{0, kLookNs};
  while (!abi::take_turn(*slot)) {
    kernel(SYS_futex, &slot->turn, FUTEX_WAIT, static_cast<long>(ThreadSlot::kNone), &look, nullptr,
           0L);
    if (slot->turn.load() == ThreadSlot::kNone && is_daemon_gone()) {
      has_left = true;
      slot->state.store(ThreadSlot::kRuns);
      return;
    }
  }
}

void begin_turn() {
  self.keys = 0;
  self.clock_reads = 0;
  self.polls = 0;
  self.granted = self.slot->polls.load(std::memory_order_relaxed);
  self.last_pattern = self.pattern;
  self.pattern = 0;
}

/// Waits for the turn, which a thread that waited in the kernel elsewhere may have lost in the
/// meantime.
void regain_turn() {
  if (self.slot->turn.load(std::memory_order_relaxed) == ThreadSlot::kNone)
    give(Call{}, abi::kNever, ThreadSlot::kProgressed);
}

void end_of_thread(void* times) {
  // Destructors of the program's thread-specific data can still wait for something, so the turns
  // end only in the last round of destructors.
  const auto round = reinterpret_cast<uintptr_t>(times);
  if (round < PTHREAD_DESTRUCTOR_ITERATIONS - 1) {
    pthread_setspecific(end_key, reinterpret_cast<void*>(round + 1));
    return;
  }
  end_thread();
}

void take_over(ThreadSlot* slot) {
  self = Self{};
  *same_process = 1;
  slot->pid.store(static_cast<int32_t>(kernel(SYS_getpid)));
  slot->tid.store(static_cast<int32_t>(kernel(SYS_gettid)));
  slot->handle.store(static_cast<uint64_t>(pthread_self()));
  slot->call.store(-1);
  self.slot = slot;
}

// ---- fork(2) ----------------------------------------------------------------------------------

/// The slot of the child, from before_fork() to after_fork_in_child(). Only one thread at a time
/// forks, since it has the turn.
ThreadSlot* child_slot = nullptr;
uint32_t child_serial = 0;  // of that slot; another thread may get the slot before the child runs
uint64_t mask_before_fork = 0;

void before_fork() {
  child_slot = active() ? take_slot() : nullptr;
  if (child_slot == nullptr) return;
  child_serial = child_slot->serial.load();
  mask_before_fork = block_signals();  // of the child until its first turn
}

void after_fork_in_parent() {
  if (child_slot != nullptr) set_signal_mask(mask_before_fork);
}

void after_fork_in_child() {
  ThreadSlot* const slot = child_slot;
  self.slot = nullptr;
  forget_held_files();
  disconnect();
  if (slot == nullptr) return;
  // The daemon assigns another slot if this process did not join in time and the slot was freed,
  // for instance because a signal has stopped the process.
  uint32_t given = 0;
  if (connect_to_daemon({static_cast<uint32_t>(slot - table()->slots), child_serial}, &given)) {
    take_over(&table()->slots[given]);
    give(Call{}, abi::kNever, ThreadSlot::kProgressed);
  } else {
    has_left = true;
  }
  set_signal_mask(mask_before_fork);
}

bool map_mark() {
  constexpr size_t kPage = 4096;
  const long page = kernel(SYS_mmap, nullptr, kPage, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1L, 0L);
  if (page < 0) return false;
  same_process = reinterpret_cast<uint32_t*>(page);
  return kernel(SYS_madvise, page, kPage, MADV_WIPEONFORK) == 0;
}

__attribute__((constructor)) void join() {
  static bool is_tried = false;
  if (is_tried) return;
  is_tried = true;
  uint32_t given = 0;
  if (!map_mark()) return;
  if (!connect_to_daemon({}, &given)) return;
  pthread_key_create(&end_key, end_of_thread);
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  take_over(&table()->slots[given]);
  pthread_setspecific(end_key, reinterpret_cast<void*>(uintptr_t{1}));
  make_cycles_virtual();
  give(Call{}, abi::kNever, ThreadSlot::kProgressed);
}

}  // namespace

void join_early() {
  join();
}

bool joined() {
  return table() != nullptr && !has_left;
}

bool active() {
  if (self.slot == nullptr || has_left) return false;
  if (*same_process == 0) {
    self.slot = nullptr;
    return false;
  }
  regain_turn();
  return !has_left;
}

ThreadSlot* own_slot() {
  return self.slot;
}

int64_t now_ns() {
  return table()->now_ns.load(std::memory_order_relaxed);
}

int64_t deadline_after(int64_t ns) {
  const int64_t now = now_ns();
  if (ns <= 0) return now;
  return ns >= abi::kNever - now ? abi::kNever : now + ns;
}

void tell_daemon(ThreadSlot* slot) {
  if (write_handback()) return;
  // A program that closes every descriptor it does not know has closed the eventfd, too, so the
  // process connects again.
  uint32_t given = 0;
  const auto number = static_cast<uint32_t>(slot - table()->slots);
  if (!connect_to_daemon({number, slot->serial.load()}, &given)) {
    has_left = true;
    return;
  }
  write_handback();
}

void wait_until_served(ThreadSlot* slot) {
  const timespec look{0, kLookNs};
  for (;;) {
    uint32_t waits = ThreadSlot::kWaitsForReply;
    if (slot->asks.compare_exchange_strong(waits, ThreadSlot::kNothing)) return;
    if (waits != ThreadSlot::kServed) return;
    kernel(SYS_futex, &slot->asks, FUTEX_WAIT, static_cast<long>(ThreadSlot::kServed), &look,
           nullptr, 0L);
    if (slot->asks.load() == ThreadSlot::kServed && is_daemon_gone()) return;
  }
}

End give(const Call& call, int64_t deadline_ns, uint32_t flags, int64_t ready_ns) {
  ThreadSlot* const slot = self.slot;
  slot->ready_ns.store(ready_ns);
  slot->flags.store(flags);
  slot->deadline_ns.store(deadline_ns);
  slot->call.store(call.number);
  for (size_t i = 0; i < 4; ++i) slot->arguments[i].store(call.arguments[i]);
  const BlockedSignals signals;
  abi::release_turn(*slot);
  tell_daemon(slot);
  if (!has_left) wait_for_turn(slot);
  begin_turn();
  const bool interrupted = signals.let_come();
  if (has_left) return End::kLeft;
  return interrupted ? End::kInterrupted : End::kReady;
}

void progressed() {
  self.before_locks.forget();
  self.before_polls.forget();
  self.pattern = 0;
  self.last_pattern = 0;
  self.keys = 0;
  self.granted = 0;
  self.streak = 0;
}

/// Returns the places that the thread has polled without success in this turn. If it has polled
/// none yet, returns those of the poll in which the turn began, which has ended.
Looks looks_of_turn() {
  const uint64_t pattern = self.pattern != 0 ? self.pattern : self.last_pattern;
  return {.pattern = pattern, .are_as_before = pattern != 0 && self.before_locks.contain(pattern)};
}

void go_on_after(const Looks& looks) {
  self.pattern = 0;
  self.last_pattern = looks.pattern;
  self.keys = 0;
  if (!looks.are_as_before) self.before_locks.add(looks.pattern);
}

void acts() {
  self.granted = 0;
}

bool has_looked() {
  return self.polls != 0;
}

bool may_look_on() {
  return self.polls < self.granted;
}

int64_t time_after_looks() {
  constexpr uint32_t kLongest = 1U << 31;
  ThreadSlot& slot = *self.slot;
  const int64_t now = now_ns();
  const bool reads_clock = self.clock_reads >= kMaxClockReads && self.polls < kPollsOfClockReads;
  const uint32_t polls = reads_clock ? kPollsOfClockReads : self.polls;
  if (self.streak == 0) slot.streak_began_ns.store(now);
  self.streak = self.streak < kLongest - polls ? self.streak + polls : kLongest;
  slot.streak.store(self.streak);
  slot.looks.store(self.polls);
  slot.looked_ns.store(now);
  return now + polls * slot.poll_ns.load(std::memory_order_relaxed);
}

namespace {

End give_to_others(const Call& call, uint32_t more = 0) {
  uint32_t flags = ThreadSlot::kPolls | more;
  if (self.clock_reads != 0) flags |= ThreadSlot::kReadsClock;
  if (self.pattern == 0 || !self.before_polls.contain(self.pattern)) {
    flags |= ThreadSlot::kProgressed;
    self.before_polls.add(self.pattern);
  }
  const int64_t ready = time_after_looks();
  // The first poll of a key costs no time: the number of first polls while a program starts can
  // depend on the machine.
  const bool is_free = (flags & ThreadSlot::kProgressed) != 0;
  return give(call, abi::kNever, flags, is_free ? 0 : ready);
}

uint64_t mixed_key(const Call& call, uint64_t key) {
  return mix(key + static_cast<uint64_t>(call.number) * 0x9e3779b97f4a7c15);
}

/// Notes a poll of the key. Returns whether the thread has polled it in this turn before; also
/// true if this is not known.
bool look_at(uint64_t key) {
  for (uint32_t i = 0; i < self.keys; ++i)
    if (self.key[i] == key) return true;
  if (self.keys == kMaxPollKeys) return true;
  self.key[self.keys++] = key;
  self.pattern = self.keys == kMaxPollKeys ? kMaxPollKeys : self.pattern + key;
  return false;
}

}  // namespace

void give_between_calls() {
  const Call none = Call::of(-1);
  if (has_looked()) {
    give_to_others(none, ThreadSlot::kPreempted);
  } else {
    give(none, abi::kNever, ThreadSlot::kProgressed | ThreadSlot::kPreempted);
  }
}

void found_nothing(const Call& call, uint64_t key) {
  if (!active()) return;
  ++self.polls;
  if (look_at(mixed_key(call, key)) && !may_look_on()) give_to_others(call);
}

void yield(const Call& call, uint64_t key) {
  if (!active()) return;
  ++self.polls;
  look_at(mixed_key(call, key));
  if (!may_look_on()) give_to_others(call);
}

void read_clock() {
  if (!active()) return;
  ++self.clock_reads;
  if (self.clock_reads < kMaxClockReads && self.polls < kPollsBetweenClocks) return;
  if (self.keys == 0) self.pattern = 1;
  give_to_others(Call::of(SYS_clock_gettime, 0));
  self.clock_reads = 1;
}

ThreadSlot* take_slot() {
  abi::TurnTable* const all = table();
  for (uint32_t i = 0; i < abi::TurnTable::kSlots; ++i) {
    ThreadSlot& slot = all->slots[i];
    if (!abi::take_slot(slot)) continue;
    abi::clear_slot(slot);
    if (own_slot() != nullptr) slot.chose_processor.store(own_slot()->chose_processor.load());
    slot.serial.store(all->next_serial.fetch_add(1));
    uint32_t high = all->high_water.load();
    while (high < i + 1 && !all->high_water.compare_exchange_weak(high, i + 1)) {
    }
    return &slot;
  }
  return nullptr;
}

void free_slot(ThreadSlot* slot) {
  if (slot != nullptr) slot->state.store(ThreadSlot::kFree);
}

void begin_thread(ThreadSlot* slot) {
  if (has_virtual_cycles()) let_faults_come();
  take_over(slot);
  pthread_setspecific(end_key, reinterpret_cast<void*>(uintptr_t{1}));
  give(Call{}, abi::kNever, ThreadSlot::kProgressed);
}

void end_thread() {
  ThreadSlot* const slot = self.slot;
  if (slot == nullptr) return;
  release_file();
  block_signals();  // a signal for the process is for a thread that still takes turns
  self.slot = nullptr;
  slot->flags.store(ThreadSlot::kProgressed);
  abi::end_turns(*slot);
  if (!has_left) tell_daemon(slot);
}

void forked(pid_t child) {
  ThreadSlot* const slot = child_slot;
  child_slot = nullptr;
  if (slot == nullptr) return;
  if (child < 0) {
    free_slot(slot);
  } else {
    slot->pid.store(child);
  }
}

void require_quiescence() {
  if (joined()) table()->needs_quiescence.store(1);
}

}  // namespace rocemu::turns
