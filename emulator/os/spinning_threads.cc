#include "emulator/os/spinning_threads.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "emulator/os/proc.h"

namespace rocemu {
namespace {

using std::chrono::nanoseconds;

/// It takes so many states that were seen before, in a row, to be a loop.
constexpr uint32_t kEnough = 4;
/// A loop of few instructions has few states. What has more computes something, and is seen in one
/// of so few again only by chance.
constexpr size_t kMaxStates = 16;
/// A thread that waits for a processor shows an old state: it has to have run for so long. To stop
/// it for a look takes a tenth of that, on a busy virtual machine a fifth: were it not much less,
/// the thread would do nothing between two looks but stop.
constexpr nanoseconds kRan{500'000};
/// A thread that is interrupted stops within that time, however busy the machine is.
constexpr std::chrono::seconds kStopped{5};
constexpr std::chrono::microseconds kLook{10};

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

/// ptrace(2): of a thread that was seized.
class Interrupted {
 public:
  explicit Interrupted(pid_t thread) : thread_(thread) {
    is_stopped_ = ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0 && wait() == thread &&
                  WIFSTOPPED(status_);
  }
  bool is_stopped() const { return is_stopped_; }

  /// A number for its general registers; nothing if it is in a system call.
  std::optional<uint64_t> registers() const {
    user_regs_struct registers{};
    iovec part{&registers, sizeof registers};
    if (ptrace(PTRACE_GETREGSET, thread_, reinterpret_cast<void*>(NT_PRSTATUS), &part) != 0 ||
        is_in_system_call(thread_, registers))
      return std::nullopt;
    // FNV-1a (Fowler, Noll, Vo).
    uint64_t hash = 0xcbf29ce484222325;
    const auto* bytes = reinterpret_cast<const unsigned char*>(&registers);
    for (size_t i = 0; i < part.iov_len; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
  }

  /// False if it is traced still.
  bool let_go() const {
    if (!is_stopped_) return false;
    // A signal that came meanwhile goes on to it.
    const bool is_interrupt = (status_ >> 16) == PTRACE_EVENT_STOP;
    const long signal = is_interrupt ? 0 : WSTOPSIG(status_);
    return ptrace(PTRACE_DETACH, thread_, nullptr, signal) == 0;
  }

 private:
  /// Soon over, unless the thread ends meanwhile and is one whose end the system tells only with
  /// that of all other threads.
  pid_t wait() {
    const auto deadline = std::chrono::steady_clock::now() + kStopped;
    for (;;) {
      const pid_t waited = waitpid(thread_, &status_, __WALL | WNOHANG);
      if (waited != 0 || std::chrono::steady_clock::now() > deadline) return waited;
      std::this_thread::sleep_for(kLook);
    }
  }

  pid_t thread_;
  int status_ = 0;
  bool is_stopped_ = false;
};

}  // namespace

std::optional<uint64_t> SpinningThreads::registers_of(pid_t process, pid_t thread) {
  if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) return std::nullopt;
  const Interrupted interrupted(thread);
  if (!interrupted.is_stopped()) {
    // It has ended; or it executes a program, and has the process's number now.
    if (thread == process || !Interrupted(process).let_go()) ended_.insert({thread, process});
    let_go();
    return std::nullopt;
  }
  const std::optional<uint64_t> number = interrupted.registers();
  if (!interrupted.let_go()) ended_.insert(thread);
  return number;
}

void SpinningThreads::let_go() {
  std::erase_if(ended_,
                [](pid_t thread) { return waitpid(thread, nullptr, __WALL | WNOHANG) != 0; });
}

void SpinningThreads::look_again() {
  let_go();
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
  const std::optional<uint64_t> state = registers_of(process, thread);
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
