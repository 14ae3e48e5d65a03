// The daemon's loop on a virtual clock, which carries out the steps of the scheduler
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

  /// `control_loop` is the loop of the control socket, which is served last. The clock stands still
  /// while `is_held` is true. `on_idle` is called whenever there has been nothing to do for some
  /// rounds, and returns true if it did something that programs can see. All arguments must outlive
  /// this object.
  VirtualTime(const Options& options, Turns& turns, Worker& worker, EventLoop& control_loop,
              Clock& clock, const bool& is_held, std::function<bool()> on_idle);

  /// Sets the callback for a run that seems to hang; needs Options::reports_hangs. It is called
  /// from time to time while all programs sleep or poll, and nothing is in flight or due except
  /// endless retries. Only the programs themselves, or events from outside, can then end the waits.
  /// `serial` changes each time that programs act.
  void on_stuck(std::function<void(uint32_t serial)> callback) { on_stuck_ = std::move(callback); }
  /// Notes that the run hangs and will be ended, so that the clock stops from now on. Returns false
  /// and does nothing if programs have acted since on_stuck() reported this serial.
  bool end_stuck(uint32_t serial);

  /// Returns the time at which the run began to hang, if it hangs now.
  engine::Instant hangs_since() const { return scheduler_.hangs_since(clock_.now()); }

  /// Runs until the run is over, or `stopping` is true.
  void run(const bool& stopping);
  /// Handles the data that has arrived on the sockets. Before each item, handles the doorbells that
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
