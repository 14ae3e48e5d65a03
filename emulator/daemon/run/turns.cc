#include "emulator/daemon/run/turns.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "emulator/abi/turn_handshake.h"
#include "emulator/daemon/base/start_error.h"
#include "emulator/daemon/run/starting_programs.h"
#include "emulator/os/proc.h"
#include "emulator/os/threads/runnable.h"

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;
using abi::ThreadSlot;
using abi::TurnTable;
using Nanoseconds = std::chrono::nanoseconds;
using RealClock = std::chrono::steady_clock;

/// The time after which a thread that has its turn is examined: it may be in a system call that the
/// library of turns does not replace.
constexpr Nanoseconds kLook = 1ms;
/// A thread that uses kOwnTime of processor time without a call may do so forever, so the run
/// continues without waiting for it after kPatience. A thread that waits for a processor or a disk
/// has until kMaxPatience.
constexpr Nanoseconds kPatience = 2s, kOwnTime = 500ms, kMaxPatience = 60s;
/// A process that sleeps for kUntilJoined without joining counts as one that never joins; after
/// kAboutToJoin, even if is_about_to_join() returns true.
constexpr Nanoseconds kUntilJoined = 20ms, kAboutToJoin = 2s;
constexpr Nanoseconds kMinLook = 30us, kMaxLook = 1ms;

std::string status_of(const ThreadSlot& slot) {
  return proc::contents_of(task_file(slot, "status"));
}

/// Returns a text with the thread's number of context switches if it sleeps or is stopped;
/// otherwise an empty text.
std::string sleep_of(const ThreadSlot& slot, const std::string& status) {
  const std::string state = proc::field_of(status, "State");
  if (!state.starts_with('S') && !state.starts_with('T') && !state.starts_with('t')) return "";
  if (is_runnable(slot.pid.load(), slot.tid.load())) return "";
  return "slept " + proc::field_of(status, "voluntary_ctxt_switches") + "+" +
         proc::field_of(status, "nonvoluntary_ctxt_switches");
}

Nanoseconds processor_time_of(const ThreadSlot& slot) {
  const std::string text = proc::contents_of(task_file(slot, "schedstat"));
  return Nanoseconds(std::strtoll(text.c_str(), nullptr, 10));
}

/// Returns whether the process is alive. A zombie is not alive.
bool is_alive(pid_t process) {
  const std::string state =
      proc::field_of(proc::contents_of(proc::directory_of(process) + "/status"), "State");
  return !state.empty() && state[0] != 'Z' && state[0] != 'X';
}

bool is_readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, 0) > 0;
}

/// Returns whether the thread only waits for a child process.
bool awaits_child(const ThreadSlot& slot) {
  return (slot.flags.load() & ThreadSlot::kAwaitsChild) != 0;
}

bool has_events(int epoll) {
  epoll_event event;
  return epoll_wait(epoll, &event, 1, 0) > 0;
}

}  // namespace

Turns::Turns(Options options, UniqueFd listener, Requests requests)
    : options_(std::move(options)),
      requests_(std::move(requests)),
      handback_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      events_(epoll_create1(EPOLL_CLOEXEC)),
      everybody_(options_.ancestor, /*parents_wait=*/false, &spinning_),
      awake_(options_.sleeps_between_turns),
      unseen_(options_.ancestor) {
  auto created = NewSharedMemory::create("rocemu-turns", sizeof(TurnTable));
  if (!created) fail_start("cannot create the shared memory by which threads take turns", errno);
  memory_ = std::move(created->memory);
  table_file_ = std::move(created->file);
  if (!handback_) fail_start("cannot make an eventfd", errno);
  table().next_serial.store(1);
  table().seed = options_.seed;
  // The watch is edge-triggered, because reading the descriptor after each turn would take another
  // system call.
  handback_watch_ = loop_.watch(handback_.get(), EPOLLIN | EPOLLET, [](uint32_t) {});
  if (!handback_watch_)
    fail_start("cannot watch the eventfd by which threads return their turns", errno);
  for (const int fd : {loop_.fd(), requests_.fd}) {
    epoll_event event{.events = EPOLLIN, .data = {}};
    if (!events_ || epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      fail_start("cannot watch the requests of programs", errno);
  }
  participants_ = std::make_unique<Participants>(
      table(), Participants::Files{table_file_.get(), handback_.get(), std::move(listener)}, loop_,
      timers_, options_.ancestor, options_.tells_exits, [this] { spinning_.reap(); });
}

bool Turns::look_whether_command_ended() {
  loop_.wait(engine::Duration(0));
  return has_command_ended();
}

// ---- Processes that take no turns -------------------------------------------------------------

bool Turns::must_wait_for_quiescence(Checks checks) {
  std::erase_if(unscheduled_, [this](uint32_t number) {
    ThreadSlot& slot = table().slots[number];
    if (slot.state.load() == ThreadSlot::kGone) abi::free_ended(slot);
    return slot.state.load() != ThreadSlot::kRuns;
  });
  if (table().needs_quiescence.exchange(0) != 0) needs_quiescence_ = true;
  if (participants_->take_quiescence_need()) needs_quiescence_ = true;
  const std::vector<pid_t> clients = requests_.clients();
  // A client's process may be unknown, because a connection can outlive the process that opened it.
  const bool strange = std::ranges::any_of(clients, [this](pid_t client) {
    return !participants_->has_joined(client) && !looked_at_.contains(client);
  });
  return needs_quiescence_ || is_one_starting() || strange || participants_->are_changing() ||
         !strangers_.empty() || must_check_unscheduled(checks);
}

bool Turns::must_check_unscheduled(Checks checks) const {
  if (!touched_ || unscheduled_.empty()) return false;
  return checks == Checks::kAll || spin_checks_.is_due() ||
         !std::ranges::all_of(unscheduled_, [this](uint32_t number) {
           return spinning_.holds(table().slots[number].tid.load());
         });
}

bool Turns::has_news() {
  bool has_any = has_events(events_.get());
  if (has_any && unscheduled_.empty()) {
    // This may be only a late notification: a thread that returned its turn earlier had to wait for
    // a processor before it could notify the daemon.
    uint64_t count;
    [[maybe_unused]] const ssize_t size = read(handback_.get(), &count, sizeof count);
    has_any = has_events(events_.get());
  }
  has_looked_ = !has_any;
  return has_any || must_wait_for_quiescence(Checks::kAll);
}

/// Serves all requests that have arrived. The threads that wait for replies continue only when all
/// requests have been served.
void Turns::serve() {
  const std::span<ThreadSlot> slots = used_slots(table());
  for (ThreadSlot& slot : slots) {
    uint32_t waits = ThreadSlot::kWaitsForReply;
    slot.asks.compare_exchange_strong(waits, ThreadSlot::kServed);
  }
  requests_.serve();
  for (ThreadSlot& slot : slots) {
    uint32_t served = ThreadSlot::kServed;
    if (slot.asks.compare_exchange_strong(served, ThreadSlot::kWaitsForReply))
      syscall(SYS_futex, &slot.asks, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
}

/// Waits until there are events of programs or of the descriptor `other`, which is ignored if it is
/// negative.
void Turns::wait_for_events(Nanoseconds time, int other) {
  pollfd entries[] = {{loop_.fd(), POLLIN, 0}, {requests_.fd, POLLIN, 0}, {other, POLLIN, 0}};
  const timespec at_most{static_cast<time_t>(time.count() / 1'000'000'000),
                         static_cast<long>(time.count() % 1'000'000'000)};
  ppoll(entries, std::size(entries), &at_most, nullptr);
}

bool Turns::check_postponed(const MustStop& must_stop) {
  if (has_round_progressed_ || !must_check_unscheduled(Checks::kAll)) return false;
  const size_t before = unscheduled_.size();
  wait_for_quiescence(Checks::kAll, must_stop);
  must_wait_for_quiescence(Checks::kAll);  // removes the threads that wait for a turn now
  return unscheduled_.size() != before;
}

void Turns::wait_for_quiescence(Checks checks, const MustStop& must_stop) {
  const RealClock::time_point since = RealClock::now();
  const size_t before = unscheduled_.size();
  everybody_.begin_wait();
  Nanoseconds pause = kMinLook;
  RealClock::time_point busy = since;  // the latest check that found a thread awake
  while (!must_stop()) {
    if (!std::exchange(has_looked_, false)) loop_.wait(engine::Duration(0));
    participants_->answer_waiting();
    if (!must_wait_for_quiescence(checks)) return;
    table().may_threads_spin.store(0);  // a thread that waits for its turn must look asleep
    child_waits_.happened();
    // Requests are served when all threads wait. By then, all data and events have arrived whose
    // time of arrival is random, such as the closing of descriptors when a process ends.
    const bool quiet = everybody_.is_quiet(requests_.clients());
    tell_of_unseen();
    if (quiet) {
      if (is_readable(loop_.fd())) continue;
      if (is_readable(requests_.fd)) {
        serve();
        continue;
      }
      // A process that executes a program can sleep for a moment before it joins, so wait for it.
      if (may_still_join(RealClock::now() - busy)) {
        wait_for_events(kMaxLook);
        continue;
      }
      needs_quiescence_ = false;
      touched_ = false;
      spin_checks_.checked(!unscheduled_.empty() && unscheduled_.size() == before);
      find_strangers();
      return;
    }
    busy = RealClock::now();
    const auto waited = busy - since;
    if (waited > kPatience) {
      if (!everybody_.anyone_runs()) return find_strangers();  // they wake again and again
      const std::string names = everybody_.give_up_on_running(waited > kMaxPatience);
      if (!names.empty()) {
        spdlog::warn(
            "these threads have run for 2 s without calling a verb: {}; the virtual clock no "
            "longer "
            "waits for them, and the run is no longer deterministic",
            names);
        return find_strangers();
      }
    }
    wait_for_events(pause);
    pause = std::min<Nanoseconds>(pause * 3 / 2, kMaxLook);
  }
}

bool Turns::is_one_starting() const {
  return std::ranges::any_of(used_slots(table()), [](const ThreadSlot& slot) {
    return slot.state.load() == ThreadSlot::kStarting;
  });
}

/// Returns whether any process may still join, because it is forking or executing a program.
/// `slept` is the time for which all threads have been asleep.
bool Turns::may_still_join(Nanoseconds slept) const {
  if (slept >= kAboutToJoin) return false;
  const bool is_soon = slept < kUntilJoined;
  if (is_soon && (is_one_starting() || participants_->is_one_leaving())) return true;
  return std::ranges::any_of(everybody_.processes(), [&](pid_t pid) {
    return !participants_->takes_turns(pid) && !strangers_.contains(pid) && is_alive(pid) &&
           ((is_soon && !participants_->has_joined(pid)) || is_about_to_join(pid));
  });
}

/// Determines which processes take no turns: those that have not joined although all threads sleep.
void Turns::find_strangers() {
  participants_->drop_leaving();
  const std::set<pid_t> joined = participants_->joined();
  strangers_.clear();
  looked_at_ = everybody_.processes();
  for (const pid_t client : requests_.clients())
    looked_at_.insert(client);  // including processes that have ended
  for (const pid_t pid : everybody_.processes()) {
    if (!joined.contains(pid) && is_alive(pid)) strangers_.insert(pid);
  }
  for (ThreadSlot& slot : used_slots(table())) {
    if (!joined.contains(slot.pid.load())) slot.state.store(ThreadSlot::kFree);
  }
  for (const pid_t pid : strangers_) {
    if (!told_of_.insert(pid).second) continue;
    const std::string name =
        proc::field_of(proc::contents_of(proc::directory_of(pid) + "/status"), "Name");
    spdlog::debug("rocemu cannot schedule pid {} ({}), so it waits until this process sleeps", pid,
                  name);
  }
}

/// Reports programs that the run cannot observe. Each program is reported as soon as it is
/// detected, since it can end soon.
void Turns::tell_of_unseen() {
  for (const pid_t pid : everybody_.processes()) {
    if (!participants_->takes_turns(pid)) unseen_.look_at(pid);
  }
}

// ---- Turns ------------------------------------------------------------------------------------

/// Makes the next wait_for_quiescence() check threads that poll memory after every round in which
/// something happened, and after 1, 2, 4, 8 and so on quiet rounds. A polling thread can write to
/// memory that another thread polls. Such writes are detected late, because a check after each poll
/// would take too long.
void Turns::begin_round(bool is_quiet) {
  child_waits_.begin_round();
  has_round_progressed_ = false;
  quiet_rounds_ = is_quiet ? quiet_rounds_ + 1 : 0;
  touched_ |= (quiet_rounds_ & (quiet_rounds_ - 1)) == 0;  // 0, or a power of two
}

std::span<const schedule::Thread> Turns::threads() {
  threads_.clear();
  // A process or thread that takes no turns can end unnoticed.
  const bool are_known = strangers_.empty() && unscheduled_.empty();
  const std::span<ThreadSlot> slots = used_slots(table());
  for (uint32_t i = 0; i < slots.size(); ++i) {
    const ThreadSlot& slot = slots[i];
    if (slot.state.load() != ThreadSlot::kWaits) continue;
    schedule::Thread& thread = threads_.emplace_back();
    thread = {.slot = i,
              .serial = slot.serial.load(),
              .deadline = schedule::instant_of(slot.deadline_ns.load()),
              .is_blocked = awaits_child(slot) && are_known && !child_waits_.may_have_ended(i)};
    if (const int64_t ready = slot.ready_ns.load(); ready != 0)
      thread.polling = {.polled_at = schedule::instant_of(slot.looked_ns.load()),
                        .polls = slot.looks.load(),
                        .ready_at = schedule::instant_of(ready),
                        .streak = slot.streak.load(),
                        .since = schedule::instant_of(slot.streak_began_ns.load()),
                        .reads_clock = (slot.flags.load() & ThreadSlot::kReadsClock) != 0};
  }
  return threads_;
}

bool Turns::is_taken(uint32_t number) const {
  return table().slots[number].state.load() != ThreadSlot::kFree;
}

bool Turns::wait_awake(const ThreadSlot& slot) const {
  const auto says_something = [&] {
    return abi::is_turn_back(slot) || slot.asks.load() != ThreadSlot::kNothing;
  };
  RealClock::time_point now = RealClock::now();
  const RealClock::time_point until = awake_.until(now);
  while (now < until && !says_something()) now = RealClock::now();
  return now < until;
}

schedule::Turn Turns::give_turn(const schedule::Step& step, const MustStop& must_stop) {
  const uint32_t number = step.slot;
  ThreadSlot& slot = table().slots[number];
  slot.polls.store(step.polls.polls);
  slot.poll_ns.store(step.polls.each.count());
  slot.calls.store(step.calls);
  char stopped_after[ThreadSlot::kCallName];  // before the thread is stopped again
  std::memcpy(stopped_after, slot.call_before, sizeof stopped_after);
  slot.call_after[0] = 0;
  participants_->set_holder(&slot);
  child_waits_.has_turn(number);
  table().is_daemon_awake.store(1);
  table().may_threads_spin.store(options_.sleeps_between_turns ? 0 : 1);
  abi::give_turn(slot);
  syscall(SYS_futex, &slot.turn, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  const RealClock::time_point since = RealClock::now();
  std::optional<Nanoseconds> own_time;
  bool says_something = wait_awake(slot);
  table().is_daemon_awake.store(0);
  while (!abi::is_turn_back(slot) && is_taken(number) && !must_stop()) {
    if (!std::exchange(says_something, false)) loop_.wait(kLook);
    // Requests are served only while the thread waits for a reply. Otherwise the effects of actions
    // without a reply, such as ringing a doorbell or closing a descriptor, would become visible at
    // a random time.
    if (slot.asks.load() != ThreadSlot::kNothing) serve();
    const auto held = RealClock::now() - since;
    if (slot.state.load() == ThreadSlot::kStarting) {
      spinning_.reap();  // a process does not end before its threads that we hold
      unseen_.look_at(slot.pid.load());
      // A process that is just starting either ends, which the daemon always notices, or executes
      // another program, which joins if it can.
      if (participants_->says_hello(slot.pid.load()) ||
          (held >= kUntilJoined && !sleep_of(slot, status_of(slot)).empty() &&
           (held >= kAboutToJoin || !is_about_to_join(slot.pid.load()))))
        break;
      continue;
    }
    if (held < kLook || abi::is_turn_back(slot) || !is_taken(number)) continue;
    const Nanoseconds now = processor_time_of(slot);
    if (!own_time) own_time = now;
    if (must_go_on_beside(slot, held, now - *own_time)) {
      revoke(number);
      break;
    }
  }
  const RealClock::time_point end = RealClock::now();
  awake_.turn_ended(end - since, end);
  has_looked_ = !has_events(events_.get());
  if (!has_looked_) {
    serve();  // what the thread sent before
    loop_.wait(engine::Duration(0));
  }
  participants_->set_holder(nullptr);
  const uint32_t flags = is_taken(number) ? slot.flags.load() : uint32_t{ThreadSlot::kProgressed};
  const auto has = [flags](uint32_t flag) { return (flags & flag) != 0; };
  const uint32_t calls_left = std::min(slot.calls.load(), step.calls);
  if (options_.stop_log) {
    options_.stop_log->see(slot);
    if (step.stopped_after != 0) options_.stop_log->write(slot, step.stopped_after, stopped_after);
    options_.stop_log->turn_ended(slot, step.calls - calls_left, has(ThreadSlot::kPreempted));
  }
  if (slot.state.load() == ThreadSlot::kGone) abi::free_ended(slot);
  if (has(ThreadSlot::kProgressed)) {
    touched_ = has_round_progressed_ = true;
    spin_checks_.turn_progressed();
  }
  return {.progressed = has(ThreadSlot::kProgressed),
          .polls = has(ThreadSlot::kPolls),
          .waits_for_room = has(ThreadSlot::kWaitsForRoom),
          .is_preempted = has(ThreadSlot::kPreempted),
          .calls = step.calls - calls_left};
}

/// Returns whether the run must continue without waiting for the thread, because it waits in the
/// kernel or runs endlessly.
bool Turns::must_go_on_beside(const ThreadSlot& slot, Nanoseconds held, Nanoseconds own) {
  spinning_.reap();  // it may execute a program, and wait for the other threads to end
  const std::string status = status_of(slot);
  if (is_stopped(status)) return true;
  // A thread that has not had a processor yet keeps its turn, because the time until it gets one is
  // random.
  if (slot.turn.load() != ThreadSlot::kTaken) return false;  // it has not had a processor yet
  const std::string sleep = sleep_of(slot, status);
  if (!sleep.empty()) {
    const uint32_t asks = slot.asks.load();
    const bool may_lose_it =
        asks == ThreadSlot::kNothing || (asks == ThreadSlot::kWaitsShortly && held >= kPatience);
    return sleep_of(slot, status_of(slot)) == sleep && !abi::is_turn_back(slot) && may_lose_it &&
           !spinning_.is_stopping(slot.tid.load()) && !is_readable(loop_.fd());
  }
  // A thread that waits for a reply does not spin. If it crashes, another process must be able to
  // trace it, to read its stack.
  if (slot.asks.load() != ThreadSlot::kWaitsForReply &&
      spinning_.hold_if_it_spins(slot.pid.load(), slot.tid.load()))
    return true;
  if (held < kPatience || (own < kOwnTime && held < kMaxPatience)) return false;
  const std::string name = proc::field_of(status, "Name");
  spdlog::warn(
      "thread {} (tid {}) of pid {} has run for 2 s without calling a verb; the virtual clock no "
      "longer waits for it, and the run is no longer deterministic",
      name, slot.tid.load(), slot.pid.load());
  everybody_.give_up_on(slot.tid.load());
  return true;
}

/// Returns whether the thread has been stopped by a signal, or by a debugger that takes turns. The
/// process that stopped it may need a turn itself before it can let the thread continue.
bool Turns::is_stopped(const std::string& status) const {
  const std::string state = proc::field_of(status, "State");
  return state.starts_with('T') ||
         (state.starts_with('t') &&
          participants_->takes_turns(std::atoi(proc::field_of(status, "TracerPid").c_str())));
}

void Turns::revoke(uint32_t number) {
  ThreadSlot& slot = table().slots[number];
  spdlog::debug("thread {} of pid {} waits elsewhere than for its turn, in system call {}",
                slot.tid.load(), slot.pid.load(), proc::contents_of(task_file(slot, "syscall")));
  slot.flags.store(ThreadSlot::kProgressed);
  if (abi::revoke_turn(slot)) unscheduled_.insert(number);
}

void Turns::wait_for_event(engine::Duration time, int control) {
  wait_for_events(time, has_command_ended() ? -1 : control);
  needs_quiescence_ = true;  // a process may have started that takes no turns
}

// ---- Time -------------------------------------------------------------------------------------

bool Turns::set_time(engine::Instant now) {
  table().now_ns.store(now.time_since_epoch().count());
  const bool expired = timers_.expire(now);
  if (expired) needs_quiescence_ = true;  // signals
  return expired;
}

}  // namespace rocemu::daemon
