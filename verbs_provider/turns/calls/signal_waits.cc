// Calls that wait for signals
#include <cerrno>
#include <csignal>
#include <ctime>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/system/kernel.h"
#include "verbs_provider/turns/fault_action.h"
#include "verbs_provider/turns/times.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

constexpr long kMaskSize = 8;  // of a signal mask in the kernel

shim::Next<int(const sigset_t*, siginfo_t*)> next_sigwaitinfo("sigwaitinfo");
shim::Next<int(const sigset_t*, siginfo_t*, const timespec*)> next_sigtimedwait("sigtimedwait");
shim::Next<int(const sigset_t*, int*)> next_sigwait("sigwait");
shim::Next<int(const sigset_t*)> next_sigsuspend("sigsuspend");
shim::Next<int()> next_pause("pause");

/// Returns the signal, or a negative errno value, or 0 if the daemon has ended.
long take_signal(const sigset_t* signals, siginfo_t* info, int64_t deadline) {
  long taken = -EAGAIN;
  const End end = wait(Call::of(SYS_rt_sigtimedwait, signals), deadline, [&] {
    const timespec now{};
    taken = kernel(SYS_rt_sigtimedwait, signals, info, &now, kMaskSize);
    return taken != -EAGAIN;
  });
  if (end == End::kInterrupted) return -EINTR;
  return end == End::kLeft ? 0 : taken;
}

/// Waits with that mask, or the present one if it is null, until a handler has run. Returns false
/// if the daemon has ended.
bool wait_for_handler(const sigset_t* mask) {
  const MaskWithoutFaults used(mask);
  const End end = wait(Call::of(SYS_rt_sigsuspend), abi::kNever, [&] {
    const timespec now{};
    return kernel(SYS_ppoll, nullptr, 0L, &now, used.get(), kMaskSize) == -EINTR;
  });
  return end != End::kLeft;
}

}  // namespace
}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(int, sigtimedwait,
               (const sigset_t* signals, siginfo_t* info, const timespec* time)) {
  if ((time != nullptr && !is_valid(*time)) || !active())
    return next_sigtimedwait(signals, info, time);
  const long taken = take_signal(signals, info, deadline_of(time));
  if (taken == 0) return next_sigtimedwait(signals, info, time);
  if (taken > 0) return static_cast<int>(taken);
  errno = static_cast<int>(-taken);
  return -1;
}

ROCEMU_REPLACE(int, sigwaitinfo, (const sigset_t* signals, siginfo_t* info)) {
  if (!active()) return next_sigwaitinfo(signals, info);
  return rocemu_shim_sigtimedwait(signals, info, nullptr);
}

ROCEMU_REPLACE(int, sigwait, (const sigset_t* signals, int* signal)) {
  if (!active()) return next_sigwait(signals, signal);
  long taken;
  do {
    taken = take_signal(signals, nullptr, rocemu::abi::kNever);
  } while (taken == -EINTR);
  if (taken == 0) return next_sigwait(signals, signal);
  if (taken < 0) return static_cast<int>(-taken);
  *signal = static_cast<int>(taken);
  return 0;
}

ROCEMU_REPLACE(int, sigsuspend, (const sigset_t* mask)) {
  if (!active() || !wait_for_handler(mask)) return next_sigsuspend(mask);
  errno = EINTR;
  return -1;
}

ROCEMU_REPLACE(int, pause, ()) {
  if (!active() || !wait_for_handler(nullptr)) return next_pause();
  errno = EINTR;
  return -1;
}
