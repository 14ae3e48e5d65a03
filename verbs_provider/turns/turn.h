// The turn of the calling thread (emulator/abi/turn_table.h), and how it waits for something
// without keeping others from their turns. All replacements of libc's calls in this folder are made
// of wait() and found_nothing().
#pragma once

#include <cstdint>

#include <pthread.h>

#include "emulator/abi/turn_table.h"
#include "verbs_provider/turns/daemon_link.h"

namespace rocemu::turns {

/// What a thread waits for, as the system call that would wait for it.
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
  kInterrupted,  // a signal's handler ran
  kLeft,         // the daemon is gone: the call is libc's again
};

/// True if the calling thread takes turns. False before its process has joined, after the daemon
/// has gone, and in threads that were made in ways that are not replaced.
bool active();

/// Joins the run, if that has not been tried. Constructors of other libraries run before ours, and
/// may read a clock: UCX measures the cycle counter's frequency by one.
void join_early();

/// True in a process that is in the run.
bool joined();
abi::ThreadSlot* own_slot();

int64_t now_ns();
/// The virtual time so long from now; kNever if that is beyond all times.
int64_t deadline_after(int64_t ns);

/// Gives the turn back until it is this thread's again, not before `ready_ns`. `flags` are
/// ThreadSlot::Flags.
End give(const Call& call, int64_t deadline_ns, uint32_t flags, int64_t ready_ns = 0);

/// The thread goes on, but gives its turn back between two calls, since the calls that the daemon
/// granted are used up. If it has looked in vain in this turn, that takes its time.
void give_between_calls();

/// What the thread has found or done makes others look again.
void progressed();

/// What a thread has looked for in vain in a turn. Threads that poll under a lock take it in turns:
/// to have it is nothing new, as long as each only looks where it did when it had it before.
struct Looks {
  uint64_t pattern = 0;  // of the places; 0 for none
  bool are_as_before = false;
};
Looks looks_of_turn();
/// The thread goes on where it was when it had looked there.
void go_on_after(const Looks& looks);

/// Waits until `ready` returns true, which is asked in each of this thread's turns. The caller has
/// seen that the thread is active().
enum class Cancel : uint8_t { kMay, kMayNot };

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
    // Nothing of ours has to be undone where a wait is a cancellation point (pthreads(7)).
    if (cancel == Cancel::kMay) pthread_testcancel();
    if (end != End::kReady) return end;
    more = 0;
  }
}

/// The thread looked at `place` and found nothing. When it has done so before in this turn, and as
/// often as the daemon granted, it gives the turn back until the time is over that its looks cost.
void found_nothing(const Call& call, uint64_t place);

/// The same, of a thread that yields: it gives the turn back even if it does so for the first time.
void yield(const Call& call, uint64_t place);

/// It read a clock; many times in one turn is a wait for time to pass.
void read_clock();

/// The thread does something that others may have to see before it looks again: from now on it
/// gives its turn back as if the daemon had granted no looks.
void acts();

/// Returns whether the thread may look in vain once more in this turn.
bool may_look_on();
/// Returns whether it has looked in vain in this turn.
bool has_looked();
/// When the time is over that its looks in this turn cost.
int64_t time_after_looks();

/// Takes a slot for a thread or process that is about to be started; null if there is none left.
abi::ThreadSlot* take_slot();
void free_slot(abi::ThreadSlot* slot);

/// In a new thread: the slot is its own from now on, and it waits for its first turn.
void begin_thread(abi::ThreadSlot* slot);
/// The last that a thread does.
void end_thread();

/// Writes the daemon's eventfd: the thread asks for something, or its turn is back.
void tell_daemon(abi::ThreadSlot* slot);
/// Waits until the daemon has finished what it served with the thread's request.
void wait_until_served(abi::ThreadSlot* slot);

/// Something was done that changes other threads from outside their turns: the daemon waits until
/// all are at rest before the next turn.
void unsettle();

}  // namespace rocemu::turns
