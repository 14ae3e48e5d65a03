// The virtual time that an attempt without success takes: polling an empty completion queue, trying
// a lock that another thread has, yielding.
#pragma once

#include <chrono>
#include <cstdint>

#include "emulator/schedule/thread.h"

namespace rocemu::schedule {

struct PollConstants {
  /// The time of an empty poll. With a real NIC, it is a load and a compare, which take about this
  /// time.
  Duration poll{50};
  /// The number of consecutive polls that take the time `poll` each, while nothing happens
  /// anywhere. After that the time for a poll, its price, grows up to a maximum. The second number
  /// applies to a thread that reads a clock, but makes at least a thousand polls between two
  /// readings.
  uint32_t exact = 65'536, exact_of_rare_clocks = 1U << 20;
  Duration max_poll = std::chrono::seconds(1);
  /// A polling thread may get ahead of other polling threads by min_lead polls or, if that is more,
  /// by 1/lead_part of the time since any polling thread last found something.
  uint32_t min_lead = 32;
  uint32_t lead_part = 8;
  /// The maximum number of polls in a turn. At 100 ns of real time for each poll, they take less
  /// than a millisecond.
  uint32_t max_lead = 8192;
  /// After this number of consecutive NIC actions that no program sees, such as receiving packets
  /// in the middle of a message, polling threads may see the NIC's actions later, by up to
  /// 1/lead_part of the time for which they have polled. Thousands of frames may be due within a
  /// microsecond.
  uint32_t crowd = 16;
  /// The number of polls in a turn once the price of a poll grows. The turn of a thread that reads
  /// a clock between its polls lasts from one reading to the next, but at least between_clocks
  /// polls.
  uint32_t growing = 1024, between_clocks = 32;
  /// The price, in polls, of a turn in which a thread only reads clocks. Such a thread waits for a
  /// time that only it knows, so the price grows from the first such turn.
  uint32_t of_clock_reads = 20;
  /// The number of polls that threads may make without a pause while no event is due. After that
  /// the run waits between polls, and may count as hanging.
  uint32_t busy = 1U << 20;
};
inline constexpr PollConstants kPollConstants;

/// The polls that a thread may make in a turn, and the time for each poll. The turn ends with the
/// last poll, and the thread's next turn begins when the time for all polls is over.
struct PollGrant {
  uint32_t polls = 1;
  Duration each = kPollConstants.poll;
};

/// The situation when a turn begins
struct Idleness {
  /// If true, nothing can happen before `next`: the NIC has handled everything, and each other
  /// thread has had a turn without success since the latest event, or is not ready.
  bool is_quiet = false;
  Instant now, next = kNever;  // the next event, except polls
  bool reads_clock = false;    // some polling thread reads a clock in between
  Instant since{};             // the latest time at which a polling thread found something
  bool is_alone = false;       // no other thread polls
};

/// Returns the maximum delay after which a polling thread sees the NIC's actions.
Duration lead_of(const Idleness& idleness, const Polling& polling);

/// Returns how many polls a thread with this history of polls may make, and their price.
PollGrant grant_polls(const Idleness& idleness, const Polling& polling);

/// Returns the end of the first poll that could see an event at `happened_at`; kNever if the thread
/// has polled since the event.
Instant next_poll_after(const Polling& polling, Instant happened_at);

/// Returns when a polling thread has its next turn. `happened_at` is the time of the latest event.
/// A price above 50 ns for a poll applies only while nothing happens: if the event happened after
/// the thread's polls, they cost 50 ns each.
Instant ready_after_polls(const Polling& polling, Instant happened_at);

}  // namespace rocemu::schedule
