// The thread that calls the program's handlers, one at a time, without any lock. With the NIC
// locked, but for start.
#pragma once

#include "vipl/objects.h"

namespace rocemu::vipl {

/// Throws std::system_error.
void start_handler_thread(Nic& nic);
void call_later(Nic& nic, Job job);
/// From now on events of the CQ's channel come to the thread, one at a time.
void watch(Cq& cq, int operation);
/// Until no handler of the object runs, unless this is called by it.
void wait_for_handler(Nic& nic, Lock& lock, const Object& owner);

}  // namespace rocemu::vipl
