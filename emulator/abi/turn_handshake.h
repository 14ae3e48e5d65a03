// These functions pass a turn from the daemon to a thread and back (turn_table.h). No other code of
// either side accesses ThreadSlot::state and ThreadSlot::turn in the meantime, and the order of the
// accesses loses no turn. All accesses are sequentially consistent. The functions are templates so
// that tests/schedule/turn_handshake_test.cc can run both sides through every interleaving.
#pragma once

#include <cstdint>

#include "emulator/abi/turn_table.h"

namespace rocemu::abi {

// ---- Both sides ------------------------------------------------------------------------------

/// Takes a slot for a thread that is about to start. Returns false if the slot is not free: daemon
/// and programs take slots at the same time.
template <class Slot>
bool take_slot(Slot& slot) {
  uint32_t free = ThreadSlot::kFree;
  return slot.state.compare_exchange_strong(free, ThreadSlot::kStarting);
}

/// Resets the members of a slot that the slot's previous thread has set.
inline void clear_slot(ThreadSlot& slot) {
  slot.turn.store(ThreadSlot::kNone);
  slot.flags.store(ThreadSlot::kProgressed);
  slot.pid.store(0);
  slot.tid.store(0);
  slot.deadline_ns.store(kNever);
  slot.ready_ns.store(0);
  slot.call.store(-1);
  slot.key.store(0);
  slot.given.store(0);
  slot.handle.store(0);
  slot.asks.store(ThreadSlot::kNothing);
  slot.chose_processor.store(0);
  slot.calls.store(0);
  slot.call_before[0] = slot.call_after[0] = 0;
}

// ---- The thread's side ------------------------------------------------------------------------

/// Gives the thread's turn back to the daemon, or requests the thread's first turn.
template <class Slot>
void release_turn(Slot& slot) {
  // The state is stored first: when the daemon sees that the turn was given back, it decides by the
  // state what to do with the thread.
  slot.state.store(ThreadSlot::kWaits);
  // This is an exchange, not a store: a thread without a turn (a thread that has just started, or
  // that lost its turn while it waited in the kernel) may have been given one since the previous
  // line.
  uint32_t taken = ThreadSlot::kTaken;
  slot.turn.compare_exchange_strong(taken, ThreadSlot::kNone);
}

/// Returns whether the thread must notify the daemon that it has given its turn back. The daemon
/// checks the turn once more after it has stored 0 in `is_daemon_awake`, and before it sleeps.
template <class Table>
bool must_notify(const Table& table) {
  return table.is_daemon_awake.load() == 0;
}

/// Returns whether the daemon had given the thread a turn. If it had, the thread has taken the turn
/// now.
template <class Slot>
bool take_turn(Slot& slot) {
  uint32_t given = ThreadSlot::kGiven;
  if (!slot.turn.compare_exchange_strong(given, ThreadSlot::kTaken)) return false;
  slot.state.store(ThreadSlot::kRuns);
  return true;
}

/// Marks the thread as ended, which also ends its turn if it has one. The thread must not access
/// the slot any more: the daemon frees the slot, and another thread may get it at once.
template <class Slot>
void end_turns(Slot& slot) {
  slot.state.store(ThreadSlot::kGone);
}

// ---- The daemon's side ------------------------------------------------------------------------

/// Gives a turn to a thread whose state is kWaits.
template <class Slot>
void give_turn(Slot& slot) {
  slot.state.store(ThreadSlot::kRuns);
  slot.turn.store(ThreadSlot::kGiven);
}

/// Returns whether the thread has given its turn back, or has ended.
template <class Slot>
bool is_turn_back(const Slot& slot) {
  return slot.turn.load() == ThreadSlot::kNone || slot.state.load() == ThreadSlot::kGone;
}

/// Takes the turn away from a thread that waits in the kernel. A thread that was stopped
/// before it noticed its turn keeps the turn; otherwise it would lose every turn and never run.
/// Returns false if the thread has given the turn back in the meantime.
template <class Slot>
bool revoke_turn(Slot& slot) {
  uint32_t has = ThreadSlot::kTaken;
  return slot.turn.compare_exchange_strong(has, ThreadSlot::kNone) || has == ThreadSlot::kGiven;
}

/// Frees the slot of a thread that has ended.
template <class Slot>
void free_ended(Slot& slot) {
  slot.turn.store(ThreadSlot::kNone);
  slot.state.store(ThreadSlot::kFree);
}

}  // namespace rocemu::abi
