// The turn of the calling thread (emulator/abi/turn_table.h), and how a thread waits without
// preventing the turns of others. All replacements of libc's calls in this folder are built on
// wait() and found_nothing().
#pragma once

#include <cstdint>

#include <pthread.h>

#include "emulator/abi/turn_table.h"
#include "verbs_provider/turns/daemon_link.h"

namespace rocemu::turns {

/// What a thread waits for, described by the system call that would wait for the same event.
struct Call {
  long number;
  uint64_t arguments[4];

  template <class... Args>
  static Call of(long number, Args... arguments) {
    return Call{number, {word(arguments)...}};
  }

 private:
  template <class T>
  static uint64_t word(T value) {
    if constexpr (__is_same(T, decltype(nullptr))) {
      return 0;
    } else {
      return (uint64_t)value;
    }
  }
};

enum class End : uint8_t {
  kReady,
  kDeadline,
  kInterrupted,  // a signal handler ran
  kLeft,         // the daemon has ended: libc must make the call
};

/// Returns whether the calling thread takes turns. Returns false before its process has joined,
/// after the daemon has ended, and in threads that were created in ways that are not replaced.
bool active();

/// Joins the run, if that has not been tried. Constructors of other libraries run before ours and
/// may read a clock: UCX measures the frequency of the cycle counter in one.
void join_early();

/// Returns whether the process is in the run.
bool joined();
abi::ThreadSlot* own_slot();

int64_t now_ns();
/// Returns the virtual time `ns` from now, or kNever if that is later than all representable times.
int64_t deadline_after(int64_t ns);

/// Returns the turn to the daemon until it is assigned to this thread again, not before `ready_ns`.
/// `flags` are ThreadSlot::Flags.
End give(const Call& call, int64_t deadline_ns, uint32_t flags, int64_t ready_ns = 0);

/// Returns the turn between two calls, without another reason to wait, since the calls that the
/// daemon granted are used up. If the thread has made empty polls in this turn, the time that they
/// cost must pass first.
void give_between_calls();

/// Notes that the thread has found or done something that can make the polls of other threads
/// succeed.
void progressed();

/// The places that a thread has polled without success in a turn. Threads that poll under a lock
/// take it in turns: getting the lock is not progress as long as each thread polls only the same
/// places as when it had the lock before.
struct Looks {
  uint64_t pattern = 0;  // of the places; 0: none
  bool are_as_before = false;
};
Looks looks_of_turn();
/// Called with the result of looks_of_turn() after a wait for a lock: the thread counts as having
/// polled the places of `looks` in the turn before.
void go_on_after(const Looks& looks);

/// With kMay, a wait is a cancellation point (pthreads(7)).
enum class Cancel : uint8_t { kMay, kMayNot };

/// Waits until `ready` returns true, which is called in each of this thread's turns. The caller has
/// checked that the thread is active().
template <class Ready>
End wait(const Call& call, int64_t deadline_ns, Ready ready, uint32_t flags = 0,
         Cancel cancel = Cancel::kMay) {
  uint32_t more = abi::ThreadSlot::kProgressed;
  for (;;) {
    if (ready()) {
      progressed();
      return End::kReady;
    }
    if (now_ns() >= deadline_ns) {
      progressed();
      return End::kDeadline;
    }
    const End end = give(call, deadline_ns, flags | more);
    // If a wait is a cancellation point (pthreads(7)), it has no state of ours to undo.
    if (cancel == Cancel::kMay) pthread_testcancel();
    if (end != End::kReady) return end;
    more = 0;
  }
}

/// Notes that the thread polled `key` without success. If it has done so before in this turn, and
/// as often as the daemon granted, it returns the turn until the time that its polls cost is over.
void found_nothing(const Call& call, uint64_t key);

/// Does the same as found_nothing() for a thread that yields, but returns the turn even after the
/// first time.
void yield(const Call& call, uint64_t key);

/// Notes that the thread read a clock. Many readings in one turn are a wait for time to pass.
void read_clock();

/// Notes that the thread does something that other threads may have to see before this thread polls
/// again. At its next empty poll, the thread then returns its turn as if the daemon had granted no
/// polls.
void acts();

/// Returns whether the thread may make another empty poll in this turn.
bool may_look_on();
/// Returns whether the thread has made an empty poll in this turn.
bool has_looked();
/// Returns the time at which the cost of this turn's polls has passed.
int64_t time_after_looks();

/// Reserves a slot for a thread or process that is about to be started. Returns null if no slot is
/// free.
abi::ThreadSlot* take_slot();
void free_slot(abi::ThreadSlot* slot);

/// Begins a new thread: takes over the slot, and waits for the first turn.
void begin_thread(abi::ThreadSlot* slot);
/// Ends the calling thread's turns. Must be the last call that the thread makes here.
void end_thread();

/// Writes to the daemon's eventfd, after the thread has stored a request or returned its turn in
/// its slot.
void tell_daemon(abi::ThreadSlot* slot);
/// Waits until the daemon has finished the thread's request.
void wait_until_served(abi::ThreadSlot* slot);

/// Notes that an action changed other threads outside of their turns: the daemon waits until all
/// threads are at rest before it assigns the next turn.
void require_quiescence();

}  // namespace rocemu::turns
