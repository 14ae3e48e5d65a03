// The places between two calls of a thread, where `rocemu run --schedule N` may take its turn away.
#pragma once

namespace rocemu::turns {

/// The calling thread begins the call: reports name it if the thread was stopped before it.
void begin_call(const char* name);
/// The calling thread has ended the call, and may lose its turn now. It preserves errno.
void pass_place(const char* name);

}  // namespace rocemu::turns
