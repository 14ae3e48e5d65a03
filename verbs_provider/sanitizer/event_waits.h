// Waits for completion events: in ibv_get_cq_event(3), or for the descriptor of a channel.
#pragma once

#include <infiniband/verbs.h>

#include "verbs_provider/sanitizer/program.h"

namespace rocemu::sanitizer {

/// Notes that the calling thread calls ibv_get_cq_event(). Returns whether the call waits.
bool begin_event_wait(Program& program, const ibv_comp_channel& channel);

/// Notes that the calling thread is about to wait in `call`, a function of the C library, for the
/// descriptor only. Returns whether the descriptor belongs to a channel without an event.
bool begin_descriptor_wait(Program& program, int fd, const char* call);

/// Notes that the wait of the calling thread has ended. If the thread ends during the wait, as by
/// pthread_cancel(3), this is noted without a call.
void end_event_wait(Program& program);

/// Counts, for each CQ, the completions that the program has not polled. Called at its end, with
/// the program's lock.
void count_what_is_left(Program& program);

}  // namespace rocemu::sanitizer
