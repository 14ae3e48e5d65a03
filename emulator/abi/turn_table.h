// Turns: on a virtual clock the threads of all programs run one at a time, in start order, and the
// clock is stopped while they run. A library that is loaded into the programs
// (verbs_provider/turns) makes each thread wait for its turn wherever it would wait for anything,
// and the daemon gives turns. All threads have a slot in one table, a memory file that the daemon
// creates, seals and passes to each process.
//
// The daemon trusts nothing here: it believes what a program writes only about the program's own
// threads, and no value can do more than stop or confuse the run.
#pragma once

#include <atomic>
#include <cstdint>

namespace rocemu::abi {

inline constexpr uint32_t kTurnsMagic = 0x6e727574;  // "turn"
inline constexpr uint32_t kTurnsVersion = 7;

/// CLOCK_MONOTONIC at the beginning of virtual time. It is not 0, because programs take 0 for
/// "never".
inline constexpr int64_t kMonotonicStartNs = 1'000'000'000'000;
/// CLOCK_REALTIME at the beginning of virtual time: 2000-01-01.
inline constexpr int64_t kRealtimeStartNs = 946'684'800'000'000'000;

/// No deadline
inline constexpr int64_t kNever = INT64_MAX;

struct ThreadSlot {
  enum State : uint32_t {
    kFree,
    kStarting,  // its creator has taken it, and the thread or process does not exist yet
    kRuns,      // also a thread that waits in the kernel in a call that is not replaced
    kWaits,     // for a turn
    kGone,      // the thread ends; the daemon frees the slot
  };
  enum Flags : uint32_t {
    kProgressed = 1,    // since its last turn it did more than make empty polls
    kPolls = 2,         // it would continue, but its polls found nothing
    kReadsClock = 4,    // it also read a clock between the polls
    kWaitsForRoom = 8,  // it waits to write, perhaps for a reader outside of the run
    kPreempted = 16,    // it would continue, but its calls are used up
    kAwaitsChild = 32   // its wait ends by the end or stop of a child process, or by a signal
  };

  enum Turn : uint32_t {
    kNone,
    kGiven,  // by the daemon
    kTaken,  // the thread has noticed it and runs; it stores kNone when it returns the turn
  };

  enum Asks : uint32_t {
    kNothing,
    kWaitsForReply,  // of the daemon, in its turn
    /// The daemon serves the request. Even after the reply, the thread continues only when the
    /// daemon has finished, so that its next action is not served by chance together with this
    /// request.
    kServed,
    kWaitsShortly,  // for an event that the kernel has already started: it keeps its turn
  };

  alignas(64) std::atomic<uint32_t> turn;  // a Turn, and a futex
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> flags;
  std::atomic<uint32_t> serial;  // threads have their turns in this order, their start order
  std::atomic<int32_t> pid;      // 0 until it is known
  std::atomic<int32_t> tid;
  std::atomic<int64_t> deadline_ns;  // when its wait ends, in virtual time; or kNever
  /// The system call in which the thread waits, and its arguments; used in reports.
  std::atomic<int64_t> call;
  std::atomic<uint64_t> arguments[4];
  /// `key` is the key of the object on which the thread waits, such as a condition variable.
  /// `given` says whether another thread of the process has ended this wait. Only the threads of
  /// the process use these two members.
  std::atomic<uint64_t> key;
  std::atomic<uint32_t> given;
  std::atomic<uint32_t> queued;  // its place among the threads that wait for the same key
  std::atomic<uint64_t> handle;  // its pthread_t
  std::atomic<uint32_t> asks;    // an Asks, and a futex
  /// Not 0 if the program itself chose exactly the processor on which `rocemu run --processor`
  /// keeps it. Threads and processes that it starts, and programs that it executes, inherit this.
  std::atomic<uint32_t> chose_processor;
  /// The virtual time at which the thread's latest empty polls end, or 0 if its latest turn did not
  /// end with an empty poll. The thread gets no turn before that time, unless something happens.
  std::atomic<int64_t> ready_ns;
  /// The daemon's grant for the turn: the thread gives its turn back after `polls` empty polls,
  /// each of which takes `poll_ns` of virtual time.
  std::atomic<int64_t> poll_ns;
  std::atomic<uint32_t> polls;
  std::atomic<uint32_t> looks;     // empty polls in that turn
  std::atomic<uint32_t> streak;    // empty polls in a row before that turn, at most 2^31
  std::atomic<int64_t> looked_ns;  // the time of that turn
  std::atomic<int64_t> streak_began_ns;
  /// With `--schedule N`, the number of calls until the thread is preempted. The daemon sets the
  /// number; the thread counts down, and gives its turn back at 0.
  std::atomic<uint32_t> calls;
  /// The two calls between which the thread was last preempted; used in reports. The second is
  /// empty until the thread has made that call.
  static constexpr uint32_t kCallName = 32;
  char call_before[kCallName], call_after[kCallName];
};
static_assert(sizeof(ThreadSlot) == 256);

struct TurnTable {
  static constexpr uint32_t kSlots = 4096;
  alignas(64) std::atomic<int64_t> now_ns;  // virtual time; written by the daemon
  std::atomic<uint32_t> next_serial;        // from 1
  std::atomic<uint32_t> high_water;         // slots that were ever taken
  std::atomic<uint32_t> next_queued;
  /// Not 0 after an action whose effects on other threads the daemon must await: the thread sent a
  /// signal, or started a process in a way that gives the process no slot.
  std::atomic<uint32_t> needs_quiescence;
  /// 1 while the daemon spins until a turn comes back. A thread then need not notify it.
  std::atomic<uint32_t> is_daemon_awake;
  /// 1 while a thread that waits for its turn may spin for a moment before it sleeps.
  std::atomic<uint32_t> may_threads_spin;
  uint64_t seed;  // of random numbers
  alignas(64) ThreadSlot slots[kSlots];
};

/// The message that a process sends when it connects; the answer is a TurnsReply.
struct TurnsHello {
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  static constexpr uint32_t kObserver = UINT32_MAX - 1;  // takes no turns, and needs only the table
  uint32_t magic;
  uint32_t version;
  uint32_t slot;  // that its parent has taken for it, or kNoSlot
  int32_t tid;
  uint32_t serial;  // of that slot when it was taken; 0 for kNoSlot
};

/// The answer to TurnsHello. Two descriptors are sent with it: the table, and the eventfd by which
/// the process notifies the daemon that it has given a turn back.
struct TurnsReply {
  uint32_t magic;
  uint32_t version;
  uint32_t slot;  // kNoSlot: none is left
};

/// A request that a process sends after TurnsHello. kMakeTimer either has an eventfd, to which the
/// daemon adds the number of expirations, or names a signal. Timer 0 always exists: it is the
/// alarm, whose signal is SIGALRM.
struct TurnsRequest {
  enum Kind : uint32_t { kMakeTimer = 1, kSetTimer, kDeleteTimer };
  uint32_t magic;
  Kind kind;
  uint32_t timer;  // its number, which is `slot` in the answer to kMakeTimer
  int32_t signal;  // of kMakeTimer without a descriptor; 0: none, it only counts
  int32_t tid;     // the thread that gets the signal, or 0 for any of the process
  uint32_t reserved;
  uint64_t value;       // passed with the signal
  int64_t deadline_ns;  // kNever: none
  int64_t interval_ns;  // 0: once
};
static_assert(sizeof(TurnsRequest) == 48);

}  // namespace rocemu::abi
