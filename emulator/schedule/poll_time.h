// The cost in virtual time of an attempt without success: polling an empty completion queue, trying
// a lock that another thread has, yielding.
#pragma once

#include <chrono>
#include <cstdint>

#include "emulator/schedule/thread.h"

namespace rocemu::schedule {

struct PollConstants {
  /// The approximate time of an empty poll with a NIC, which is a load and a compare.
  Duration poll{50};
  /// The number of consecutive polls, while nothing happens anywhere, that cost exactly this time
  /// each. The number is larger if the polling thread reads a clock, but makes a thousand polls or
  /// more between two readings. After that the price grows, up to a maximum.
  uint32_t exact = 65'536, exact_of_rare_clocks = 1U << 20;
  Duration max_poll = std::chrono::seconds(1);
  /// A polling thread may be ahead of other polling threads by this number of polls, and by a
  /// fraction of the time since one of them found something.
  uint32_t min_lead = 32;
  uint32_t lead_part = 8;
  /// The limit of polls for one turn, which takes less than a millisecond of real time if a poll
  /// takes 100 ns.
  uint32_t max_lead = 8192;
  /// The number of consecutive actions of the NIC that no program sees, such as receiving packets
  /// in the middle of a message, after which polling threads may see the NIC's actions later, by
  /// the fraction above. Thousands of frames may be due within a microsecond.
  uint32_t crowd = 16;
  /// The number of polls in a turn when the price grows. A thread that reads a clock between polls
  /// has turns that last from one reading to the next, at least the second number.
  uint32_t growing = 1024, between_clocks = 32;
  /// The price, in polls, of a turn in which a thread only read clocks. Such a thread waits for a
  /// time that only it knows, so the price grows from the first such turn on.
  uint32_t of_clock_reads = 20;
  /// Threads that poll while nothing at all is due keep the processor for this number of polls.
  /// After that the run waits between polls, and may count as a hang.
  uint32_t busy = 1U << 20;
};
inline constexpr PollConstants kPollConstants;

/// What a thread may do in a turn: it returns the turn with its last poll, and has its next turn
/// when the time for all of them is over.
struct PollGrant {
  uint32_t polls = 1;
  Duration each = kPollConstants.poll;
};

/// The situation when a turn begins
struct Idleness {
  /// Whether each thread has had a turn without success since the latest event.
  bool is_quiet = false;
  Instant now, next = kNever;  // the next event, except polls
  bool reads_clock = false;    // some polling thread reads a clock in between
  Instant since{};             // the latest time at which a polling thread found something
  bool is_alone = false;       // no other thread polls
};

/// Returns the time by which a polling thread may see the NIC's actions too late.
Duration lead_of(const Idleness& idleness, const Polling& polling);

/// Returns the grant for a thread with this history of polls.
PollGrant grant_polls(const Idleness& idleness, const Polling& polling);

/// Returns the end of the first poll that could see what happened then; kNever if the thread has
/// polled since.
Instant next_poll_after(const Polling& polling, Instant happened_at);

/// Returns when a polling thread has its next turn. A price that has grown applies only while
/// nothing happens: a thread that polled before `happened_at`, the latest event, is ready when its
/// polls are over at the price of 50 ns.
Instant ready_after_polls(const Polling& polling, Instant happened_at);

}  // namespace rocemu::schedule
