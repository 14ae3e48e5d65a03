// Signal masks of threads that do not take turns yet or any more. A signal for the process is
// handled by any thread that does not block it, so such threads must block signals: they would
// handle them at a random time.
#pragma once

#include <csignal>
#include <cstdint>

#include <sys/syscall.h>

#include "verbs_provider/system/kernel.h"

namespace rocemu::turns {

/// The size of a mask in the kernel's format, in bytes.
inline constexpr long kSignalMaskSize = sizeof(uint64_t);

constexpr uint64_t signal_bit(int signal) {
  return uint64_t{1} << (signal - 1);
}

/// The signals that the C library uses itself, for pthread_cancel(3) and setuid(2).
inline uint64_t internal_signals() {
  uint64_t signals = 0;
  for (int one = 32; one < SIGRTMIN; ++one) signals |= signal_bit(one);
  return signals;
}

/// The signals that can wait: all but the internal ones, those that an instruction causes, and
/// those that cannot be blocked.
inline uint64_t deferrable_signals() {
  constexpr uint64_t kOthers = signal_bit(SIGSEGV) | signal_bit(SIGBUS) | signal_bit(SIGFPE) |
                               signal_bit(SIGILL) | signal_bit(SIGTRAP) | signal_bit(SIGSYS) |
                               signal_bit(SIGKILL) | signal_bit(SIGSTOP);
  return ~(kOthers | internal_signals());
}

inline uint64_t signal_mask() {
  uint64_t mask = 0;
  kernel(SYS_rt_sigprocmask, SIG_SETMASK, nullptr, &mask, kSignalMaskSize);
  return mask;
}

inline void set_signal_mask(uint64_t mask) {
  kernel(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, kSignalMaskSize);
}

/// Blocks the deferrable signals, too. Returns the previous mask.
inline uint64_t block_signals() {
  uint64_t before = 0;
  const uint64_t more = deferrable_signals();
  kernel(SYS_rt_sigprocmask, SIG_BLOCK, &more, &before, kSignalMaskSize);
  return before;
}

}  // namespace rocemu::turns
