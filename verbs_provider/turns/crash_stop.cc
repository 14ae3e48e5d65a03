// With `rocemu run --stacks` a program that is about to be killed by a signal first waits until its
// stacks have been read (emulator/os/threads/stacks.h). In this time no other thread has a turn, so
// other programs notice the death at the same point as without the option.
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <initializer_list>

#include <sys/syscall.h>
#include <unistd.h>

#include "emulator/abi/runtime_dir.h"
#include "verbs_provider/system/kernel.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

constexpr long kSignalSetSize = 8;  // of a signal mask in the kernel
/// The time after which the reader of stacks has given up.
constexpr time_t kLongestLook = 45;

pid_t reader = 0;

void tell_reader() {
  siginfo_t info{};
  info.si_signo = SIGURG;
  info.si_code = SI_QUEUE;
  info.si_pid = static_cast<pid_t>(kernel(SYS_getpid));
  info.si_uid = static_cast<uid_t>(kernel(SYS_getuid));
  info.si_value.sival_int = static_cast<int>(kernel(SYS_gettid));
  if (kernel(SYS_rt_sigqueueinfo, reader, SIGURG, &info) != 0) return;
  const uint64_t done = uint64_t{1} << (SIGCONT - 1);
  const timespec longest{kLongestLook, 0};
  // The call is repeated if the tracer interrupts it.
  while (kernel(SYS_rt_sigtimedwait, &done, nullptr, &longest, kSignalSetSize) == -EINTR) {
  }
}

}  // namespace
}  // namespace rocemu::turns

/// Waits for the reader of stacks. This function is exported, so that the reader can omit the
/// frames above the program's own.
extern "C" __attribute__((visibility("default"))) void rocemu_turns_on_crash(int signal) {
  using namespace rocemu::turns;
  using rocemu::abi::ThreadSlot;
  ThreadSlot* const slot = joined() ? own_slot() : nullptr;
  if (slot != nullptr) slot->asks.store(ThreadSlot::kWaitsForReply);  // the thread keeps its turn
  tell_reader();
  if (slot != nullptr) slot->asks.store(ThreadSlot::kNothing);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);
  kernel(SYS_tgkill, kernel(SYS_getpid), kernel(SYS_gettid),
         signal);  // delivered when this handler returns
}

namespace {

/// Installs the handler for the signals of crashes. A handler that the program installs later
/// replaces it.
__attribute__((constructor)) void watch_crashes() {
  const char* const variable = getenv(rocemu::abi::kStacksVariable);
  if (variable == nullptr) return;
  rocemu::turns::reader = static_cast<pid_t>(strtol(variable, nullptr, 10));
  if (rocemu::turns::reader <= 0) return;
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS}) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
    action = {};
    action.sa_handler = rocemu_turns_on_crash;
    sigfillset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace
