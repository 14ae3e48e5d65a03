#include "emulator/daemon/run/quiescence.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "emulator/os/proc.h"
#include "emulator/os/threads/runnable.h"

namespace rocemu::daemon {
namespace {

using proc::contents_of;

std::vector<pid_t> threads_of(pid_t process) {
  return proc::numbers_in(proc::directory_of(process) + "/task");
}

std::vector<pid_t> children_of(pid_t process, pid_t thread) {
  const std::string text = contents_of(fmt::format("/proc/{}/task/{}/children", process, thread));
  std::vector<pid_t> children;
  for (const char* at = text.c_str(); *at != '\0';) {
    char* end;
    const long pid = std::strtol(at, &end, 10);
    if (end == at) break;
    children.push_back(static_cast<pid_t>(pid));
    at = end + 1;
  }
  return children;
}

/// Returns the letter of the field "State" (proc(5)); a space if there is none.
char state_of(std::string_view status) {
  constexpr std::string_view kField = "\nState:\t";
  const size_t at = status.find(kField);
  return at == std::string_view::npos ? ' ' : status[at + kField.size()];
}

/// The time for which a process that has ended may be a zombie before its parent is woken. It is
/// long because the processor of a virtual machine may stop in between. The run waits for this time
/// only if the parent does not wait for the process.
constexpr std::chrono::milliseconds kUntilParentsWake{100};

/// The processor time after which a thread counts as computing. A thread that computes reaches it
/// soon, even if the machine is busy.
constexpr std::chrono::milliseconds kOwnTime{500};

/// Returns the processor time of a thread, which is the first number of schedstat, in nanoseconds
/// (Documentation/scheduler/sched-stats).
std::chrono::nanoseconds processor_time_of(pid_t process, pid_t thread) {
  const std::string text = contents_of(fmt::format("/proc/{}/task/{}/schedstat", process, thread));
  return std::chrono::nanoseconds(std::strtoll(text.c_str(), nullptr, 10));
}

std::string switches_of(const std::string& status) {
  const size_t at = status.find("\nvoluntary_ctxt_switches");
  return at == std::string::npos ? "" : status.substr(at);
}

}  // namespace

Quiescence::Quiescence(std::optional<pid_t> ancestor, bool parents_wait, SpinningThreads* spinning)
    : ancestor_(ancestor), parents_wait_(parents_wait), spinning_(spinning) {}

/// Returns whether the thread sleeps, is stopped by a signal or a debugger, or has been dead for a
/// while. Returns false for a thread that waits for a disk (D), since it will soon continue by
/// itself.
bool Quiescence::is_asleep(pid_t thread, char state, bool runnable) {
  if (state == 'Z' || state == 'X') {
    if (!parents_wait_) return true;
    const auto now = std::chrono::steady_clock::now();
    return now - dead_since_.emplace(thread, now).first->second >= kUntilParentsWake;
  }
  return !runnable && (state == 'S' || state == 'T' || state == 't');
}

bool Quiescence::is_quiet(const std::vector<pid_t>& clients) {
  look(clients, Proof::kState);
  if (!all_asleep_) return false;
  look(clients, Proof::kPlace);
  return all_asleep_ && now_.size() == last_.size() &&
         std::equal(now_.begin(), now_.end(), last_.begin(), [](const auto& a, const auto& b) {
           return a.first == b.first && a.second.switches == b.second.switches;
         });
}

void Quiescence::look(const std::vector<pid_t>& clients, Proof proof) {
  if (spinning_ != nullptr) spinning_->reap();
  std::swap(last_, now_);
  now_.clear();
  processes_.clear();
  running_.clear();
  all_asleep_ = true;
  std::vector<pid_t> more = clients;
  if (ancestor_) {
    for (const pid_t thread : threads_of(*ancestor_)) {
      for (const pid_t child : children_of(*ancestor_, thread)) more.push_back(child);
    }
  }
  while (!more.empty()) {
    const pid_t process = more.back();
    more.pop_back();
    if (process == getpid() || !processes_.insert(process).second) continue;
    look_at(process, more, proof);
  }
  const auto is_there = [&](pid_t thread) { return now_.contains(thread); };
  std::erase_if(dead_since_, [&](const auto& one) { return !is_there(one.first); });
  if (spinning_ != nullptr) spinning_->keep_only(is_there);
}

void Quiescence::look_at(pid_t process, std::vector<pid_t>& more, Proof proof) {
  for (const pid_t thread : threads_of(process)) {
    // is_runnable() is called before the number of switches is read: if the thread goes to sleep in
    // between, that number shows it.
    const bool runnable = proof == Proof::kPlace && is_runnable(process, thread);
    const std::string status = contents_of(fmt::format("/proc/{}/task/{}/status", process, thread));
    if (status.empty()) continue;
    Thread seen{switches_of(status), {}};
    const char state = state_of(status);
    const bool is_held = spinning_ != nullptr && (spinning_->holds(thread) ||
                                                  (state == 't' && spinning_->is_stopping(thread)));
    bool asleep = !is_held && is_asleep(thread, state, runnable);
    if (asleep) {
      ignored_.erase(thread);
    } else if (spins(process, thread, proof)) {
      asleep = true;
      seen.switches.clear();
    } else {
      running_.emplace_back(process, thread);
      if (!ignored_.contains(thread)) all_asleep_ = false;
    }
    // Children need to be read again only if the thread has run, since only then it can have new
    // ones.
    const auto before = last_.find(thread);
    const bool has_run =
        before == last_.end() || before->second.switches != seen.switches || !asleep;
    seen.children = has_run ? children_of(process, thread) : before->second.children;
    if (ignored_.contains(thread)) seen.switches.clear();
    more.insert(more.end(), seen.children.begin(), seen.children.end());
    now_.emplace(thread, std::move(seen));
  }
}

void Quiescence::begin_wait() {
  processor_time_.clear();
  waiting_since_ = std::chrono::steady_clock::now();
}

/// Returns whether the thread spins, and holds it if it does. A held thread is checked again while
/// all other threads sleep: if it still spins then, it has seen everything that they wrote to
/// memory. If it has left its loop, it continues before other held threads are checked, so only one
/// continues at a time.
bool Quiescence::spins(pid_t process, pid_t thread, Proof proof) {
  if (spinning_ == nullptr || ignored_.contains(thread)) return false;
  if (spinning_->holds(thread))
    return proof == Proof::kState || !all_asleep_ || spinning_->still_spins(thread);
  return proof == Proof::kState && waits_long() && spinning_->hold_if_it_spins(process, thread);
}

/// Returns whether the wait has lasted for 1 ms, so that a thread may be spinning. Earlier checks
/// would cost too much time.
bool Quiescence::waits_long() const {
  constexpr std::chrono::milliseconds kLong{1};
  return std::chrono::steady_clock::now() - waiting_since_ >= kLong;
}

bool Quiescence::anyone_runs() const {
  return std::ranges::any_of(running_,
                             [&](const auto& one) { return !ignored_.contains(one.second); });
}

bool Quiescence::everyone_had(std::chrono::nanoseconds time) {
  bool had = !running_.empty();
  for (const auto& [process, thread] : running_) {
    const std::chrono::nanoseconds now = processor_time_of(process, thread);
    had &= now - processor_time_.emplace(thread, now).first->second >= time;
  }
  return had;
}

std::string Quiescence::give_up_on_running(bool all) {
  std::string names;
  for (const auto& [process, thread] : running_) {
    if (ignored_.contains(thread)) continue;
    const std::chrono::nanoseconds time = processor_time_of(process, thread);
    const auto before = processor_time_.emplace(thread, time).first->second;
    if (!all && time - before < kOwnTime) continue;
    ignored_.insert(thread);
    std::string name = contents_of(fmt::format("/proc/{}/task/{}/comm", process, thread));
    while (!name.empty() && name.back() == '\n') name.pop_back();
    names += fmt::format("{}thread {} (tid {}) of pid {}", names.empty() ? "" : ", ", name, thread,
                         process);
  }
  return names;
}

}  // namespace rocemu::daemon
