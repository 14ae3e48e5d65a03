// The thread that calls the program's handlers, one at a time, without any lock. Functions except
// the start must be called with the NIC locked.
#pragma once

#include "vipl/objects.h"

namespace rocemu::vipl {

/// Starts the NIC's thread that calls handlers. Throws std::system_error.
void start_handler_thread(Nic& nic);
void call_later(Nic& nic, Job job);
/// Makes the thread get events of the CQ's channel, one at a time.
void watch(Cq& cq, int operation);
/// Waits until no handler of the object runs, unless it is called by such a handler.
void wait_for_handler(Nic& nic, Lock& lock, const Object& owner);

}  // namespace rocemu::vipl
