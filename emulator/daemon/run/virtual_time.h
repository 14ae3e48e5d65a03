// The daemon's loop on a virtual clock: it takes the steps of the scheduler (schedule/scheduler.h),
// which are turns of threads, what the NIC does, and the clock's moves.
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

  /// `control_loop` is the control socket's, which has its turn last. Time stands still
  /// while `is_held`. `on_idle` is called whenever there has been nothing to do for some rounds,
  /// and returns true if it did something that programs see. All of them outlive this.
  VirtualTime(const Options& options, Turns& turns, Worker& worker, EventLoop& control_loop,
              Clock& clock, const bool& is_held, std::function<bool()> on_idle);

  /// With Options::reports_hangs: `on_stuck` is called now and then while programs can only be
  /// woken by themselves or from outside: all of them sleep, or poll, and nothing is under way or
  /// due, or only what is done again and again without end. `serial` is another each time that
  /// programs did something.
  void on_stuck(std::function<void(uint32_t serial)> callback) { on_stuck_ = std::move(callback); }
  /// True if programs have done nothing since on_stuck() told that serial: the run is a hang, and
  /// is about to be ended. Time stands still from then on.
  bool end_stuck(uint32_t serial);

  /// Since when a run hangs that hangs now.
  engine::Instant hangs_since() const { return scheduler_.hangs_since(clock_.now()); }

  /// Returns when `stopping` is true.
  void run(const bool& stopping);
  /// What came on the sockets is handled, each in the order of the doorbells before it.
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
