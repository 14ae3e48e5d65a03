// Turns: on a virtual clock the threads of all programs go on one at a time, in the order in which
// they were started, and time stands still meanwhile. A library that is loaded into the programs
// (verbs_provider/turns) has each thread wait for its turn wherever it would wait for anything, and
// the daemon gives turns. All threads have a slot in one table, a memory file that the daemon
// makes, seals and hands to each process.
//
// The daemon trusts nothing here: of what a program writes it believes only what is about that
// program's own threads, and nothing that it writes can do more than stop or confuse the run.
#pragma once

#include <atomic>
#include <cstdint>

namespace rocemu::abi {

inline constexpr uint32_t kTurnsMagic = 0x6e727574;  // "turn"
inline constexpr uint32_t kTurnsVersion = 4;

/// CLOCK_MONOTONIC at the beginning of virtual time. Not 0, which programs take for "never".
inline constexpr int64_t kMonotonicStartNs = 1'000'000'000'000;
/// CLOCK_REALTIME at that moment: 2000-01-01.
inline constexpr int64_t kRealtimeStartNs = 946'684'800'000'000'000;

/// No deadline.
inline constexpr int64_t kNever = INT64_MAX;

struct ThreadSlot {
  enum State : uint32_t {
    kFree,
    kStarting,  // its creator has taken it, and the thread or process is not there yet
    kRuns,      // also of a thread that the kernel keeps waiting in a call that nobody replaces
    kWaits,     // for a turn
    kGone,      // the thread ends; the daemon frees the slot
  };
  enum Flags : uint32_t {
    kProgressed = 1,    // since its last turn it did more than look for what was not there
    kPolls = 2,         // it would go on, but found nothing where it looked
    kReadsClock = 4,    // and it read a clock in between
    kWaitsForRoom = 8,  // to write, perhaps for a reader outside of the run
    kPreempted = 16     // it would go on, and its calls are used up
  };

  enum Turn : uint32_t {
    kNone,
    kGiven,  // by the daemon
    kTaken,  // the thread has noticed, and runs; it makes it kNone when it gives the turn back
  };

  enum Asks : uint32_t {
    kNothing,
    kWaitsForReply,  // of the daemon, in its turn
    kServed,        // by the daemon: even with its reply it goes on only when that has finished, so
                    // that what it does next is not served by chance with what it asked for
    kWaitsShortly,  // for what the kernel has begun to end: it keeps its turn
  };

  alignas(64) std::atomic<uint32_t> turn;  // a Turn, and a futex
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> flags;
  std::atomic<uint32_t> serial;  // threads have their turns in this order, that of their creation
  std::atomic<int32_t> pid;      // 0 until it is known
  std::atomic<int32_t> tid;
  std::atomic<int64_t> deadline_ns;  // of the wait, in virtual time; kNever for none
  /// What the thread waits for, as a system call with its arguments, for reports.
  std::atomic<int64_t> call;
  std::atomic<uint64_t> arguments[4];
  /// For the threads of its process: what it waits for that another thread's call gives, a
  /// condition for example, and whether that has been given.
  std::atomic<uint64_t> key;
  std::atomic<uint32_t> given;
  std::atomic<uint32_t> queued;  // the place among those that wait for the same
  std::atomic<uint64_t> handle;  // its pthread_t
  std::atomic<uint32_t> asks;    // an Asks, and a futex
  /// Not 0 if the program chose the processor that `rocemu run --processor` keeps it on. Threads
  /// and processes that it starts, and programs that it executes, inherit that.
  std::atomic<uint32_t> chose_processor;
  /// The virtual time at which the thread's latest empty polls are over; 0 if its latest turn did
  /// not end with one. The thread has no turn before, unless something happens.
  std::atomic<int64_t> ready_ns;
  /// The daemon's grant for the turn: the thread gives its turn back after `polls` empty polls,
  /// each of which takes `poll_ns` of virtual time.
  std::atomic<int64_t> poll_ns;
  std::atomic<uint32_t> polls;
  std::atomic<uint32_t> looks;     // in vain, in that turn
  std::atomic<uint32_t> streak;    // and without finding anything before it, at most 2^31
  std::atomic<int64_t> looked_ns;  // when that turn was
  std::atomic<int64_t> streak_began_ns;
  /// With `--schedule N`, the calls until the thread is preempted: the daemon sets the number, and
  /// the thread counts down and gives its turn back at 0.
  std::atomic<uint32_t> calls;
  /// The calls between which the thread was preempted for the last time, for reports. The second is
  /// empty until the thread has made it.
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
  /// Not 0 when something was done whose effects on other threads the daemon has to wait for: a
  /// signal was sent, or a process started in a way that gives it no slot.
  std::atomic<uint32_t> unsettled;
  uint64_t seed;  // of random numbers
  alignas(64) ThreadSlot slots[kSlots];
};

/// What a process says when it connects, in one message; the answer is a TurnsReply.
struct TurnsHello {
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  static constexpr uint32_t kObserver = UINT32_MAX - 1;  // takes no turns, and wants the table
  uint32_t magic;
  uint32_t version;
  uint32_t slot;  // that its parent took for it, or kNoSlot
  int32_t tid;
};

/// With two descriptors: the table, and the eventfd that tells the daemon of a turn that was given
/// back.
struct TurnsReply {
  uint32_t magic;
  uint32_t version;
  uint32_t slot;  // kNoSlot: there is none left
};

/// Later messages. kMakeTimer comes with an eventfd, to which the daemon adds the number of
/// expiries, or names a signal. Timer 0 is there from the beginning: the alarm, whose signal is
/// SIGALRM.
struct TurnsRequest {
  enum Kind : uint32_t { kMakeTimer = 1, kSetTimer, kDeleteTimer };
  uint32_t magic;
  Kind kind;
  uint32_t timer;  // its number, which the answer to kMakeTimer has in `slot`
  int32_t signal;  // of kMakeTimer without a descriptor; 0: none, it only counts
  int32_t tid;     // the thread that gets the signal, or 0 for any of the process
  uint32_t reserved;
  uint64_t value;       // that comes with the signal
  int64_t deadline_ns;  // kNever: none
  int64_t interval_ns;  // 0: once
};
static_assert(sizeof(TurnsRequest) == 48);

}  // namespace rocemu::abi
