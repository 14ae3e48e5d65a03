// The daemon's loop on a virtual clock: what came is handled, and when nothing more comes the clock
// is put forward to the engine's next deadline. That nothing comes is known when all threads of all
// clients are asleep (quiescence.h); those that poll an empty CQ sleep too
// (verbs_provider/empty_poll).
//
// In lockstep what came is handled only then, all of it at once and in an order of ours. So
// relative speed does not matter, and a deterministic program has the same run each time.
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "emulator/daemon/daemon.h"

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;

/// A thread that runs for so long and calls no verb may do so for ever: the run goes on without
/// waiting for it. One that waits for a processor, or for a disk, has more time.
constexpr engine::Duration kPatience = 2s, kMaxPatience = 60s;
constexpr engine::Duration kMinLook = 30us, kMaxLook = 1ms;
/// With nothing to come, how often polling threads may look at what else they have to do.
constexpr engine::Duration kMinIdle = 1ms, kMaxIdle = 20ms;

}  // namespace

void Daemon::run_on_virtual_clock() {
  const bool has_run = options_.lifetime_fd >= 0;  // `rocemu run`, which the programs descend from
  Quiescence clients(has_run ? std::optional(getppid()) : std::nullopt);
  engine::Duration idle = kMinIdle;
  if (options_.lockstep) main_.engine_host().hold_outputs();
  while (!stopping_) {
    if (options_.lockstep) wait_for_quiet(clients);
    if (handle_what_came()) {
      end_round();
      idle = kMinIdle;
      continue;
    }
    if (!options_.lockstep) {
      wait_for_quiet(clients);
      if (handle_what_came()) {
        end_round();
        continue;
      }
    }
    const std::optional<engine::Instant> deadline = main_.engine_host().next_deadline();
    if (deadline && !time_is_held_) {
      clock_.advance_to(*deadline);
      idle = kMinIdle;
      if (main_.engine_host().tick_if_due(clock_.now())) end_round();
      continue;
    }
    flush_files();
    check_recording();
    // Without end: until a sleeping thread is woken by something else than us.
    std::this_thread::sleep_for(idle);
    idle = std::min<engine::Duration>(2 * idle, kMaxIdle);
    main_.sessions().begin_round();
  }
  // A client that has left by now must be gone in the recording too, however soon we have to stop.
  bool more = true;
  while (std::exchange(more, false)) {
    main_.loop().wait(engine::Duration(0));
    more |= main_.sessions().pump_in_order();
    more |= main_.sessions().reap(main_.engine_host(), main_.memory());
    more |= main_.cm_sessions().reap(main_.engine_host());
    main_.engine_host().release_outputs();
  }
}

/// Doorbells first: what a client rang before it asked comes before. In lockstep one kind of thing,
/// and one request, at a time: a client that gets its reply runs at once, and must not be faster
/// than the others.
bool Daemon::handle_what_came() {
  if (options_.lockstep) {
    // A client that has ended is gone before another comes, which may be the next program of one
    // script: it would be so if the script's shell took long to go on. Requests on the control
    // socket, whenever and however often they come, must not change what the clients do.
    return main_.sessions().pump_in_order() || main_.loop().run_first(EPOLLHUP) ||
           main_.sessions().reap(main_.engine_host(), main_.memory()) ||
           main_.cm_sessions().reap(main_.engine_host()) || main_.loop().run_first() ||
           main_.engine_host().tick_if_due(clock_.now()) || control_loop_.run_first();
  }
  bool worked = main_.sessions().pump_in_order();
  worked |= main_.loop().wait(engine::Duration(0)) > 0;
  worked |= main_.engine_host().tick_if_due(clock_.now());
  worked |= main_.sessions().reap(main_.engine_host(), main_.memory());
  worked |= main_.cm_sessions().reap(main_.engine_host());
  return worked;
}

/// Clients see what was done, and look again for what they wait for.
void Daemon::end_round() {
  if (options_.lockstep) {
    main_.engine_host().release_outputs();
  } else {
    main_.sessions().begin_round();
  }
}

void Daemon::wait_for_quiet(Quiescence& clients) {
  const engine::Instant since = clock_.real_now();
  clients.begin_wait();
  engine::Duration pause = kMinLook;
  while (!stopping_ && !is_quiet(clients)) {
    if (!options_.lockstep && handle_what_came()) main_.sessions().begin_round();
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

bool Daemon::is_quiet(Quiescence& clients) {
  std::vector<pid_t> pids;
  for (const ClientSession* session : main_.sessions().list()) pids.push_back(session->peer().pid);
  for (const pid_t pid : main_.cm_sessions().pids()) pids.push_back(pid);
  return clients.is_quiet(pids);
}

}  // namespace rocemu::daemon
