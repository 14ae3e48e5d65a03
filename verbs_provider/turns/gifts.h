// What one thread gives another: the signal of a condition, the wake-up of a futex. Threads that
// wait for the same, that is for the same key (gift_key.h), get it in the order in which they came.
#pragma once

#include <cstdint>

#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {

/// The calling thread will wait for what is given to `key`.
void expect_gift(uint64_t key);
bool has_gift();
/// It waits no longer. Gives a gift that it has not taken to the next one, if `pass_on`.
void end_expecting(bool pass_on);

/// Gives it to as many waiting threads as there are, `most` at most; how many.
uint32_t give_gifts(uint64_t key, uint32_t most);
uint32_t count_waiting(uint64_t key);

}  // namespace rocemu::turns
