// Scripts about the time that polls without a result take, and about threads that poll at the same
// time. A poll costs 50 ns; the constants are those of emulator/schedule/poll_time.h and
// docs/design/time.md.
#include <gtest/gtest.h>

#include <chrono>
#include <map>

#include "tests/schedule/script.h"

namespace rocemu::test {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPoll = 50ns;

TEST(Polling, EachPollTakesItsTime) {
  Script s;
  s.starts(1);
  s.at(0ns).gives(1).polls(2);
  s.at(0ns).advances_to(100ns);
  s.at(100ns).gives(1).polls(5);
  s.at(100ns).advances_to(350ns);
  s.at(350ns).gives(1).ends();
}

TEST(Polling, AThreadPollsUntilTheNextThingHappensInOneTurn) {
  Script s;
  s.starts(1).nic_is_due(1us);
  s.gives(1).for_polls(20, kPoll).polls(2);  // until 1 us, there is time for 20 polls of 50 ns
  s.advances_to(100ns);
  s.at(100ns).gives(1).for_polls(18, kPoll).polls_on();
  s.advances_to(1us);
  s.at(1us).gives(1).ends();
}

TEST(Polling, AWatchdogOf20SecondsDoesNotFireDuringEightPolls) {
  Script s;
  s.starts(1).timer_is_due(20s);
  uint32_t polls = 0;
  s.plays([&](Script& script, uint64_t) {
    if (polls >= 8) return false;
    polls += 2;
    script.polls(2);
    return true;
  });
  EXPECT_EQ(s.now(), Instant(8 * kPoll));
}

TEST(Polling, AnHourOfAnotherThreadsSleepIsNotOverDuring65536Polls) {
  Script s;
  s.starts(1).starts(2);
  s.gives(1).sleeps_until(1h);
  uint32_t polls = 0;
  const uint32_t turns = s.plays([&](Script& script, uint64_t thread) {
    EXPECT_EQ(thread, 2U);
    if (polls >= 65'536) return false;
    EXPECT_EQ(script.granted().each, kPoll);
    polls += std::max(script.granted().polls, 2U);
    script.polls_on();
    return true;
  });
  EXPECT_EQ(s.now(), Instant(polls * kPoll));
  EXPECT_LT(turns, 200U);  // a turn takes about 10 us of real time
}

TEST(Polling, AnHourPassesInFewTurns) {
  Script s;
  s.starts(1).starts(2);
  s.gives(1).sleeps_until(1h);
  uint64_t polls = 0;
  uint32_t turns = 0;
  s.plays([&](Script& script, uint64_t thread) {
    if (thread == 1) return false;
    ++turns;
    polls += std::max(script.granted().polls, 2U);
    script.polls_on();
    return true;
  });
  EXPECT_EQ(s.now(), Instant(1h));
  EXPECT_LT(turns, 500U);
  EXPECT_LT(polls, 5'000'000U);  // a poll takes 60 ns of real time, so these take 0.3 s
}

/// Retries that programs cannot see do not restart the count of polls.
TEST(Polling, AnHourOfRetriesIsOverInFewTurns) {
  Script s;
  s.starts(1).gives(1).polls(2);
  for (int i = 1; i <= 900; ++i) s.nic_is_due(i * 4s, i == 900);
  uint32_t turns = 0;
  s.plays([&](Script& script, uint64_t) {
    if (script.now() >= Instant(1h)) return false;
    ++turns;
    script.polls_on();
    return true;
  });
  EXPECT_LT(s.now(), Instant(1h + 2us));
  EXPECT_LT(turns, 5000U);
}

TEST(Polling, AThreadThatReadsAClockComesToItsOwnDeadlineOfAnHour) {
  for (const uint32_t between : {1U, 32U, 1024U}) {
    Script s;
    s.starts(1);
    uint32_t turns = 0;
    s.plays([&](Script& script, uint64_t) {
      if (script.now() >= Instant(1h)) return false;
      ++turns;
      script.polls_and_reads_clock(std::max(32U, between));
      return true;
    });
    EXPECT_LT(turns, 7000U) << between;
  }
}

TEST(Polling, AThreadThatOnlyReadsClocksWaitsForTimeFromTheBeginning) {
  Script s;
  s.starts(1);
  uint32_t turns = 0;
  s.plays([&](Script& script, uint64_t) {
    if (script.now() >= Instant(1s)) return false;
    ++turns;
    script.only_reads_clocks();
    return true;
  });
  // In each turn, the time t increases by 4 t^(2/3) ns, so after n turns it is (4n/3)^3 ns.
  EXPECT_LE(turns, 751U);
}

TEST(Polling, AThreadDoesNotPollBeyondTheNicsNextDueTime) {
  Script s;
  s.starts(1).nic_is_due(1us);
  uint32_t polls = 0;
  s.plays([&](Script& script, uint64_t) {
    if (script.now() >= Instant(1us)) return false;
    polls += script.granted().polls;
    script.polls(script.granted().polls);
    return true;
  });
  EXPECT_EQ(polls, 20U);  // 1 us is the time of 20 polls
}

/// The packets of a message arrive at different times, and each causes an event of the NIC.
/// Programs see none of these thousands of events.
TEST(Polling, AThreadHasFewTurnsWhileTheNicDoesThousandsOfThingsThatNoProgramSees) {
  Script s;
  s.starts(1);
  for (int i = 1; i <= 10'000; ++i) s.nic_is_due(i * 100ns, /*is_seen=*/i == 10'000);
  int turns = 0;
  Instant found{};
  s.plays([&](Script& script, uint64_t) {
    ++turns;
    found = script.now();
    if (script.now() >= Instant(1ms)) return false;
    script.polls(script.granted().polls);
    return true;
  });
  EXPECT_LT(turns, 150);
  // The thread has polled without a result for a millisecond, and may exceed that by an eighth.
  EXPECT_LT(found, Instant(1ms + 125us));
}

/// perftest measures the processor's speed in 200 waits of 100 us to 2.09 ms, in which it only
/// reads clocks (get_cpu_mhz). The sum of these waits is 219 ms.
TEST(Polling, ManyShortWaitsOfAThreadThatOnlyReadsClocksStayShort) {
  Script s;
  s.starts(1);
  std::chrono::nanoseconds sum{};
  uint32_t waits = 0;
  Instant end(100us);
  s.plays([&](Script& script, uint64_t) {
    while (script.now() >= end && waits < 200) {
      sum += 100us + waits * 10us;
      ++waits;
      end = script.now() + 100us + waits * 10us;
    }
    if (waits == 200) return false;
    script.only_reads_clocks();
    return true;
  });
  EXPECT_EQ(sum, 219ms);
  EXPECT_LE(s.now(), Instant(2 * 219ms));
}

TEST(Polling, TimePassesForAThreadThatReadsClocksAtTheInstantAtWhichSomethingHappened) {
  Script s;
  s.starts(1).nic_is_due(1us);
  s.gives(1).waits();
  s.advances_to(1us);
  s.gives(1).only_reads_clocks();
  s.advances_to(2us);
}

TEST(Polling, ThreadsThatPollTogetherAreNeverFarApart) {
  Script s;
  s.starts(1).starts(2).timer_is_due(20s);
  std::map<uint64_t, uint64_t> polls;
  s.plays([&](Script& script, uint64_t thread) {
    if (polls[1] + polls[2] >= 100'000) return false;
    const uint64_t other = polls[3 - thread];
    polls[thread] += std::max(script.granted().polls, 2U);
    EXPECT_LE(polls[thread], other + std::max<uint64_t>(33, other / 8 + 2));
    script.polls_on();
    return true;
  });
}

/// After a long time without results, a thread's polls get expensive, and it may be ahead of
/// others. It must not be when another thread has found something, since that thread may act after
/// any poll.
TEST(Polling, AThreadThatHasPolledForLongIsNotFarAheadOfOneThatFoundSomething) {
  for (const bool comes_more : {false, true}) {
    Script s;
    s.starts(1).starts(2).nic_is_due(10ms);
    if (comes_more) s.timer_is_due(20s);
    s.plays([](Script& script, uint64_t thread) {
      if (thread == 1 && script.now() >= Instant(10ms)) return false;
      script.polls_on();
      return true;
    });
    s.finds_something().polls(1);
    std::map<uint64_t, uint64_t> polls;
    s.plays([&](Script& script, uint64_t thread) {
      if (polls[1] + polls[2] >= 1000) return false;
      const uint64_t other = polls[3 - thread];
      polls[thread] += script.granted().polls;
      EXPECT_EQ(script.granted().each, kPoll);
      EXPECT_LE(polls[thread], other + std::max<uint64_t>(34, other / 8 + 2));
      script.polls_on();
      return true;
    });
  }
}

/// Other threads act now and then, which does not restart the count of polls: an hour still ends
/// soon.
TEST(Polling, AnHourOfASleepersRoundsIsOverInFewTurns) {
  for (const uint64_t pollers : {1U, 2U}) {
    Script s;
    s.starts(1).starts(2);
    if (pollers == 2) s.starts(3);
    uint64_t turns = 0, polls = 0;
    s.gives(1).sleeps_until(50ms);
    s.plays([&](Script& script, uint64_t thread) {
      if (script.now() >= Instant(60s)) return false;
      if (thread == 1) {
        script.sleeps_until(script.now() - Instant() + 50ms);
        return true;
      }
      ++turns;
      polls += script.granted().polls;
      script.polls_on();
      return true;
    });
    EXPECT_LT(turns, pollers * 6000U);  // 1200 rounds
    EXPECT_LT(polls, pollers * 3'000'000U);
  }
}

/// A thread that has not polled since an event may act when it polls, so no other thread may
/// continue to poll before that.
TEST(Polling, NoThreadPollsOnBeforeEachHasSeenAnEvent) {
  Script s;
  s.starts(1).starts(2).timer_is_due(1s);
  s.gives(1).polls(2);
  s.gives(2).polls(3);
  s.nic_is_due(100ns);
  s.advances_to(100ns);
  s.gives(1).for_polls(1, kPoll).polls(1);
  s.advances_to(150ns);
  s.gives(1).for_polls(1, kPoll).polls(1);  // thread 2 has its turn at 150 ns as well
  s.gives(2).for_polls(32, kPoll).polls(1);
  s.advances_to(200ns);
  s.gives(1).for_polls(32, kPoll);
}

/// What a thread does in this round can cause an event of the NIC at this instant.
TEST(Polling, AThreadPollsOnceInARoundInWhichAnotherRangADoorbell) {
  Script s;
  s.starts(1).starts(2).timer_is_due(1s);
  s.gives(1).waits();
  s.gives(2).for_polls(1, kPoll).polls(1);
}

/// Thread 2 is not ready before 1 us, and nothing else is due.
TEST(Polling, AThreadPollsUntilAnotherIsReadyThatHasNotSeenAnEvent) {
  Script s;
  s.starts(1).starts(2).nic_is_due(1us).timer_is_due(1s);
  s.gives(1).polls(1);
  s.gives(2).for_polls(20, kPoll).polls(20);
  s.advances_to(50ns);
  s.at(50ns).gives(1).waits();  // an event that thread 2 has not seen
  s.gives(1).for_polls(19, kPoll);
}

TEST(Polling, ExactPollsSeeWhatHappenedAtTheirNextEnd) {
  const schedule::Polling polling{.polled_at = Instant(1000ns), .ready_at = Instant(9us)};
  EXPECT_EQ(schedule::next_poll_after(polling, Instant(999ns)), schedule::kNever);
  EXPECT_EQ(schedule::next_poll_after(polling, Instant(1000ns)), Instant(1050ns));
  EXPECT_EQ(schedule::next_poll_after(polling, Instant(2001ns)), Instant(2050ns));
  EXPECT_EQ(schedule::next_poll_after(polling, Instant(2050ns)), Instant(2050ns));
}

TEST(Polling, AThreadThatAlonePollsIsGrantedAllPollsUpToTheNextThing) {
  Script s;
  s.starts(1).starts(2).timer_is_due(100us);
  s.gives(1).waits();
  s.gives(2).polls(2);
  s.advances_to(100ns);
  s.gives(2).for_polls(1998, kPoll);  // until then, there is time for 1998 polls of 50 ns
}

/// A thread polls eight times and then sends. The watchdog of 20 s must not come first, although
/// another thread polls for ever.
TEST(Polling, AThreadActsBesideOneThatPollsForEver) {
  Script s;
  s.starts(1).starts(2).timer_is_due(20s);
  uint32_t polls = 0;
  s.plays([&](Script& script, uint64_t thread) {
    if (thread == 1) {
      script.polls_on();
      return true;
    }
    if (polls >= 8) return false;
    polls += 2;
    script.polls(2);
    return true;
  });
  EXPECT_LE(s.now(), Instant(8 * kPoll));
}

TEST(Polling, ATimerFiresAtItsTimeBesideAThreadThatPolls) {
  Script s;
  s.starts(1).starts(2);
  s.gives(1).sleeps_until(10'025ns);
  s.plays([](Script& script, uint64_t thread) {
    if (thread == 1) return false;
    script.polls_on();
    return true;
  });
  EXPECT_EQ(s.now(), Instant(10'025ns));
}

/// Each thread holds the lock for one poll, and then waits until the other thread has held it.
TEST(Polling, TimePassesForThreadsThatPollUnderALock) {
  Script s;
  s.starts(1).starts(2).timer_is_due(2us);
  uint32_t polls = 0;
  s.plays([&](Script& script, uint64_t) {
    if (script.now() >= Instant(2us)) return false;
    ++polls;
    script.polls(1);
    return true;
  });
  EXPECT_GE(polls, 2 * 40U);  // each thread can poll every 50 ns for 2 us
}

TEST(Polling, AThreadThatWaitsForALockIsAskedAgainWhileTheOwnerPolls) {
  Script s;
  s.starts(1).starts(2);
  s.gives(1).polls(2);
  s.gives(2).ends_turn({.progressed = true, .polls = true});
  s.gives(2).ends_turn({.polls = true});
  s.advances_to(100ns);
  s.gives(1).polls_on();
  s.gives(2).ends_turn({.polls = true});
}

TEST(Polling, ALoopOf2To20PollsEndsWithNothingElseToHappen) {
  Script s;
  s.starts(1);
  uint32_t polls = 0;
  const uint32_t turns = s.plays([&](Script& script, uint64_t) {
    if (polls >= 1U << 20) return false;
    EXPECT_EQ(script.granted().each, kPoll);
    polls += std::max(script.granted().polls, 2U);
    script.polls_on();
    return true;
  });
  // No hang was reported before the thread had polled that often, however slow the machine is.
  EXPECT_GE(polls, 1U << 20);
  EXPECT_LT(turns, 400U);
}

TEST(Polling, ADeadlockOfPollersIsReportedAndLeavesTimeToLookAtThem) {
  Script s;
  s.starts(1).starts(2);
  uint32_t waits = 0, reports = 0;
  for (int i = 0; i < 100'000 && reports < 20; ++i) {
    s.plays([&](Script& script, uint64_t) {
      script.polls_on();
      return true;
    });
    s.with([](Facts& facts) { facts.real_now += 20ms; });
    if (s.stopped_by() == Step::Kind::kWait) ++waits;
    if (s.stopped_by() == Step::Kind::kReportHang) ++reports;
  }
  EXPECT_EQ(reports, 20U);
  EXPECT_GT(waits, 20U);
  // The report names the time of the last event, however long the threads polled.
  EXPECT_EQ(s.scheduler().hangs_since(s.now()), Instant());
}

TEST(Polling, AThreadThatPollsIsNoHangWhileSomethingIsDue) {
  Script s;
  s.starts(1).timer_is_due(1h);
  s.plays([&](Script& script, uint64_t) {
    if (script.now() >= Instant(1h)) return false;
    script.polls_on();
    return true;
  });
  EXPECT_LT(s.now(), Instant(1h + 2us));  // no report of a hang ended the run
}

TEST(Polling, ThreadsPollOnWhileTimeIsHeld) {
  Script s;
  s.starts(1).with([](Facts& facts) { facts.is_held = true; });
  s.gives(1).polls(2);
  for (int i = 0; i < 10; ++i) {
    s.at(0ns).gives(1).for_polls(1, kPoll).polls(2);
    s.waits_outside();
  }
}

TEST(Polling, TimeDoesNotMoveWithPollsWhileTheNicIsPaused) {
  Script s;
  s.starts(1).gives(1).polls(2);
  s.with([](Facts& facts) { facts.is_paused = true; });
  for (int i = 0; i < 20; ++i)
    s.plays([](Script& script, uint64_t) {
      script.polls(2);
      return true;
    });
  EXPECT_EQ(s.stopped_by(), Step::Kind::kWait);
  s.at(0ns);
}

/// After a thread has polled for long, each of its polls takes a long time. Such a poll ends as
/// soon as another thread does something.
TEST(Polling, AThreadSeesAnothersActionDuringALongPollAtOnce) {
  Script s;
  s.starts(1).starts(2).timer_is_due(1h);
  // Thread 2 polls rarely, and acts while thread 1 is in the middle of a long poll.
  s.plays([](Script& script, uint64_t thread) {
    if (thread == 1) {
      script.polls_on();
      return true;
    }
    if (script.now() >= Instant(10s)) return false;
    script.polls_on();
    return true;
  });
  const Instant acted_at = s.now();
  s.waits();
  s.plays([](Script&, uint64_t) { return false; });
  // at most the time that 1024 polls of thread 1 take before it has polled for long
  EXPECT_LE(s.now(), acted_at + 1024 * kPoll);
}

TEST(Polling, WhatAThreadDoesEndsTheLongTurnsOfOthers) {
  Script s;
  s.starts(1).starts(2).timer_is_due(1s);
  s.gives(1).sleeps_until(1ms);
  s.plays([](Script& script, uint64_t thread) {
    if (thread == 1) return false;
    script.polls_on();
    return true;
  });
  s.at(1ms);
  s.waits();  // thread 1 has done something
  s.gives(2).for_polls(1, kPoll);
}

}  // namespace
}  // namespace rocemu::test
