// A simulated machine with processors and threads. It shows how waiting policies work on machines
// that are not available, such as machines with more processors, expensive switches, or other work.
// Times are in nanoseconds. Time advances as the threads use it; nothing is random.
//
// The scheduler has the properties that all of Linux's schedulers have. Each processor has a queue.
// A thread that yields, or that has run for a time slice, goes to the end of its queue. A thread
// that wakes up goes to an idle processor if there is one. Otherwise it goes to its last processor,
// before all threads that have run for longer, including the one that runs there now.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

namespace rocemu::test {

using Nanoseconds = int64_t;

struct MachineConfig {
  size_t processors = 2;
  Nanoseconds context_switch = 1'600;
  Nanoseconds yield_alone = 300;  // sched_yield(2) if no other thread can run on the processor
  Nanoseconds wake_up = 3'000;    // until a thread that was woken on an idle processor runs
  Nanoseconds time_slice = 3'000'000;
};

class Thread;

/// The next action of a thread.
struct Action {
  enum class Kind { kRun, kYield, kSleep } kind;
  Nanoseconds time = 0;  // kRun: the time that it takes; kSleep: the longest time
};

class Machine {
 public:
  explicit Machine(const MachineConfig& config) : config_(config), processors_(config.processors) {}

  /// Adds a thread, which starts on that processor. Calls `act` when the thread has finished its
  /// last action, for the next one.
  Thread& add(size_t processor, std::function<Action()> act);
  void run(Nanoseconds until);

  Nanoseconds now() const { return now_; }
  /// Ends the thread's sleep.
  void wake(Thread& thread);

 private:
  static constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

  struct Processor {
    Thread* current = nullptr;
    std::deque<Thread*> queue{};
    Nanoseconds done_at = kNever;  // the end of what `current` does
    Nanoseconds began = 0;         // the start of its time slice
  };

  void step(Processor& processor);
  void switch_to_next(Processor& processor);
  void start(Processor& processor, Thread& thread, Nanoseconds cost);
  void put_back(Processor& processor);
  static void insert(Processor& processor, Thread& thread);

  MachineConfig config_;
  Nanoseconds now_ = 0;
  std::vector<Processor> processors_;
  std::vector<std::unique_ptr<Thread>> threads_;
};

class Thread {
 public:
  explicit Thread(std::function<Action()> act, size_t on) : act_(std::move(act)), on_(on) {}
  size_t processor() const { return on_; }
  bool is_asleep() const { return asleep_; }

 private:
  friend class Machine;
  std::function<Action()> act_;
  size_t on_;
  bool asleep_ = false;
  Nanoseconds wake_at_ = 0;
  Nanoseconds used_ = 0;  // processor time
  // the rest of the action that was interrupted when the thread lost its processor
  Nanoseconds left_ = 0;
};

}  // namespace rocemu::test
