// Where --schedule N takes a turn away, and what happens until the thread has it again.
#include "emulator/schedule/preemption.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

#include "tests/schedule/script.h"

namespace rocemu::test {
namespace {

using namespace std::chrono_literals;
using schedule::Preemption;
using schedule::Thread;

constexpr uint64_t kSchedules = 4000;

/// Returns by how much later the thread continues than it was preempted.
Duration delay_of(uint64_t schedule, uint32_t preemptions) {
  const Thread thread{
      .slot = 0, .serial = 7, .preempted_at = Instant(1ms), .preemptions = preemptions};
  return Preemption(schedule).ends(thread) - Instant(1ms);
}

TEST(PreemptionOfThreads, ScheduleZeroHasNone) {
  EXPECT_EQ(Preemption(0).calls_for({.slot = 0, .serial = 1}), 0U);
}

TEST(PreemptionOfThreads, AThreadKeepsTheCallsThatItHasLeft) {
  EXPECT_EQ(Preemption(3).calls_for({.slot = 0, .serial = 1, .calls_left = 5}), 5U);
}

TEST(PreemptionOfThreads, IsTheSameForTheSameNumbersAndAnotherForOthers) {
  std::set<uint32_t> first_calls;
  for (uint64_t schedule = 1; schedule <= 100; ++schedule) {
    const Thread thread{.slot = 0, .serial = 7};
    const Thread elsewhere{.slot = 9, .serial = 7, .deadline = Instant(1s)};
    EXPECT_EQ(Preemption(schedule).calls_for(thread), Preemption(schedule).calls_for(elsewhere));
    first_calls.insert(Preemption(schedule).calls_for(thread));
  }
  EXPECT_GT(first_calls.size(), 20U);
}

TEST(PreemptionOfThreads, ComesAfterTheScheduleSIntervalOnAverage) {
  std::set<uint32_t> intervals;
  for (uint64_t schedule = 1; schedule <= 200; ++schedule) {
    const Preemption preemption(schedule);
    intervals.insert(preemption.interval());
    double sum = 0;
    for (uint32_t i = 0; i < 2000; ++i) {
      const uint32_t calls = preemption.calls_for({.slot = 0, .serial = 1, .preemptions = i});
      ASSERT_GE(calls, 1U);
      ASSERT_LE(calls, 2 * preemption.interval() - 1);
      sum += calls;
    }
    EXPECT_NEAR(sum / 2000 / preemption.interval(), 1, 0.1);
  }
  EXPECT_EQ(intervals, (std::set<uint32_t>{2, 4, 8, 16, 32, 64, 128, 256}));
}

TEST(PreemptionOfThreads, LastsForNoTimeOrAPowerOfTwoOfMicroseconds) {
  std::set<Duration> delays;
  for (uint64_t schedule = 1; schedule <= 200; ++schedule) delays.insert(delay_of(schedule, 3));
  std::set<Duration> expected{0us};
  for (Duration delay = 1us; delay <= 1024us; delay *= 2) expected.insert(delay);
  EXPECT_EQ(delays, expected);
}

/// docs/design/turns.md: a place between two calls is preempted in at least one of 16 schedules,
/// and for at least 4 us in 9/12 of these.
TEST(PreemptionOfThreads, EachPlaceIsHitByOneScheduleInSixteen) {
  for (const uint32_t place : {1U, 2U, 3U, 10U, 100U, 1000U}) {
    uint32_t hits = 0, long_hits = 0;
    for (uint64_t schedule = 1; schedule <= kSchedules; ++schedule) {
      const Preemption preemption(schedule);
      uint32_t at = 0, preemptions = 0;
      while (at < place)
        at += preemption.calls_for({.slot = 0, .serial = 7, .preemptions = preemptions++});
      if (at != place) continue;
      ++hits;
      if (delay_of(schedule, preemptions) >= 4us) ++long_hits;
    }
    // 4000/16 is 250, and its standard deviation 15.
    EXPECT_GT(hits, 205U) << place;
    EXPECT_GT(long_hits, 140U) << place;
  }
}

/// Returns the first schedule after `least` in which the thread's first preemption lasts so long.
uint64_t schedule_with(Duration delay) {
  for (uint64_t schedule = 1;; ++schedule) {
    const Thread thread{.slot = 0, .serial = 1, .preempted_at = Instant{}, .preemptions = 1};
    if (Preemption(schedule).ends(thread) == Instant(delay)) return schedule;
  }
}

TEST(PreemptedThread, WaitsWhileOthersRunAndTheNicActs) {
  Script s({.schedule = schedule_with(8us), .reports_hangs = true});
  s.starts(1).gives(1);
  EXPECT_GE(s.granted_calls(), 1U);
  s.starts(2).nic_is_due(1us);
  s.is_preempted().gives(2).waits();
  s.advances_to(1us).gives(2).waits();
  s.advances_to(8us).gives(1).ends();
}

TEST(PreemptedThread, ThatWaitsForNoTimeGoesOnAfterTheNic) {
  Script s({.schedule = schedule_with(0us), .reports_hangs = true});
  s.starts(1).gives(1).rings().is_preempted().gives(1).at(0us).ends();
}

TEST(PreemptedThread, IsNoHang) {
  Script s({.schedule = schedule_with(1024us), .reports_hangs = true});
  s.starts(1).gives(1).is_preempted().advances_to(1024us).gives(1).waits().reports_hang();
}

TEST(PreemptedThread, GoesOnWhileTimeStandsStill) {
  Script s({.schedule = schedule_with(1024us), .reports_hangs = true});
  s.starts(1).gives(1).is_preempted();
  s.with([](Facts& facts) { facts.is_held = true; }).gives(1).at(0us).ends();
}

/// As a program that runs `rocemu show` in a loop, which takes no virtual time.
TEST(PreemptedThread, IsNotForgottenWhileAnotherWorksWithoutEnd) {
  Script s({.schedule = schedule_with(1024us), .reports_hangs = true});
  s.starts(1).gives(1).is_preempted();
  s.starts(2);
  int turns = 0;
  s.plays([&](Script& script, uint64_t thread) {
    if (thread == 1) return false;
    script.ends_turn({.progressed = true}).starts(2);
    return ++turns < 1000;
  });
  EXPECT_EQ(s.now(), Instant{});
  EXPECT_LE(turns, 100);
}

TEST(PreemptedThread, IsPreemptedAgainAfterAnotherNumberOfCalls) {
  Script s({.schedule = 5, .reports_hangs = true});
  s.starts(1);
  std::set<uint32_t> calls;
  s.plays([&](Script& script, uint64_t) {
    calls.insert(script.granted_calls());
    script.is_preempted();
    return calls.size() < 3;
  });
  EXPECT_EQ(calls.size(), 3U);
}

TEST(PreemptedThread, EndsTheGrantOfAThreadThatPolls) {
  Script s({.schedule = schedule_with(4us), .reports_hangs = true});
  s.starts(1).gives(1).is_preempted();
  s.starts(2);
  Instant polled_to{};
  s.plays([&](Script& script, uint64_t thread) {
    if (thread == 1) return false;
    polled_to = script.now() + script.granted().polls * script.granted().each;
    EXPECT_LE(polled_to, Instant(4us + 50ns));
    script.polls(script.granted().polls);
    return true;
  });
  EXPECT_GE(polled_to, Instant(3us));
}

}  // namespace
}  // namespace rocemu::test
