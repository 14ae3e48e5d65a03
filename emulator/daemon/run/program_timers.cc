#include "emulator/daemon/run/program_timers.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "emulator/abi/turn_table.h"
#include "emulator/os/proc.h"

namespace rocemu::daemon {
namespace {

/// Returns the current count of an eventfd, which /proc/self/fdinfo shows (proc(5)); nothing if the
/// descriptor is not an eventfd. With the count, a write that would block can be avoided.
std::optional<uint64_t> count_of(int fd) {
  const std::string info = proc::contents_of("/proc/self/fdinfo/" + std::to_string(fd));
  const std::string count = proc::field_of(info, "eventfd-count");
  if (count.empty()) return std::nullopt;
  return std::strtoull(count.c_str(), nullptr, 16);
}

constexpr uint64_t kMaxCount = uint64_t{1} << 60;

}  // namespace

uint32_t ProgramTimers::make(pid_t process, Effect effect) {
  const auto first = timers_.lower_bound({process, 0});
  const auto last = timers_.upper_bound({process, UINT32_MAX});
  if (static_cast<size_t>(std::distance(first, last)) >= kMaxOfProcess) return 0;
  if (effect.fd && !count_of(effect.fd.get())) return 0;
  if (effect.signal < 0 || effect.signal > SIGRTMAX) return 0;
  if (++last_ == 0) ++last_;
  timers_.insert_or_assign({process, last_}, Timer{std::move(effect), abi::kNever, 0});
  return last_;
}

void ProgramTimers::set(pid_t process, uint32_t number, int64_t deadline_ns, int64_t interval_ns) {
  if (number == 0) timers_.try_emplace({process, 0}, Timer{{.fd = {}, .signal = SIGALRM}, 0, 0});
  const auto found = timers_.find({process, number});
  if (found == timers_.end()) return;
  found->second.deadline_ns = std::max<int64_t>(deadline_ns, 0);
  found->second.interval_ns = std::max<int64_t>(interval_ns, 0);
}

void ProgramTimers::remove(pid_t process, uint32_t number) {
  timers_.erase({process, number});
}

void ProgramTimers::remove_all(pid_t process) {
  timers_.erase(timers_.lower_bound({process, 0}), timers_.upper_bound({process, UINT32_MAX}));
}

void ProgramTimers::act(pid_t process, const Timer& timer, uint64_t times) {
  const Effect& effect = timer.effect;
  if (effect.fd) {
    if (count_of(effect.fd.get()).value_or(kMaxCount) >= kMaxCount || times >= kMaxCount) return;
    [[maybe_unused]] const ssize_t size = write(effect.fd.get(), &times, sizeof times);
    return;
  }
  if (effect.signal == 0) return;
  siginfo_t info{};
  info.si_signo = effect.signal;
  info.si_code = SI_TIMER;
  info.si_value.sival_ptr = reinterpret_cast<void*>(effect.value);
  if (effect.tid != 0) {
    syscall(SYS_rt_tgsigqueueinfo, process, effect.tid, effect.signal, &info);
  } else {
    syscall(SYS_rt_sigqueueinfo, process, effect.signal, &info);
  }
}

std::optional<engine::Instant> ProgramTimers::next_deadline() const {
  int64_t first = abi::kNever;
  for (const auto& [key, timer] : timers_) first = std::min(first, timer.deadline_ns);
  if (first == abi::kNever) return std::nullopt;
  return engine::Instant(engine::Duration(first));
}

bool ProgramTimers::expire(engine::Instant now) {
  const int64_t now_ns = now.time_since_epoch().count();
  bool any = false;
  for (auto& [key, timer] : timers_) {
    if (timer.deadline_ns > now_ns) continue;
    any = true;
    uint64_t times = 1;
    if (timer.interval_ns == 0) {
      timer.deadline_ns = abi::kNever;
    } else {
      times += static_cast<uint64_t>((now_ns - timer.deadline_ns) / timer.interval_ns);
      const int64_t ahead = static_cast<int64_t>(times) * timer.interval_ns;
      timer.deadline_ns =
          ahead > abi::kNever - timer.deadline_ns ? abi::kNever : timer.deadline_ns + ahead;
    }
    act(key.first, timer, times);
  }
  return any;
}

}  // namespace rocemu::daemon
