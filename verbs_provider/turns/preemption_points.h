// The points between two calls of a thread, at which `rocemu run --schedule N` can preempt it.
#pragma once

namespace rocemu::turns {

/// Notes that the calling thread begins the call: reports name the call if the thread was stopped
/// before it.
void begin_call(const char* name);
/// Notes that the calling thread has ended the call, and may lose its turn now. Preserves errno.
void pass_preemption_point(const char* name);

}  // namespace rocemu::turns
