#include "emulator/os/threads/stopped_thread.h"

#include <elf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <string>

#include "emulator/os/proc.h"

namespace rocemu {
namespace {

using Clock = std::chrono::steady_clock;

/// The time limit for a thread to stop when it is ordered to, even if the machine is busy.
constexpr std::chrono::seconds kStopped{5};
/// The interval between checks for a stop. If SIGCHLD is blocked, it ends the interval early.
constexpr timespec kLook{0, 1'000'000};

/// Calls waitpid(2) until the thread stops or ends, or 5 s have passed.
pid_t wait_for(pid_t thread, int& status) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const Clock::time_point until = Clock::now() + kStopped;
  for (;;) {
    const pid_t waited = waitpid(thread, &status, __WALL | WNOHANG);
    if (waited != 0 || Clock::now() > until) return waited;
    sigtimedwait(&child, nullptr, &kLook);
  }
}

/// Returns whether the thread is in a system call. A thread that repeats the same call would
/// otherwise seem to spin, since its registers are the same each time.
bool is_in_system_call([[maybe_unused]] pid_t thread,
                       [[maybe_unused]] const user_regs_struct& registers) {
#if defined(__x86_64__)
  return static_cast<long>(registers.orig_rax) >= 0;
#elif defined(__aarch64__)
  int number = -1;
  iovec part{&number, sizeof number};
  return ptrace(PTRACE_GETREGSET, thread, reinterpret_cast<void*>(NT_ARM_SYSTEM_CALL), &part) !=
             0 ||
         number >= 0;
#else
  return true;
#endif
}

unsigned long instruction_pointer(const user_regs_struct& registers) {
#if defined(__x86_64__)
  return registers.rip;
#elif defined(__aarch64__)
  return registers.pc;
#else
  return 0;
#endif
}

/// Returns whether the next instruction cannot be run alone, because it enters the kernel or, on
/// arm64, is an exclusive load or store, which always fails if the pair of them is interrupted.
bool leads_elsewhere(pid_t thread, const user_regs_struct& registers) {
  errno = 0;
  const auto word = static_cast<uint64_t>(ptrace(
      PTRACE_PEEKTEXT, thread, reinterpret_cast<void*>(instruction_pointer(registers)), nullptr));
  if (errno != 0) return true;
#if defined(__x86_64__)
  const uint64_t two = word & 0xffff;
  return two == 0x050f /* syscall */ || two == 0x340f /* sysenter */ || two == 0x80cd /* int 80 */;
#elif defined(__aarch64__)
  const uint32_t four = static_cast<uint32_t>(word);
  return (four & 0xffe0001f) == 0xd4000001 /* svc */ ||
         (four & 0x3f800000) == 0x08000000 /* load and store exclusive */;
#else
  return word == word;
#endif
}

[[maybe_unused]] bool has_pending_signal(pid_t thread) {
  const std::string status = proc::contents_of(proc::directory_of(thread) + "/status");
  const auto set = [&](const char* name) {
    return std::strtoull(proc::field_of(status, name).c_str(), nullptr, 16);
  };
  return ((set("SigPnd") | set("ShdPnd")) & ~set("SigBlk")) != 0;
}

/// Makes the thread repeat an interrupted system call. Some calls, such as epoll_wait(2), fail with
/// EINTR when a thread is stopped, even without a signal to handle (ptrace(2), "Interrupted system
/// calls"), so the program would notice the stop. On arm64 this is not possible, because the first
/// argument is already lost.
void restart_interrupted_call([[maybe_unused]] pid_t thread) {
#if defined(__x86_64__)
  constexpr unsigned long kLengthOfSyscall = 2;
  user_regs_struct registers{};
  iovec part{&registers, sizeof registers};
  if (ptrace(PTRACE_GETREGSET, thread, reinterpret_cast<void*>(NT_PRSTATUS), &part) != 0 ||
      !is_in_system_call(thread, registers) || static_cast<long>(registers.rax) != -EINTR ||
      has_pending_signal(thread))
    return;
  registers.rax = registers.orig_rax;
  registers.rip -= kLengthOfSyscall;
  ptrace(PTRACE_SETREGSET, thread, reinterpret_cast<void*>(NT_PRSTATUS), &part);
#endif
}

}  // namespace

std::optional<StoppedThread> StoppedThread::stop(pid_t process, pid_t thread,
                                                 std::optional<pid_t>& ended) {
  if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) return std::nullopt;
  const auto interrupt = [](pid_t traced) -> std::optional<StoppedThread> {
    int status = 0;
    if (ptrace(PTRACE_INTERRUPT, traced, nullptr, nullptr) == 0 &&
        wait_for(traced, status) == traced && WIFSTOPPED(status))
      return StoppedThread(traced, status);
    return std::nullopt;
  };
  if (std::optional<StoppedThread> stopped = interrupt(thread)) return stopped;
  // The thread has ended; or it has executed a program, and now has the number of its process.
  std::optional<StoppedThread> first;
  if (thread != process) first = interrupt(process);
  if (!first || first->let_go() != End::kRuns) ended = thread;
  return std::nullopt;
}

std::optional<uint64_t> StoppedThread::state() const {
  user_regs_struct registers{};
  iovec part{&registers, sizeof registers};
  if (ptrace(PTRACE_GETREGSET, thread_, reinterpret_cast<void*>(NT_PRSTATUS), &part) != 0 ||
      is_in_system_call(thread_, registers) || leads_elsewhere(thread_, registers))
    return std::nullopt;
  // The hash is FNV-1a (Fowler, Noll, Vo).
  uint64_t hash = 0xcbf29ce484222325;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&registers);
  for (size_t i = 0; i < part.iov_len; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

bool StoppedThread::has_signal() const {
  const bool is_ours = (status_ >> 16) == PTRACE_EVENT_STOP || status_ >> 8 == SIGTRAP;
  return WIFSTOPPED(status_) && !is_ours;
}

bool StoppedThread::step() {
  if (ptrace(PTRACE_SINGLESTEP, thread_, nullptr, nullptr) != 0) return false;
  int status = 0;
  if (wait_for(thread_, status) != thread_) return false;
  status_ = status;
  return WIFSTOPPED(status) && status >> 8 == SIGTRAP;
}

StoppedThread::End StoppedThread::let_go() {
  if (WIFEXITED(status_) || WIFSIGNALED(status_)) return End::kGone;
  const long signal = has_signal() ? WSTOPSIG(status_) : 0;
  if (signal == 0) restart_interrupted_call(thread_);
  return ptrace(PTRACE_DETACH, thread_, nullptr, signal) == 0 ? End::kRuns : End::kEnded;
}

bool StoppedThread::reap(pid_t thread) {
  int status = 0;
  const pid_t waited = waitpid(thread, &status, __WALL | WNOHANG);
  if (waited == thread && WIFSTOPPED(status)) StoppedThread(thread, status).let_go();  // at last
  return waited != 0;
}

}  // namespace rocemu
