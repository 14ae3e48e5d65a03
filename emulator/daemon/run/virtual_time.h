// The daemon's loop on a virtual clock. It carries out the steps of the scheduler
// (schedule/scheduler.h): turns of threads, actions of the NIC, and moves of the clock.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "emulator/daemon/base/clock.h"
#include "emulator/daemon/base/event_loop.h"
#include "emulator/daemon/run/turns.h"
#include "emulator/daemon/run/worker.h"
#include "emulator/schedule/scheduler.h"

namespace rocemu::daemon {

class VirtualTime {
 public:
  using Options = schedule::Options;

  /// `control_loop` belongs to the control socket, which is served last. The clock stops while
  /// `is_held`. `on_idle` is called whenever there has been nothing to do for some rounds, and
  /// returns true if it did something that programs see. All arguments must outlive this object.
  VirtualTime(const Options& options, Turns& turns, Worker& worker, EventLoop& control_loop,
              Clock& clock, const bool& is_held, std::function<bool()> on_idle);

  /// Sets the callback for a run that seems to hang; only with Options::reports_hangs. `on_stuck`
  /// is called from time to time while all programs sleep or poll, and nothing is in flight or due
  /// except endless repetitions. Programs can then only be woken by themselves or from outside.
  /// `serial` changes each time that programs act.
  void on_stuck(std::function<void(uint32_t serial)> callback) { on_stuck_ = std::move(callback); }
  /// Returns true if programs have done nothing since on_stuck() reported that serial: the run
  /// hangs and will be ended. The clock stops from then on.
  bool end_stuck(uint32_t serial);

  /// Returns the time since which the run hangs, if it hangs now.
  engine::Instant hangs_since() const { return scheduler_.hangs_since(clock_.now()); }

  /// Runs until `stopping` is true.
  void run(const bool& stopping);
  /// Handles the data that arrived on the sockets. Before each item, handles the doorbells that
  /// were rung before it.
  void serve();

 private:
  schedule::Facts facts_of_round();
  schedule::Facts facts();
  void take(const schedule::Step& step, const Turns::MustStop& must_stop);
  bool handle_after_turns();
  bool reap();
  void serve_control();
  void advance_to(engine::Instant instant);
  uint32_t activity() const;
  std::vector<uint32_t> progress_of_qps() const;

  schedule::Scheduler scheduler_;
  Turns& turns_;
  Worker& worker_;
  EventLoop& control_loop_;
  Clock& clock_;
  const bool& is_held_;
  std::function<bool()> on_idle_;
  std::function<void(uint32_t serial)> on_stuck_;
};

}  // namespace rocemu::daemon
