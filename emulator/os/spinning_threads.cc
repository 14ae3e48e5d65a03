#include "emulator/os/spinning_threads.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "emulator/os/proc.h"

namespace rocemu {
namespace {

using std::chrono::nanoseconds;

/// It takes so many states that were seen before, in a row, to be a loop.
constexpr uint32_t kEnough = 3;
/// A loop of few instructions has few states. What has more computes something, and is seen in one
/// of so few again only by chance.
constexpr size_t kMaxStates = 16;
/// A thread that waits for a processor shows an old state: it has to have run for so long. To stop
/// it for a look takes a tenth of that.
constexpr nanoseconds kRan{100'000};

/// One that makes the same call again and again is seen in the same place each time.
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

nanoseconds own_time_of(pid_t process, pid_t thread) {
  const std::string text = proc::contents_of(proc::directory_of(process) + "/task/" +
                                             std::to_string(thread) + "/schedstat");
  return nanoseconds(std::strtoll(text.c_str(), nullptr, 10));
}

}  // namespace

std::optional<uint64_t> registers_of(pid_t thread) {
  if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) return std::nullopt;
  std::optional<uint64_t> number;
  int status = 0;
  if (ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0 &&
      waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status)) {
    user_regs_struct registers{};
    iovec part{&registers, sizeof registers};
    if (ptrace(PTRACE_GETREGSET, thread, reinterpret_cast<void*>(NT_PRSTATUS), &part) == 0 &&
        !is_in_system_call(thread, registers)) {
      // FNV-1a (Fowler, Noll, Vo).
      uint64_t hash = 0xcbf29ce484222325;
      const auto* bytes = reinterpret_cast<const unsigned char*>(&registers);
      for (size_t i = 0; i < part.iov_len; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
      number = hash;
    }
    // A signal that came meanwhile goes on to it.
    const bool is_interrupt = (status >> 16) == PTRACE_EVENT_STOP;
    const long signal = is_interrupt ? 0 : WSTOPSIG(status);
    ptrace(PTRACE_DETACH, thread, nullptr, signal);
  }
  return number;
}

void SpinningThreads::look_again() {
  for (auto& [id, thread] : threads_) thread.must_run = true;
}

bool SpinningThreads::spins(pid_t process, pid_t thread, bool again) {
  Thread& known = threads_[thread];
  const nanoseconds own_time = own_time_of(process, thread);
  if (std::exchange(known.must_run, false)) {
    known.own_time = own_time;
    return false;
  }
  if (own_time - known.own_time < kRan) return again && known.repeated >= kEnough;
  const std::optional<uint64_t> state = registers_of(thread);
  known.own_time = own_time_of(process, thread);
  if (!state) return false;
  if (!known.states.insert(*state).second) {
    if (known.repeated < kEnough) ++known.repeated;
  } else {
    known.repeated = 0;
    if (known.states.size() > kMaxStates) known.states.clear();
  }
  return known.repeated >= kEnough;
}

}  // namespace rocemu
