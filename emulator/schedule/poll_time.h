// What it costs in virtual time to look for something that is not there: to poll an empty
// completion queue, to try a lock that another thread has, to yield.
#pragma once

#include <chrono>
#include <cstdint>

#include "emulator/schedule/thread.h"

namespace rocemu::schedule {

struct PollConstants {
  /// About what an empty poll costs on a NIC, where it is a load and a compare.
  Duration poll{50};
  /// So many polls in a row, in which nothing happens anywhere, cost exactly that each; more if the
  /// thread that polls reads a clock, and makes a thousand polls and more between two readings. The
  /// price grows only after that, up to the last.
  uint32_t exact = 65'536, exact_of_rare_clocks = 1U << 20;
  Duration max_poll = std::chrono::seconds(1);
  /// A thread that polls may be ahead of others that poll by this number of polls, and by this part
  /// of the time since one of them found something.
  uint32_t min_lead = 32;
  uint32_t lead_part = 8;
  /// A turn takes less than a millisecond of real time, as long as a poll takes 100 ns of it.
  uint32_t max_lead = 8192;
  /// So often in a row the NIC does something that no program sees, such as to receive packets in
  /// the middle of a message, before threads that poll find what it does by that part of the time
  /// late: thousands of frames may be due within a microsecond.
  uint32_t crowd = 16;
  /// Polls of a turn when the price grows. A thread that reads a clock between polls has turns that
  /// are as long as its way from one reading to the next, at least the second number.
  uint32_t growing = 1024, between_clocks = 32;
  /// What a turn costs in which a thread did nothing but read clocks. It waits for a time that only
  /// it knows: for it the price grows from the beginning.
  uint32_t of_clock_reads = 20;
  /// Threads that poll while nothing at all is due keep the processor for this number of polls.
  /// After that the run waits between polls, and may be a hang.
  uint32_t busy = 1U << 20;
};
inline constexpr PollConstants kPollConstants;

/// What a thread may do in a turn: it gives the turn back with its last poll, and has its next turn
/// when the time for all of them is over.
struct PollGrant {
  uint32_t polls = 1;
  Duration each = kPollConstants.poll;
};

/// How things are when a turn begins.
struct Idleness {
  /// Since the latest time that anything happened each thread has had a turn in vain.
  bool is_quiet = false;
  Instant now, next = kNever;  // the next thing that may happen, except polls
  bool reads_clock = false;    // some thread that polls reads a clock in between
  Instant since{};             // when one of the threads that poll found something, latest of all
  bool is_alone = false;       // no other thread polls
};

/// Returns by how much time a thread that polls may find late what the NIC does.
Duration lead_of(const Idleness& idleness, const Polling& polling);

/// Returns the grant for a thread that has polled so.
PollGrant grant_polls(const Idleness& idleness, const Polling& polling);

/// Returns when a thread that polls has its next turn. A price that has grown is for the time in
/// which nothing happens: a thread that polled before `happened_at`, the latest time that something
/// did, is ready when its polls are over at the price of 50 ns.
Instant ready_after_polls(const Polling& polling, Instant happened_at);

}  // namespace rocemu::schedule
