#include "emulator/schedule/poll_time.h"

#include <algorithm>
#include <utility>

namespace rocemu::schedule {
namespace {

constexpr PollConstants kIs = kPollConstants;

uint32_t polls_in(Duration time, Duration each) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>((time + each - Duration(1)) / each, 1, kIs.max_lead));
}

/// Returns the largest integer whose cube is at most `value`.
int64_t cube_root(int64_t value) {
  int64_t root = 0;
  for (int64_t bit = int64_t{1} << 20; bit != 0; bit /= 2) {
    const int64_t tried = root + bit;
    if (tried * tried * tried <= value) root = tried;
  }
  return root;
}

/// Returns the duration of the next turn after a thread has polled in vain for the time `in_vain`.
/// Only the thread knows why it reads clocks: to wait for one long time or, like programs that
/// measure the speed of a processor, for many short times, which must not become long. For a thread
/// that only reads clocks, the total time therefore grows only with the cube of the number of
/// turns, and an hour takes about 11,000 turns.
Duration step_after(Duration in_vain, const Polling& polling) {
  if (polling.polls != 0) return in_vain / kIs.lead_part;
  const int64_t root = cube_root(in_vain.count());
  return Duration(4 * root * root);
}

/// Returns the number of polls after which the price of a poll grows, and the number of polls in
/// each later turn.
std::pair<uint32_t, uint32_t> growth_of(const Polling& polling) {
  if (!polling.reads_clock) return {kIs.exact, kIs.growing};
  if (polling.polls == 0) return {0, kIs.of_clock_reads};
  if (polling.polls >= kIs.growing) return {kIs.exact_of_rare_clocks, kIs.growing};
  return {kIs.exact, std::max(polling.polls, kIs.between_clocks)};
}

}  // namespace

Duration lead_of(const Idleness& idleness, const Polling& polling) {
  const Duration in_vain = idleness.now - std::max(polling.since, idleness.since);
  return std::min(in_vain / kIs.lead_part, kIs.max_lead * kIs.poll);
}

PollGrant grant_polls(const Idleness& idleness, const Polling& polling) {
  PollGrant grant;
  if (!idleness.is_quiet) return grant;
  const Duration left = idleness.next == kNever ? Duration::max() : idleness.next - idleness.now;
  const bool waits_for_time = idleness.next != kNever || idleness.reads_clock;
  const auto [exact, turn] = growth_of(polling);
  // A thread that has polled for a long time must not get further ahead than a thread that has just
  // found something.
  const Duration in_vain = idleness.now - std::max(polling.since, idleness.since);
  const uint64_t streak = std::min(polling.streak, static_cast<uint64_t>(in_vain / kIs.poll));
  if (waits_for_time && streak >= exact) {
    grant.polls = turn;
    // The last poll may end later than the next due event, but by 1 us at most.
    const Duration step = std::min(step_after(in_vain, polling), left);
    grant.each = std::clamp(step / turn + Duration(1), kIs.poll, kIs.max_poll);
  } else if (idleness.is_alone) {
    grant.polls = kIs.max_lead;
  } else {
    grant.polls = static_cast<uint32_t>(
        std::clamp<uint64_t>(streak / kIs.lead_part, kIs.min_lead, kIs.max_lead));
  }
  if (idleness.next != kNever) grant.polls = std::min(grant.polls, polls_in(left, grant.each));
  return grant;
}

Instant next_poll_after(const Polling& polling, Instant happened_at) {
  if (happened_at < polling.polled_at) return kNever;
  const int64_t polls = (happened_at - polling.polled_at + kIs.poll - Duration(1)) / kIs.poll;
  return polling.polled_at + std::max<int64_t>(polls, 1) * kIs.poll;
}

Instant ready_after_polls(const Polling& polling, Instant happened_at) {
  if (happened_at < polling.polled_at) return polling.ready_at;
  const uint32_t polls = polling.polls != 0 ? polling.polls : kIs.of_clock_reads;
  return std::min(polling.ready_at, polling.polled_at + polls * kIs.poll);
}

}  // namespace rocemu::schedule
