#include "emulator/daemon/run/virtual_time.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

VirtualTime::VirtualTime(const Options& options, Worker& worker, EventLoop& control_loop,
                         Clock& clock, const bool& is_held, std::function<void()> on_idle)
    : options_(options),
      worker_(worker),
      control_loop_(control_loop),
      clock_(clock),
      is_held_(is_held),
      on_idle_(std::move(on_idle)) {}

void VirtualTime::run(const std::atomic<bool>& stopping) {
  Quiescence clients(options_.ancestor);
  engine::Duration idle = kMinIdle;
  if (options_.lockstep) worker_.engine_host().hold_outputs();
  while (!stopping) {
    if (options_.lockstep) wait_for_quiet(clients, stopping);
    if (handle_what_came()) {
      end_round();
      idle = kMinIdle;
      continue;
    }
    if (!options_.lockstep) {
      wait_for_quiet(clients, stopping);
      if (handle_what_came()) {
        end_round();
        continue;
      }
    }
    const std::optional<engine::Instant> deadline = worker_.engine_host().next_deadline();
    if (deadline && !is_held_) {
      clock_.advance_to(*deadline);
      idle = kMinIdle;
      if (worker_.engine_host().tick_if_due(clock_.now())) end_round();
      continue;
    }
    on_idle_();
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

void VirtualTime::wait_for_quiet(Quiescence& clients, const std::atomic<bool>& stopping) {
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

bool VirtualTime::is_quiet(Quiescence& clients) {
  std::vector<pid_t> pids;
  for (const ClientSession* session : worker_.sessions().list())
    pids.push_back(session->peer().pid);
  for (const pid_t pid : worker_.cm_sessions().pids()) pids.push_back(pid);
  return clients.is_quiet(pids);
}

}  // namespace rocemu::daemon
