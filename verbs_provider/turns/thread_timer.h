// Timers of timer_create(2) with SIGEV_THREAD: a thread waits until the timer expires, and starts
// one thread for each expiration, as the C library does.
#pragma once

#include <csignal>
#include <cstdint>

namespace rocemu::turns {

struct ThreadTimer;

/// Creates a timer, and starts the thread that waits for it. Returns null if this is not possible.
ThreadTimer* make_thread_timer(const sigevent& event);
/// Sets the timer. A deadline of kNever stops it; with an interval of 0 it expires once.
void set_thread_timer(ThreadTimer* timer, int64_t deadline_ns, int64_t interval_ns);
/// Ends the thread that waits for the timer; threads that it started for expirations continue.
void delete_thread_timer(ThreadTimer* timer);

}  // namespace rocemu::turns
