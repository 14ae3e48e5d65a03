// Gifts from one thread to another: the signal of a condition, the wake-up of a futex. Threads that
// wait for the same key (gift_key.h) get gifts in the order of their arrival.
#pragma once

#include <cstdint>

#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {

/// Registers the calling thread as waiting for gifts to `key`.
void expect_gift(uint64_t key);
bool has_gift();
/// Ends the calling thread's wait. If `pass_on` is set, a gift that the thread has not taken goes
/// to the next waiting thread.
void end_expecting(bool pass_on);

/// Gives the gift to the waiting threads, at most to `most` of them. Returns the number of threads
/// that got it.
uint32_t give_gifts(uint64_t key, uint32_t most);
uint32_t count_waiting(uint64_t key);

}  // namespace rocemu::turns
