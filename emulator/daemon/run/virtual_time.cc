#include "emulator/daemon/run/virtual_time.h"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "emulator/daemon/run/programs_turn.h"

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;

/// A thread that runs for so long and calls no verb may do so for ever: the run goes on without
/// waiting for it. One that waits for a processor, or for a disk, has more time.
constexpr engine::Duration kPatience = 2s, kMaxPatience = 60s;
constexpr engine::Duration kMinLook = 30us, kMaxLook = 1ms;
/// With nothing to come, how often polling threads may look at what else they have to do.
constexpr engine::Duration kMinIdle = 1ms, kMaxIdle = 20ms;
/// So many rounds in which nothing happened: a thread that empties its CQs and then goes on to do
/// something else has done it by then.
constexpr uint32_t kPollersTurn = 3;
/// What is left to do when a run ends takes no longer, in real time.
constexpr engine::Duration kMaxEnd = 5s;
/// How often it is told that nothing happens, in real time.
constexpr engine::Duration kTellInterval = 100ms;
/// Longer than it takes to find that programs wait, or poll for nothing (command/supervise.cc), in
/// real time.
constexpr engine::Duration kUntilVerdict = 15s;
/// So often time has moved on, and once more that often for each QP and CM id, and no QP has come
/// further: retries with an end are over by then (7 of each kind, IBTA vol 1, 9.7.5.2.8 and
/// 9.7.6.1.3; 15 of a connection's messages).
constexpr uint64_t kManyJumps = 1000, kManyJumpsOfEach = 64;

}  // namespace

VirtualTime::VirtualTime(const Options& options, Worker& worker, EventLoop& control_loop,
                         Clock& clock, const bool& is_held, std::function<bool()> on_idle)
    : options_(options),
      worker_(worker),
      control_loop_(control_loop),
      clock_(clock),
      is_held_(is_held),
      on_idle_(std::move(on_idle)) {}

void VirtualTime::run(const bool& stopping) {
  if (options_.turns != nullptr) return run_with_turns(stopping);
  SpinningThreads spinning;
  Quiescence clients(options_.ancestor, /*parents_wait=*/true, &spinning);
  engine::Duration idle = kMinIdle;
  uint32_t idle_rounds = 0;
  const auto progress = [&] {
    end_round();
    idle = kMinIdle;
    idle_rounds = 0;
  };
  if (options_.lockstep) worker_.engine_host().hold_outputs();
  while (!stopping) {
    if (options_.lockstep) wait_for_quiet(clients, stopping);
    if (handle_what_came()) {
      progress();
      continue;
    }
    if (!options_.lockstep) {
      wait_for_quiet(clients, stopping);
      if (handle_what_came()) {
        progress();
        continue;
      }
    }
    const std::optional<engine::Instant> deadline = worker_.engine_host().next_deadline();
    if (deadline && !is_held_) {
      clock_.advance_to(*deadline);
      if (worker_.engine_host().tick_if_due(clock_.now())) progress();
      note_programs();
      ++jumps_;
      if (on_stuck_ && repeats_without_end()) tell_stuck();
      continue;
    }
    if (idle_rounds++ >= kPollersTurn && ends_idleness()) {
      progress();
      continue;
    }
    // Without end: until a sleeping thread is woken by something else than us.
    std::this_thread::sleep_for(idle);
    idle = std::min<engine::Duration>(2 * idle, kMaxIdle);
    worker_.sessions().begin_round();
  }
  // A client that has left by now must be gone in the recording too, however soon we have to stop.
  bool more = true;
  while (std::exchange(more, false)) {
    worker_.loop().wait(engine::Duration(0));
    more |= worker_.sessions().pump_in_order();
    more |= worker_.sessions().reap(worker_.engine_host(), worker_.memory());
    more |= worker_.cm_sessions().reap(worker_.engine_host());
    worker_.engine_host().release_outputs();
  }
}

// ---- With turns -------------------------------------------------------------------------------

void VirtualTime::run_with_turns(const bool& stopping) {
  Turns& turns = *options_.turns;
  worker_.engine_host().hold_outputs();
  const auto progress = [&] {
    worker_.engine_host().release_outputs();
    idle_rounds_ = 0;
    idle_since_ = clock_.now();
  };
  // The command has ended, and we are told to stop: what still belongs to the run is done.
  std::optional<engine::Instant> told_to_stop;
  const auto must_stop = [&] {
    if (!stopping) return false;
    if (!told_to_stop) told_to_stop = clock_.real_now();
    return !turns.has_command_ended() || clock_.real_now() - *told_to_stop > kMaxEnd;
  };
  Turns::Round round;
  bool is_seen = true;  // by some program: what was done since the latest round of turns
  while (!must_stop()) {
    if (is_seen || turns.has_news()) {
      round = turns.run(must_stop);
    } else {
      round.progressed = false;
    }
    is_seen = true;
    if (handle_after_turns() || round.progressed) {
      if (round.progressed) ++rounds_;
      progress();
      continue;
    }
    // Requests on the control socket, whenever they come, change nothing of what programs do,
    // unless that is what they are for.
    // Nor, once the command has ended, before the run is over.
    const uint32_t before = activity();
    while (options_.lockstep && !turns.has_command_ended() && control_loop_.run_first()) {
    }
    if (activity() != before) {
      progress();
      continue;
    }
    if (is_over()) return;
    // Frame by frame, programs see each before the next, or before time goes on.
    if (worker_.engine_host().paused()) {
      if (idle_rounds_++ < kPollersTurn) continue;
      if (on_idle_()) {
        progress();
        continue;
      }
    }
    const std::optional<engine::Instant> next = next_instant(round);
    if (next && !is_held_ && !round.waits_for_room && !awaits_verdict()) {
      is_seen = advance_to(*next) || round.polls_memory || round.reads_clock;
      note_programs();
      ++jumps_;
      repeats_ = on_stuck_ && !turns.next_deadline() && repeats_without_end();
      if (repeats_) tell_stuck();
      continue;
    }
    if (idle_rounds_++ >= kPollersTurn && ends_idleness()) {
      progress();
      continue;
    }
    wait_idle(round);
    worker_.sessions().begin_round();  // for those that poll and take no turns
  }
}

/// When nothing comes, programs may be woken by something outside: looked for less and less often.
/// Those that poll go on by themselves.
void VirtualTime::wait_idle(const Turns::Round& round) {
  constexpr uint32_t kManyPolls = 2000;
  if (round.polls && idle_rounds_ < kManyPolls) return;
  const uint32_t doublings = std::min(round.polls ? idle_rounds_ - kManyPolls : idle_rounds_, 5U);
  options_.turns->wait_outside(std::min<engine::Duration>(kMinIdle * (1 << doublings), kMaxIdle));
}

/// A run ends when the command that it is for has ended, all programs wait, and no frame is under
/// way: what would come later, such as retries and timers, is not of the run.
bool VirtualTime::is_over() const {
  return options_.turns->has_command_ended() &&
         (is_ending_ || !worker_.engine_host().has_frames_under_way());
}

std::optional<engine::Instant> VirtualTime::next_instant(const Turns::Round& round) const {
  std::optional<engine::Instant> next = options_.turns->next_deadline();
  if (const auto deadline = worker_.engine_host().next_deadline();
      deadline && (!next || *deadline < *next)) {
    next = deadline;
  }
  if (!round.reads_clock) return next;
  // A thread that polls and reads a clock waits for a time that only it knows: time goes on in
  // steps, each an eighth of how long it has polled.
  const engine::Duration step = std::max<engine::Duration>((clock_.now() - idle_since_) / 8, 1us);
  const engine::Instant stepped = clock_.now() + step;
  return next ? std::min(*next, stepped) : stepped;
}

/// True if programs may see what happened. Retries, for example, they do not see.
bool VirtualTime::advance_to(engine::Instant instant) {
  const std::optional<engine::Instant> of_programs = options_.turns->next_deadline();
  const uint64_t writes = worker_.memory().writes();
  clock_.advance_to(instant);
  const bool expired = options_.turns->set_time(clock_.now());
  const bool ticked = worker_.engine_host().tick_if_due(clock_.now());
  const bool released = worker_.engine_host().release_outputs();  // with the time
  if (ticked || expired) {
    idle_rounds_ = 0;
    idle_since_ = clock_.now();
  }
  return released || expired || (of_programs && *of_programs <= clock_.now()) ||
         (options_.turns->is_memory_watched() && worker_.memory().writes() != writes);
}

void VirtualTime::serve() {
  pollfd ready{worker_.loop().fd(), POLLIN, 0};
  while (poll(&ready, 1, 0) > 0) {
    worker_.sessions().pump_in_order();
    // Descriptors that were closed before a request are gone when it comes.
    while (worker_.loop().run_first(EPOLLHUP)) reap();
    worker_.loop().run_first();
    worker_.engine_host().release_outputs();
  }
}

bool VirtualTime::reap() {
  const bool worked = worker_.sessions().reap(worker_.engine_host(), worker_.memory());
  return worker_.cm_sessions().reap(worker_.engine_host()) || worked;
}

bool VirtualTime::handle_after_turns() {
  bool worked = worker_.sessions().pump_in_order();
  worked |= reap();
  worked |= worker_.engine_host().tick_if_due(clock_.now());
  return worked;
}

/// Doorbells first: what a client rang before it asked comes before. In lockstep one kind of thing,
/// and one request, at a time: a client that gets its reply runs at once, and must not be faster
/// than the others.
bool VirtualTime::handle_what_came() {
  if (options_.lockstep) {
    // A client that has ended is gone before another comes, which may be the next program of one
    // script: it would be so if the script's shell took long to go on. Requests on the control
    // socket, whenever and however often they come, must not change what the clients do.
    return worker_.sessions().pump_in_order() || worker_.loop().run_first(EPOLLHUP) ||
           worker_.sessions().reap(worker_.engine_host(), worker_.memory()) ||
           worker_.cm_sessions().reap(worker_.engine_host()) || worker_.loop().run_first() ||
           worker_.engine_host().tick_if_due(clock_.now()) || control_loop_.run_first();
  }
  bool worked = worker_.sessions().pump_in_order();
  worked |= worker_.loop().wait(engine::Duration(0)) > 0;
  worked |= worker_.engine_host().tick_if_due(clock_.now());
  worked |= worker_.sessions().reap(worker_.engine_host(), worker_.memory());
  worked |= worker_.cm_sessions().reap(worker_.engine_host());
  return worked;
}

/// Clients see what was done, and look again for what they wait for.
void VirtualTime::end_round() {
  if (options_.lockstep) {
    worker_.engine_host().release_outputs();
  } else {
    worker_.sessions().begin_round();
  }
}

void VirtualTime::wait_for_quiet(Quiescence& clients, const bool& stopping) {
  const engine::Instant since = clock_.real_now();
  clients.begin_wait();
  engine::Duration pause = kMinLook;
  while (!stopping && !is_quiet(clients)) {
    if (!options_.lockstep && handle_what_came()) worker_.sessions().begin_round();
    const engine::Duration waited = clock_.real_now() - since;
    if (waited > kPatience) {
      if (!clients.anyone_runs()) return;  // they sleep, and wake again and again by themselves
      const std::string names = clients.give_up_on_running(waited > kMaxPatience);
      if (!names.empty()) {
        spdlog::warn(
            "for 2 s without a verb runs {}: what it does counts as outside of the virtual "
            "clock from now on{}",
            names, options_.lockstep ? ", and the run is no longer deterministic" : "");
        return;
      }
    }
    std::this_thread::sleep_for(pause);
    pause = std::min<engine::Duration>(pause * 3 / 2, kMaxLook);
  }
}

/// Another number each time that programs did something.
uint32_t VirtualTime::activity() const {
  return worker_.engine_host().inputs() + rounds_;
}

void VirtualTime::note_programs() {
  const uint32_t serial = activity();
  if (std::exchange(serial_, serial) == serial) return;
  is_stuck_ = repeats_ = false;
  jumps_ = looked_at_jump_ = 0;
}

bool VirtualTime::end_stuck(uint32_t serial) {
  if (!is_stuck_ || is_held_ || serial != serial_ || serial != activity()) return false;
  if (options_.lockstep) {
    // How programs go when they are ended is left to chance.
    is_ending_ = true;
    worker_.engine_host().end_record();
  }
  return true;
}

/// In lockstep time stands still where retries repeat without an end, and not where it has come to
/// by the time that a hang has been looked for. Unless none is found, since a program waits for
/// something from outside.
bool VirtualTime::awaits_verdict() {
  note_programs();
  if (is_ending_) return true;
  if (!options_.lockstep || !repeats_) return false;
  if (clock_.real_now() - stuck_since_ < kUntilVerdict) return true;
  is_stuck_ = repeats_ = false;
  looked_at_jump_ = jumps_;
  return false;
}

/// For some rounds there has been nothing to do. True if there is something now; if there cannot
/// be, that is told.
bool VirtualTime::ends_idleness() {
  if (on_idle_()) return true;
  note_programs();
  const bool begins = options_.turns != nullptr && !options_.turns->has_seen_programs();
  const bool may_go_on =
      begins || is_held_ || worker_.engine_host().paused() || worker_.memory().waits();
  if (on_stuck_ && !may_go_on) tell_stuck();
  return false;
}

void VirtualTime::tell_stuck() {
  const engine::Instant now = clock_.real_now();
  if (is_stuck_ && now - told_ < kTellInterval) return;
  if (!is_stuck_) stuck_since_ = now;
  is_stuck_ = true;
  told_ = now;
  on_stuck_(serial_);
}

/// A receiver that is never ready may be asked for ever (rnr_retry 7).
bool VirtualTime::repeats_without_end() {
  if (jumps_ - looked_at_jump_ < kManyJumps) return is_stuck_;
  const engine::FabricSnapshot fabric = worker_.engine_host().snapshot();
  std::vector<uint32_t> progress;
  for (const engine::DeviceSnapshot& device : fabric.devices) {
    for (const engine::QpSnapshot& qp : device.qps) {
      progress.insert(progress.end(),
                      {qp.number.value, static_cast<uint32_t>(qp.state), qp.unacked_psn,
                       qp.expected_psn, qp.msn, qp.send_posted, qp.recv_posted});
    }
  }
  for (const engine::RdmaIdSnapshot& id : fabric.rdma_ids) {
    progress.insert(progress.end(), {id.number, static_cast<uint32_t>(id.state)});
  }
  const uint64_t many = kManyJumps + kManyJumpsOfEach * progress.size();
  if (looked_at_jump_ == 0 || progress != progress_) {
    progress_ = std::move(progress);
    looked_at_jump_ = jumps_;
    is_stuck_ = false;
  } else if (jumps_ - looked_at_jump_ >= many) {
    return !worker_.engine_host().paused() && !worker_.memory().waits();
  }
  return is_stuck_;
}

bool VirtualTime::is_quiet(Quiescence& clients) {
  return clients.is_quiet(pids_of_clients(worker_));
}

}  // namespace rocemu::daemon
