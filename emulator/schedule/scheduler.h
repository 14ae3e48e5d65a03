// What happens next on a virtual clock: which thread has a turn, when the NIC acts, to which
// instant the clock moves, and when a run hangs or is over. A state machine without an operating
// system: the caller asks next() for a step, takes it, and answers with what came of it. The same
// answers and facts give the same steps. tests/schedule/script.h shows how a conversation goes.
//
//   begin --> a turn for each thread that waits --> the NIC acts --+--> somebody did something:
//   begin
//                                                                  +--> nothing: the control
//                                                                  socket,
//                                                                       then time moves, or all
//                                                                       wait
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
  /// Without a choice threads go on in the order in which they were started, round by round, and
  /// have turns until they wait. Otherwise see PriorityOrder.
  ScheduleChoice schedule = {};
  bool reports_hangs = false;
};

/// What is so at this moment. While in_round() only what comes before `inputs` counts.
struct Facts {
  Instant now;
  std::span<const Thread> threads;
  Instant timers = kNever;    // when a timer of a program expires
  Instant device = kNever;    // when something in the NIC is due
  bool is_paused = false;     // the NIC, so that programs see each frame before the next
  bool is_held = false;       // time
  uint32_t inputs = 0;        // of the NIC, ever
  bool memory_waits = false;  // the NIC waits for memory of a program
  bool has_seen_programs = true;
  bool has_frames_under_way = false;
  bool has_command_ended = false;
  Instant real_now{};
};

struct Step {
  enum class Kind : uint8_t {
    kContinue,      // asks for the next step
    kLookForNews,   // did a program come, go or ask? heard_news()
    kGiveTurn,      // to the thread `slot`, with `polls` and `calls`; turn_ended()
    kRunDevice,     // on what programs rang and asked for, and on what is due; device_ran()
    kShow,          // lets programs see what the NIC did
    kServeControl,  // the requests that there are; control_served()
    kActIdle,       // on whatever else there is to do when nothing happens; acted_idle()
    kLookAtQps,     // how far each has come; saw_qps()
    kReportHang,    // nothing can happen any more, or only the same again: see activity()
    kAdvance,       // the clock to `until`; advanced()
    kWait,          // for at most `time` of real time for something from outside
    kEnd,           // the run is over
  };
  Kind kind = Kind::kContinue;
  uint32_t slot = 0;
  Instant until{};
  Duration time{};
  PollGrant polls{};
  uint32_t calls = 0;  // until the thread is preempted; 0: it is not
  /// The thread was stopped after that call of it, and something happened since; 0: it was not.
  uint64_t stopped_after = 0;
};

class Scheduler {
 public:
  explicit Scheduler(Options options) : options_(std::move(options)) {
    if (options_.schedule.is_any()) priorities_.emplace(options_.schedule);
  }

  /// Returns whether the next step may be a turn: threads that take no turns must be at rest then.
  bool in_round() const { return phase_ == Phase::kRound || (phase_ == Phase::kBegin && is_seen_); }
  /// Returns whether nothing has happened since each thread has looked in vain.
  bool is_quiet() const { return is_quiet_; }
  Step next(const Facts& facts);
  /// Begins anew, after a step that failed.
  void restart();

  void heard_news(bool any);
  void turn_ended(const Turn& turn);
  /// `has_worked`: there was something to do. `have_changed`: a process came or went.
  void device_ran(bool has_worked, bool have_changed);
  /// `has_answered`: a thread may have its reply now. `has_acted`: something else changed, too.
  void control_served(bool has_answered, bool has_acted);
  void acted_idle(bool has_acted);
  /// It is `now`. `is_seen`: programs may see what happened. `has_happened`: something was due.
  void advanced(Instant now, bool is_seen, bool has_happened);
  void saw_qps(std::vector<uint32_t> progress, bool may_repeat);

  /// Another number each time that programs did something; `inputs` is the NIC's.
  uint32_t activity(uint32_t inputs) const { return inputs + rounds_; }
  /// The activity at the latest look.
  uint32_t seen_activity() const { return hang_.activity(); }
  bool is_stuck() const { return hang_.is_stuck(); }
  /// Since when a run hangs that hangs `now`: time that only went with polls is none of it.
  Instant hangs_since(Instant now) const {
    return any_polls_ && !hang_.repeats() ? idle_since_ : now;
  }

  /// The run hangs and is being ended: time stands still from now on.
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
  /// Returns whether threads have done things without end at this instant.
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
  bool is_seen_ = true;  // by some program: what was done since the latest round of turns
  Turn round_;           // of all threads in it
  TurnOrder::Place place_{};
  uint32_t rounds_ = 0;        // of turns, in which somebody did something
  uint32_t idle_rounds_ = 0;   // since then
  Instant idle_since_{};       // in virtual time
  uint32_t turns_ = 0;         // since time moved, in which a thread did something
  bool is_quiet_ = false;      // each thread has looked in vain since then
  uint32_t unseen_ = 0;        // by programs: what the NIC did since they last saw something
  std::set<uint64_t> looked_;  // the serials of the threads that have had a turn since then
  bool any_polls_ = false;
  bool pollers_wait_ = false;  // before they go on
  uint32_t waits_of_pollers_ = 0;
  bool is_for_askers_ = false;  // this round: of what they asked at the control socket
  bool is_ending_ = false;      // as a hang
  // Before time moved:
  Instant next_of_programs_ = kNever, next_of_sleepers_ = kNever;
  bool was_nic_due_ = false;
};

}  // namespace rocemu::schedule
