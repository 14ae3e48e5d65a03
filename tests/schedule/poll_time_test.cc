// Tests the time that polls take. The numbers follow from the constants in poll_time.h: a poll
// costs 50 ns.
#include "emulator/schedule/poll_time.h"

#include <gtest/gtest.h>

#include <chrono>

namespace rocemu::test {
namespace {

using namespace std::chrono_literals;
using schedule::Duration;
using schedule::grant_polls;
using schedule::Idleness;
using schedule::Instant;
using schedule::PollGrant;
using schedule::Polling;

constexpr Instant kNow{10s};

void expect(const PollGrant& grant, uint32_t polls, Duration each) {
  EXPECT_EQ(grant.polls, polls);
  EXPECT_EQ(grant.each, each);
}

Polling polled(uint64_t streak, uint32_t in_latest_turn = 1) {
  return {.polls = in_latest_turn,
          .streak = streak,
          .since = kNow - static_cast<int64_t>(streak) * Duration(50)};
}

TEST(PollTime, GivesOnePollWhileSomethingHappens) {
  expect(grant_polls({.is_quiet = false, .now = kNow, .next = kNow + 1s}, polled(100'000)), 1,
         50ns);
}

TEST(PollTime, GivesTheLeastLeadToAThreadThatHasJustFoundSomething) {
  expect(grant_polls({.is_quiet = true, .now = kNow}, polled(0)), 32, 50ns);
}

TEST(PollTime, GivesAnEighthOfTheStreakAtMost8192Polls) {
  expect(grant_polls({.is_quiet = true, .now = kNow}, polled(8 * 100)), 100, 50ns);
  expect(grant_polls({.is_quiet = true, .now = kNow}, polled(8 * 10'000)), 8192, 50ns);
}

TEST(PollTime, CountsAStreakFromTheLatestTimeThatAnyThreadFoundSomething) {
  const Idleness idleness{.is_quiet = true, .now = kNow, .since = kNow - 800 * Duration(50)};
  expect(grant_polls(idleness, polled(80'000)), 100, 50ns);
}

TEST(PollTime, GivesAThreadThatPollsAloneTheLongestTurn) {
  expect(grant_polls({.is_quiet = true, .now = kNow, .is_alone = true}, polled(0)), 8192, 50ns);
}

TEST(PollTime, EndsATurnWithThePollThatReachesTheNextDueTime) {
  expect(grant_polls({.is_quiet = true, .now = kNow, .next = kNow + 1000ns}, polled(0)), 20, 50ns);
  expect(grant_polls({.is_quiet = true, .now = kNow, .next = kNow + 1001ns}, polled(0)), 21, 50ns);
  expect(grant_polls({.is_quiet = true, .now = kNow, .next = kNow + 1ns}, polled(0)), 1, 50ns);
}

TEST(PollTime, LetsThePriceGrowAfter65536PollsIfSomethingIsDue) {
  const Idleness due{.is_quiet = true, .now = kNow, .next = kNow + 1s};
  expect(grant_polls(due, polled(65'535)), 65'535 / 8, 50ns);
  // An eighth of the time of 65,536 polls of 50 ns is 409,600 ns: 400 ns for each of 1024 polls,
  // and one more ns to be sure to reach it.
  expect(grant_polls(due, polled(65'536)), 1024, 401ns);
  expect(grant_polls({.is_quiet = true, .now = kNow}, polled(65'536)), 8192, 50ns);
}

TEST(PollTime, GrowsAtMostToTheNextDueTime) {
  // 102,400 ns are 100 ns for each of 1024 polls. With one more ns, 1014 polls are enough.
  const Idleness due{.is_quiet = true, .now = kNow, .next = kNow + 102'400ns};
  expect(grant_polls(due, polled(65'536)), 1014, 101ns);
}

TEST(PollTime, LetsThePriceGrowLaterForThreadsThatSeldomReadClocks) {
  const Idleness idleness{.is_quiet = true, .now = kNow, .reads_clock = true};
  Polling rare = polled((1U << 20) - 1, 1024);
  rare.reads_clock = true;
  expect(grant_polls(idleness, rare), 8192, 50ns);
  rare = polled(1U << 20, 1024);
  rare.reads_clock = true;
  // An eighth of the time of 2^20 polls of 50 ns is 6,553,600 ns: 6400 ns for each of 1024 polls.
  expect(grant_polls(idleness, rare), 1024, 6401ns);
}

TEST(PollTime, GivesThreadsThatOftenReadClocksATurnToTheNextReading) {
  const Idleness idleness{.is_quiet = true, .now = kNow, .reads_clock = true};
  Polling often = polled(65'536, 100);
  often.reads_clock = true;
  expect(grant_polls(idleness, often), 100, 4097ns);  // 409,600 ns in 100 polls
  often.polls = 31;
  expect(grant_polls(idleness, often), 32, 12'801ns);
}

TEST(PollTime, GrowsWithTheCubeOfTheTurnsForThreadsThatOnlyReadClocks) {
  const Idleness idleness{.is_quiet = true, .now = kNow, .reads_clock = true};
  // The thread has polled without a result for 1 s. The cube root of 10^9 is 1000, so the turn
  // takes 4 * 1000^2 ns, and each of 20 polls a twentieth of that.
  const Polling reads{.polls = 0, .streak = 0, .since = kNow - 1s, .reads_clock = true};
  expect(grant_polls(idleness, reads), 20, 200'001ns);
}

TEST(PollTime, LetsAPollCostOneSecondAtMost) {
  const Idleness idleness{.is_quiet = true, .now = Instant(1'000'000s), .reads_clock = true};
  const Polling reads{.polls = 0, .since = Instant{}, .reads_clock = true};
  // The cube root of 10^15 is 100,000, so 20 polls would take 4 * 10^10 ns, which is 2 s each; the
  // limit is 1 s.
  expect(grant_polls(idleness, reads), 20, 1s);
}

TEST(PollTime, LeadsByAnEighthOfTheTimeAndBy8192PollsAtMost) {
  const auto lead = [](Duration in_vain) {
    return schedule::lead_of({.now = kNow}, {.since = kNow - in_vain});
  };
  EXPECT_EQ(lead(0ns), 0ns);
  EXPECT_EQ(lead(80us), 10us);
  EXPECT_EQ(lead(1s), 8192 * Duration(50));
}

TEST(PollTime, CountsPollsBeforeSomethingHappenedAt50NsEach) {
  const Polling polling{.polled_at = Instant(1us), .polls = 10, .ready_at = Instant(5us)};
  EXPECT_EQ(schedule::ready_after_polls(polling, Instant(1us - 1ns)), Instant(5us));
  EXPECT_EQ(schedule::ready_after_polls(polling, Instant(1us)), Instant(1500ns));
  EXPECT_EQ(schedule::ready_after_polls(
                {.polled_at = Instant(1us), .polls = 0, .ready_at = Instant(5us)}, Instant(2us)),
            Instant(2us))
      << "a turn that only reads clocks costs 20 polls";
}

}  // namespace
}  // namespace rocemu::test
