#include "emulator/os/threads/spinning_threads.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "emulator/os/proc.h"

namespace rocemu {
namespace {

using std::chrono::nanoseconds;

/// A thread counts as spinning if its loop repeats the same states this number of times. A loop
/// that counts in memory may repeat the states of registers and flags twice, but not this many
/// times.
constexpr size_t kRepeats = 4;
/// The number of instructions that a thread's first check runs, the factor by which the number
/// grows at each further check, and its maximum. Most loops are short; a loop of more than a
/// quarter of the maximum is not detected.
constexpr size_t kFirstSteps = 64, kGrowth = 4, kMaxSteps = 1024;
/// The duration of one instruction under ptrace(2) on a virtual machine.
constexpr nanoseconds kStepTime{20'000};
/// The processor time of a thread between two checks, as a multiple of the duration of a check.
constexpr int kPauses = 2;
/// The processor time of a thread before its first check. Most programs load their libraries in
/// less time, and a check during that time would only make them slower.
constexpr nanoseconds kFirstPause = kPauses * static_cast<int64_t>(kFirstSteps) * kStepTime;
/// The processor time of a thread between two checks after a check with kMaxSteps, since such a
/// thread seems to compute.
constexpr nanoseconds kLongestPause{200'000'000};
/// The pause after a thread could not be stopped, for example because a debugger traces it.
constexpr nanoseconds kPauseAfterRefusal{1'000'000};
/// The time limit for stopping a thread; ptrace(2) seldom takes this long.
constexpr std::chrono::milliseconds kLongStop{5};

nanoseconds own_time_of(pid_t process, pid_t thread) {
  const std::string text = proc::contents_of(proc::directory_of(process) + "/task/" +
                                             std::to_string(thread) + "/schedstat");
  return nanoseconds(std::strtoll(text.c_str(), nullptr, 10));
}

/// Returns the length of the loop at the end of `states`, if it was run kRepeats times; 0 if there
/// is no such loop.
size_t period_at_the_end_of(const std::vector<uint64_t>& states) {
  const auto same = std::find(std::next(states.rbegin()), states.rend(), states.back());
  if (same == states.rend()) return 0;
  const auto period = static_cast<size_t>(same - states.rbegin());
  if (states.size() < kRepeats * period) return 0;
  const auto end = states.end();
  const auto length = static_cast<ptrdiff_t>((kRepeats - 1) * period);
  return std::equal(end - length, end, end - length - static_cast<ptrdiff_t>(period)) ? period : 0;
}

}  // namespace

SpinningThreads::~SpinningThreads() {
  for (auto& [thread, held] : held_) held.stopped.let_go();
}

bool SpinningThreads::hold_if_it_spins(pid_t process, pid_t thread) {
  if (holds(thread)) return true;
  const auto at = known_.find(thread);
  if (at == known_.end()) {
    known_.emplace(thread, Known{own_time_of(process, thread), kFirstPause, kFirstSteps});
    return false;
  }
  Known& known = at->second;
  if (own_time_of(process, thread) - known.own_time < known.pause) return false;
  std::optional<StoppedThread> stopped = stop(process, thread);
  if (!stopped) {
    known.pause = kPauseAfterRefusal;
    known.own_time = own_time_of(process, thread);
    return false;
  }
  std::vector<uint64_t> loop;
  if (!stopped->has_signal()) loop = loop_of(*stopped, known.steps);
  if (loop.empty()) {
    let_go(thread, *stopped);
    known.pause = known.steps == kMaxSteps
                      ? kLongestPause
                      : kPauses * static_cast<int64_t>(known.steps) * kStepTime;
    known.steps = std::min(kGrowth * known.steps, kMaxSteps);
    known.own_time = own_time_of(process, thread);
    return false;
  }
  // The thread is likely to return to this loop.
  known.steps = std::clamp(2 * kRepeats * loop.size(), kFirstSteps, kMaxSteps);
  known.pause = nanoseconds(0);
  held_.emplace(thread, Held{*stopped, std::move(loop)});
  return true;
}

/// Stops a thread. If the thread executes a program, the kernel first waits until all other threads
/// of its process have ended, and until their tracer, which is this process, has reaped those that
/// it holds. ptrace(2) blocks the caller during that time. Therefore an additional thread reaps the
/// held threads meanwhile.
std::optional<StoppedThread> SpinningThreads::stop(pid_t process, pid_t thread) {
  reap();
  std::optional<pid_t> ended;
  std::optional<StoppedThread> stopped;
  std::set<pid_t> gone;
  {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::jthread reaper;
    if (!held_.empty()) {
      reaper = std::jthread([&](const std::stop_token& token) {
        std::unique_lock lock(mutex);
        while (!wake.wait_for(lock, token, kLongStop, [&] { return token.stop_requested(); })) {
          if (token.stop_requested()) return;
          for (const auto& [held, unused] : held_) {
            if (!gone.contains(held) && StoppedThread::reap(held)) gone.insert(held);
          }
        }
      });
    }
    stopped = StoppedThread::stop(process, thread, ended);
  }
  for (const pid_t held : gone) held_.erase(held);
  if (ended) ended_.insert(*ended);
  return stopped;
}

std::vector<uint64_t> SpinningThreads::loop_of(StoppedThread& stopped, size_t steps) {
  std::vector<uint64_t> states;
  for (size_t i = 0; i < steps; ++i) {
    const std::optional<uint64_t> state = stopped.state();
    if (!state) return {};
    states.push_back(*state);
    if (const size_t period = period_at_the_end_of(states); period != 0)
      return {states.end() - static_cast<ptrdiff_t>(period), states.end()};
    if (!stopped.step()) return {};
  }
  return {};
}

bool SpinningThreads::still_spins(pid_t thread) {
  const auto at = held_.find(thread);
  if (at == held_.end()) return false;
  Held& held = at->second;
  // The thread was held when it was in the last state of the loop, so it continues with the first.
  for (const uint64_t expected : held.loop) {
    if (!held.stopped.step() || held.stopped.state() != expected) {
      release(thread);
      return false;
    }
  }
  return true;
}

void SpinningThreads::let_go(pid_t thread, StoppedThread& stopped) {
  if (stopped.let_go() == StoppedThread::End::kEnded) ended_.insert(thread);
}

void SpinningThreads::release(pid_t thread) {
  const auto at = held_.find(thread);
  if (at == held_.end()) return;
  let_go(thread, at->second.stopped);
  held_.erase(at);
}

void SpinningThreads::keep_only(const std::function<bool(pid_t thread)>& is_there) {
  std::erase_if(known_, [&](const auto& known) { return !is_there(known.first); });
}

void SpinningThreads::reap() {
  std::erase_if(ended_, [](pid_t thread) { return StoppedThread::reap(thread); });
  std::erase_if(held_, [](const auto& held) { return StoppedThread::reap(held.first); });
}

}  // namespace rocemu
