#include "verbs_provider/system/signal_restart.h"

#include <csignal>
#include <cstdint>

#include <sys/syscall.h>

#include "verbs_provider/system/raw.h"

namespace rocemu::shim {
namespace {

/// Returns whether an instruction's fault raises the signal, which therefore does not interrupt a
/// wait. A sanitizer handles all of these signals, without SA_RESTART.
bool is_of_a_fault(int signal) {
  switch (signal) {
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGSYS:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool restarts_after_signals() {
  struct KernelAction {  // the beginning is the same on all architectures
    uintptr_t handler;
    unsigned long flags;
    unsigned long rest[6];
  };
  constexpr int kLast = 64, kOfTheLibrary = 32;  // 32 and 33
  for (int signal = 1; signal <= kLast; ++signal) {
    if (signal == kOfTheLibrary || signal == kOfTheLibrary + 1 || is_of_a_fault(signal)) continue;
    KernelAction action{};
    if (raw_syscall(SYS_rt_sigaction, signal, nullptr, &action, 8) != 0) continue;
    if (action.handler == reinterpret_cast<uintptr_t>(SIG_DFL) ||
        action.handler == reinterpret_cast<uintptr_t>(SIG_IGN)) {
      continue;
    }
    if ((action.flags & SA_RESTART) == 0) return false;
  }
  return true;
}

}  // namespace rocemu::shim
