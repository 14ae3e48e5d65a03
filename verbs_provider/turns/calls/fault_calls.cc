// Calls with which a program handles and blocks SIGSEGV, while the installed handler of the signal
// is ours (cycle_counter.h). The kernel must never block the signal in this case: each read of the
// cycle counter faults, and a blocked fault ends the process. A program that queries its mask
// therefore does not find the signal there, and a SIGSEGV from kill(2) is delivered at once.
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstring>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/system/kernel.h"
#include "verbs_provider/turns/cycle_counter.h"
#include "verbs_provider/turns/fault_action.h"

namespace rocemu::turns {
namespace {

constexpr size_t kMaskSize = 8;  // of a signal mask in the kernel

using Jump = void(__jmp_buf_tag*, int);

shim::Next<int(int, const struct sigaction*, struct sigaction*)> next_sigaction("sigaction");
shim::Next<sighandler_t(int, sighandler_t)> next_signal("signal");
shim::Next<sighandler_t(int, sighandler_t)> next_sysv_signal("__sysv_signal");
shim::Next<int(int, const sigset_t*, sigset_t*)> next_sigprocmask("sigprocmask");
shim::Next<int(int, const sigset_t*, sigset_t*)> next_pthread_sigmask("pthread_sigmask");
shim::Next<Jump> next_longjmp("longjmp");
shim::Next<Jump> next_underscore_longjmp("_longjmp");
shim::Next<Jump> next_siglongjmp("siglongjmp");
shim::Next<Jump> next_longjmp_chk("__longjmp_chk");

struct sigaction programs {};
sigset_t mask_before;  // take_fault_action()

/// The frame in which the thread called the program's handler; 0 while no handler runs. A fault in
/// a frame below that comes from the handler.
__attribute__((tls_model("initial-exec"))) thread_local uintptr_t handler_frame = 0;

bool is_handler(const struct sigaction& action) {
  return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

/// Ends the process by the signal: a faulting instruction faults again, and a sent signal is sent
/// again.
void die(const siginfo_t& info) {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  next_sigaction(SIGSEGV, &standard, nullptr);
  if (info.si_code <= 0)
    kernel(SYS_tgkill, kernel(SYS_getpid), kernel(SYS_gettid), static_cast<long>(SIGSEGV));
}

/// Does what the program's sigaction(2) for SIGSEGV requests.
void act_on_fault(siginfo_t* info, void* context) {
  const struct sigaction action = programs;
  const bool was_sent = info->si_code <= 0;
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const bool is_blocked = (action.sa_flags & SA_NODEFER) == 0 && frame < handler_frame;
  if (action.sa_handler == SIG_IGN && was_sent) return;
  if (!is_handler(action) || (is_blocked && !was_sent)) return die(*info);
  if ((action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) programs.sa_handler = SIG_DFL;
  // The end of our handler, or siglongjmp(3), restores the previous mask.
  next_pthread_sigmask(SIG_BLOCK, MaskWithoutFaults(&action.sa_mask).get(), nullptr);
  const uintptr_t outer = handler_frame;
  handler_frame = frame;
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(SIGSEGV, info, context);
  } else {
    action.sa_handler(SIGSEGV);
  }
  handler_frame = outer;
}

void on_fault(int, siginfo_t* info, void* context) {
  if (!answer_fault(*info, static_cast<ucontext_t*>(context))) act_on_fault(info, context);
}

void set_handler() {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  // SA_NODEFER is set, because a handler of the program can read the counter.
  action.sa_flags = SA_SIGINFO | SA_NODEFER | (programs.sa_flags & (SA_ONSTACK | SA_RESTART));
  next_sigaction(SIGSEGV, &action, nullptr);
}

sighandler_t replace(int flags, sighandler_t handler) {
  struct sigaction action {
  }, old{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(SIGSEGV, &action, &old);
  return old.sa_handler;
}

}  // namespace

MaskWithoutFaults::MaskWithoutFaults(const sigset_t* mask) : used_(mask) {
  if (mask == nullptr || !has_virtual_cycles()) return;
  sigemptyset(&changed_);
  memcpy(&changed_, mask, kMaskSize);  // a mask in the kernel is no larger
  sigdelset(&changed_, SIGSEGV);
  used_ = &changed_;
}

void let_faults_come() {
  sigset_t faults;
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  next_pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
}

void take_fault_action() {
  next_sigaction(SIGSEGV, nullptr, &programs);
  set_handler();
  next_pthread_sigmask(SIG_BLOCK, nullptr, &mask_before);
  let_faults_come();
}

void give_back_fault_action() {
  next_sigaction(SIGSEGV, &programs, nullptr);
  next_pthread_sigmask(SIG_SETMASK, &mask_before, nullptr);
}

}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(int, sigaction,
               (int signal, const struct sigaction* action, struct sigaction* old)) {
  if (!has_virtual_cycles() || (signal != SIGSEGV && action == nullptr))
    return next_sigaction(signal, action, old);
  if (signal != SIGSEGV) {  // the program's handler can read the counter
    struct sigaction without = *action;
    sigdelset(&without.sa_mask, SIGSEGV);
    return next_sigaction(signal, &without, old);
  }
  const struct sigaction before = programs;
  if (action != nullptr) {
    programs = *action;
    set_handler();
  }
  if (old != nullptr) *old = before;
  return 0;
}

ROCEMU_REPLACE(sighandler_t, signal, (int signal, sighandler_t handler)) {
  if (signal != SIGSEGV || !has_virtual_cycles()) return next_signal(signal, handler);
  return replace(SA_RESTART, handler);
}
/// Behaves like signal() with _XOPEN_SOURCE.
ROCEMU_REPLACE(sighandler_t, __sysv_signal, (int signal, sighandler_t handler)) {
  if (signal != SIGSEGV || !has_virtual_cycles()) return next_sysv_signal(signal, handler);
  return replace(static_cast<int>(SA_RESETHAND | SA_NODEFER), handler);
}
ROCEMU_REPLACE(sighandler_t, sysv_signal, (int signal, sighandler_t handler)) {
  return rocemu_shim___sysv_signal(signal, handler);
}

ROCEMU_REPLACE(int, sigprocmask, (int how, const sigset_t* set, sigset_t* old)) {
  return how == SIG_UNBLOCK ? next_sigprocmask(how, set, old)
                            : next_sigprocmask(how, MaskWithoutFaults(set).get(), old);
}
ROCEMU_REPLACE(int, pthread_sigmask, (int how, const sigset_t* set, sigset_t* old)) {
  return how == SIG_UNBLOCK ? next_pthread_sigmask(how, set, old)
                            : next_pthread_sigmask(how, MaskWithoutFaults(set).get(), old);
}

/// Notes that a handler has ended if siglongjmp(3) leaves it.
ROCEMU_REPLACE(void, longjmp, (__jmp_buf_tag * place, int value)) {
  handler_frame = 0;
  next_longjmp(place, value);
}
ROCEMU_REPLACE(void, _longjmp, (__jmp_buf_tag * place, int value)) {
  handler_frame = 0;
  next_underscore_longjmp(place, value);
}
ROCEMU_REPLACE(void, siglongjmp, (__jmp_buf_tag * place, int value)) {
  handler_frame = 0;
  next_siglongjmp(place, value);
}
ROCEMU_REPLACE(void, __longjmp_chk, (__jmp_buf_tag * place, int value)) {
  handler_frame = 0;
  next_longjmp_chk(place, value);
}
