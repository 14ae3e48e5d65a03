// Timers of timer_create(2) with SIGEV_THREAD: a thread waits until the timer expires, and starts
// one for each expiration, as the C library does.
#pragma once

#include <csignal>
#include <cstdint>

namespace rocemu::turns {

struct ThreadTimer;

/// Starts the thread that waits. Returns null if that is not possible.
ThreadTimer* make_thread_timer(const sigevent& event);
/// A deadline of kNever stops the timer; an interval of 0 lets it expire once.
void set_thread_timer(ThreadTimer* timer, int64_t deadline_ns, int64_t interval_ns);
/// Ends the thread that waits; threads that it started go on.
void delete_thread_timer(ThreadTimer* timer);

}  // namespace rocemu::turns
