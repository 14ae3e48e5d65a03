// Reports of the provider and the shim to the library of turns (turn.h). The functions are null if
// it is not loaded.
#pragma once

/// Reports that the calling thread has sent a request to the daemon and waits for the reply, or has
/// received the reply.
extern "C" __attribute__((weak)) void rocemu_turns_asks(bool waits);

/// Reports that a poll found nothing at `key`. Returns false if the calling thread takes no
/// turns.
extern "C" __attribute__((weak)) bool rocemu_turns_found_nothing(const void* key);
/// Reports that the calling thread has rung a doorbell.
extern "C" __attribute__((weak)) void rocemu_turns_acts();
/// Reports that a poll of the calling thread found a completion.
extern "C" __attribute__((weak)) void rocemu_turns_found();

/// Reports that the calling thread begins a call of libibverbs that is not a poll, or has ended a
/// call of libibverbs or librdmacm. The thread can lose its turn there (`--schedule N`), so it must
/// hold no lock of ours. The names are never freed.
extern "C" __attribute__((weak)) void rocemu_turns_before_call(const char* name);
extern "C" __attribute__((weak)) void rocemu_turns_after_call(const char* name);
/// Reports that the calling thread takes a lock of ours (1), or has released one (-1). The thread
/// keeps its turn in between.
extern "C" __attribute__((weak)) void rocemu_turns_holds(int change);

namespace rocemu::turns {

inline void before_call(const char* name) {
  if (rocemu_turns_before_call != nullptr) [[unlikely]]
    rocemu_turns_before_call(name);
}
inline void after_call(const char* name) {
  if (rocemu_turns_after_call != nullptr) [[unlikely]]
    rocemu_turns_after_call(name);
}
inline void holds(int change) {
  if (rocemu_turns_holds != nullptr) [[unlikely]]
    rocemu_turns_holds(change);
}

/// While an object of this class exists, the calling thread waits for a reply of the daemon.
class WaitForReply {
 public:
  WaitForReply() { tell(true); }
  ~WaitForReply() { tell(false); }
  WaitForReply(const WaitForReply&) = delete;
  WaitForReply& operator=(const WaitForReply&) = delete;

 private:
  static void tell(bool waits) {
    if (rocemu_turns_asks != nullptr) rocemu_turns_asks(waits);
  }
};

}  // namespace rocemu::turns
