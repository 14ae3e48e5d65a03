// Decides what happens next on a virtual clock: which thread has a turn, when the NIC acts, to
// which instant the clock moves, and when a run hangs or is over. It is a state machine without an
// operating system: the caller asks next() for a step, carries it out, and reports the result. The
// same results and facts give the same steps. tests/schedule/script.h shows such an exchange.
//
//   begin --> a turn for each waiting thread --> the NIC acts --+--> something happened: begin
//                                                               |
//                                                               +--> nothing: control socket,
//                                                                    then time moves, or all wait
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "emulator/schedule/hang_watch.h"
#include "emulator/schedule/poll_time.h"
#include "emulator/schedule/priority_order.h"
#include "emulator/schedule/thread.h"
#include "emulator/schedule/turn_order.h"

namespace rocemu::schedule {

struct Options {
  /// The order of threads. Without a choice, threads have their turns in start order, round by
  /// round, and each runs until it waits. With a choice, a PriorityOrder decides.
  ScheduleChoice schedule = {};
  bool reports_hangs = false;
  /// If true, a poll sees the NIC's actions at the next multiple of 50 ns, however long the thread
  /// has polled. This takes a turn of each polling thread for each action that any program can see.
  bool polls_are_exact = false;
};

/// The situation at this moment. In a round (in_round()), only the members before `inputs` and
/// has_frames_in_network are used.
struct Facts {
  Instant now;
  std::span<const Thread> threads;
  Instant timers = kNever;  // when a timer of a program expires
  Instant device = kNever;  // the next event of the NIC
  bool is_paused = false;   // the NIC, so that programs see each frame before the next
  bool is_held = false;     // time
  /// If true, the event at `device` is the time of a scenario's rule, and nothing else in the NIC
  /// is due.
  bool is_only_rule_due = false;
  uint32_t inputs = 0;        // of the NIC, ever
  bool memory_waits = false;  // the NIC waits for memory of a program
  bool has_seen_programs = true;
  bool has_frames_under_way = false;
  bool has_frames_in_network = false;  // in a simulated one
  bool has_command_ended = false;
  Instant real_now{};
};

struct Step {
  enum class Kind : uint8_t {
    kContinue,      // asks for the next step
    kLookForNews,   // whether a program came, went or has a request; heard_news()
    kGiveTurn,      // to the thread `slot`, with `polls` and `calls`; turn_ended()
    kRunDevice,     // on doorbells and requests of programs, and on due events; device_ran()
    kShow,          // lets programs see the NIC's actions
    kServeControl,  // the present requests; control_served()
    kActIdle,       // on anything else to do when nothing happens; acted_idle()
    kLookAtQps,     // the progress of each; saw_qps()
    kReportHang,    // nothing can happen any more, or only repetitions: see activity()
    kAdvance,       // the clock to `until`; advanced()
    kWait,          // at most `time` of real time for an external event
    kEnd,           // the run is over
  };
  Kind kind = Kind::kContinue;
  uint32_t slot = 0;
  Instant until{};
  Duration time{};
  PollGrant polls{};
  uint32_t calls = 0;  // until the thread is preempted; 0: it is not
  /// The number of the call after which the thread was preempted, if something has happened since
  /// then; otherwise 0.
  uint64_t stopped_after = 0;
};

class Scheduler {
 public:
  explicit Scheduler(Options options) : options_(std::move(options)) {
    if (options_.schedule.is_any()) priorities_.emplace(options_.schedule);
  }

  /// Returns whether the next step may be a turn. If so, threads that take no turns must be asleep
  /// when next() is called.
  bool in_round() const { return phase_ == Phase::kRound || (phase_ == Phase::kBegin && is_seen_); }
  /// Returns whether nothing has happened since each thread has polled without success.
  bool is_quiet() const { return is_quiet_; }
  Step next(const Facts& facts);
  /// Starts with a new round, after the caller could not carry out a step.
  void restart();

  void heard_news(bool any);
  void turn_ended(const Turn& turn);
  /// Notes the result of kRunDevice: `has_worked` is true if the NIC had something to do, and
  /// `have_changed` if a process started or ended.
  void device_ran(bool has_worked, bool have_changed);
  /// Notes that control requests were served. `has_answered` is true if a thread may have its reply
  /// now, and `has_acted` if something else changed, too.
  void control_served(bool has_answered, bool has_acted);
  void acted_idle(bool has_acted);
  /// Notes that the clock has advanced to `now`. `is_seen` is true if programs may see what
  /// happened, and `has_happened` if an event was due.
  void advanced(Instant now, bool is_seen, bool has_happened);
  void saw_qps(std::vector<uint32_t> progress, bool may_repeat);

  /// Returns a number that changes each time that programs act. `inputs` is Facts::inputs.
  uint32_t activity(uint32_t inputs) const { return inputs + rounds_; }
  /// Returns the activity at the latest check for a hang.
  uint32_t seen_activity() const { return hang_.activity(); }
  bool is_stuck() const { return hang_.is_stuck(); }
  /// Returns the time at which a run began to hang, if it is found to hang at `now`. Time in which
  /// threads only polled is part of the hang.
  Instant hangs_since(Instant now) const {
    return any_polls_ && !hang_.repeats() ? idle_since_ : now;
  }

  /// Stops the clock, because the run hangs and is being ended.
  void end() { is_ending_ = true; }

 private:
  enum class Phase : uint8_t {
    kBegin,
    kRound,
    kDevice,
    kProgressed,
    kControl,
    kIdle,
    kPaused,
    kMove,  // time, if it may
    kMoved,
    kSeesQps,
    kLooksIdle,  // nothing is due
    kAllWait,
    kWaits,
  };

  void begin(bool is_seen);
  void begin_round();
  void happened();
  Step give_turn(const Facts& facts);
  Step give_turn_by_priority(const Facts& facts);
  Step serve_control(const Facts& facts);
  Step when_idle(const Facts& facts);
  Step move_time(const Facts& facts);
  /// Returns whether threads have had kBusyTurns turns with progress at this instant, so that the
  /// clock must advance.
  bool is_busy(const Facts& facts) const;
  Step move_time_of_busy(const Facts& facts);
  Step after_move(const Facts& facts);
  Step report_pollers(const Facts& facts);
  Step report_repeats(const Facts& facts);
  Step report_idle(const Facts& facts);
  Step wait();
  Instant ready_at(const Thread& thread, const Facts& facts) const;
  Instant next_of_programs(const Facts& facts) const;
  Instant next_of_sleepers(const Facts& facts) const;
  PollGrant grant_to(const Thread& thread, const Facts& facts) const;
  bool stands_still(const Facts& facts) const;
  bool has_nothing_but_pollers(const Facts& facts) const;
  bool lets_pollers_wait(const Facts& facts);

  Options options_;
  std::optional<PriorityOrder> priorities_;
  bool is_nic_done_ = false;    // the NIC has nothing to do at this instant
  bool waits_for_nic_ = false;  // a thread that could run has a lower priority than the NIC
  HangWatch hang_;
  Phase phase_ = Phase::kBegin;
  bool is_seen_ = true;  // by some program: the actions since the latest round of turns
  Turn round_;           // of all threads in it
  TurnOrder::Position position_{};
  uint32_t rounds_ = 0;        // rounds of turns with progress
  uint32_t idle_rounds_ = 0;   // since then
  Instant idle_since_{};       // in virtual time
  uint32_t turns_ = 0;         // with progress, since time moved
  bool is_quiet_ = false;      // each thread has polled without success since then
  uint32_t unseen_ = 0;        // the NIC's actions since programs last saw something
  std::set<uint64_t> looked_;  // the serials of the threads that have had a turn since then
  bool any_polls_ = false;
  bool pollers_wait_ = false;  // before they continue
  uint32_t waits_of_pollers_ = 0;
  bool is_for_askers_ = false;  // this round, because of requests at the control socket
  bool is_ending_ = false;      // as a hang
  // The next times of programs and of sleepers, which were computed before the latest move of the
  // clock.
  Instant next_of_programs_ = kNever, next_of_sleepers_ = kNever;
  bool was_nic_due_ = false;
  bool moved_frames_ = false;  // frames were in a simulated network
};

}  // namespace rocemu::schedule
