// Tests probabilistic concurrency testing (PCT): which thread runs next, and where a thread is
// stopped. PCT is Burckhardt, Kothari, Musuvathi, Nagarakatte, "A randomized scheduler with
// probabilistic guarantees of finding bugs", ASPLOS 2010.
#include "emulator/schedule/priority_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/schedule/script.h"

namespace rocemu::test {
namespace {

using namespace std::chrono_literals;
using schedule::PriorityOrder;
using schedule::ScheduleChoice;
using schedule::Thread;

constexpr uint64_t kNic = 0;

/// Returns the number of the n-th schedule with PCT: every second schedule has it, from 2 on.
uint64_t pct(uint64_t number) {
  return 2 * number;
}

/// Returns which of several threads or the NIC makes each step. All of them can always run.
std::vector<uint64_t> steps_of(uint64_t schedule, size_t count, size_t threads_count = 3) {
  PriorityOrder order({.number = schedule});
  std::vector<Thread> threads;
  for (uint32_t i = 1; i <= threads_count; ++i) threads.push_back({.slot = i, .serial = i});
  std::vector<uint64_t> steps;
  while (steps.size() < count) {
    order.see(threads, Instant{});
    order.happened();
    const Thread* const first = order.first(threads, [](const Thread&) { return true; });
    if (order.is_behind_nic(*first)) {
      order.nic_acted();
      steps.push_back(kNic);
      continue;
    }
    const uint32_t calls = order.calls_for(*first, threads, /*is_quiet=*/false);
    order.turn_ended(first->serial, {.progressed = true, .is_preempted = true, .calls = calls});
    for (uint32_t i = 0; i < calls && steps.size() < count; ++i) steps.push_back(first->serial);
  }
  return steps;
}

/// Returns the indices of steps that are made by another thread than the step before.
std::vector<size_t> switches_of(const std::vector<uint64_t>& steps) {
  std::vector<size_t> switches;
  for (size_t i = 1; i < steps.size(); ++i)
    if (steps[i] != steps[i - 1]) switches.push_back(i);
  return switches;
}

TEST(ScheduleChoice, IsTheOrdinaryOrderWithoutNumberAndStops) {
  EXPECT_FALSE(ScheduleChoice{}.is_any());
  EXPECT_TRUE(ScheduleChoice{.number = 1}.is_any());
  EXPECT_TRUE((ScheduleChoice{.number = 0, .has_stops = true}).is_any());
}

TEST(PriorityOrder, HasEachDepthWithEachWindowInFortyEightSchedules) {
  std::set<std::pair<uint32_t, uint32_t>> kinds;
  for (uint64_t number = 1; number <= 24; ++number) {
    const PriorityOrder order({.number = pct(number)});
    EXPECT_EQ(order.interval(), 0U);
    kinds.emplace(order.depth(), order.window());
  }
  EXPECT_EQ(kinds.size(), 24U);
  for (const auto& [depth, window] : kinds) {
    EXPECT_GE(depth, 1U);
    EXPECT_LE(depth, 3U);
    EXPECT_GE(window, 4U);
    EXPECT_LE(window, 1024U);
  }
}

TEST(PriorityOrder, IsTheSameForTheSameNumber) {
  for (uint64_t number = 1; number <= 48; ++number)
    EXPECT_EQ(steps_of(number, 500), steps_of(number, 500));
}

/// PCT, theorem: a bug of depth 1 with n threads is found with a probability of at least 1/n. Each
/// of the four must be first in a quarter of 4,000 schedules: 1,000, with a standard deviation of
/// 27.
TEST(PriorityOrder, DrawsPrioritiesUniformly) {
  std::map<uint64_t, int> first;
  std::set<std::vector<uint64_t>> orders;
  for (uint64_t i = 0; i < 4000; ++i) ++first[steps_of(pct(1 + 3 * i), 1)[0]];
  for (const uint64_t one : {kNic, uint64_t{1}, uint64_t{2}, uint64_t{3}}) {
    EXPECT_GT(first[one], 1000 - 5 * 27) << one;
    EXPECT_LT(first[one], 1000 + 5 * 27) << one;
  }
}

TEST(PriorityOrder, NeverChangesInASchedule_OfDepthOne) {
  for (uint64_t number = 1; number < 100; number += 3) {
    ASSERT_EQ(PriorityOrder({.number = pct(number)}).depth(), 1U);
    EXPECT_TRUE(switches_of(steps_of(pct(number), 3000)).empty()) << number;
  }
}

/// At a change, the thread that runs gets a lower priority than all others. With `depth - 1`
/// changes in each window, a change follows each step with a probability of (depth - 1) / window,
/// or a little less, because two changes of a window can fall on the same step.
TEST(PriorityOrder, ChangesDepthLessOneTimesInEachWindow) {
  constexpr size_t kSteps = 4000;  // fewer steps than lower the priority of a busy thread
  for (uint64_t number = 2; number <= 24; ++number) {
    const PriorityOrder order({.number = pct(number)});
    if (order.depth() == 1) continue;
    const double windows = static_cast<double>(kSteps) / order.window();
    const double most = (order.depth() - 1) * (windows + 2);
    const auto switches = static_cast<double>(switches_of(steps_of(pct(number), kSteps)).size());
    EXPECT_LE(switches, most) << number;
    // In a window of four steps, two changes fall on the same step in a quarter of all cases.
    EXPECT_GE(switches, 0.8 * (order.depth() - 1) * (windows - 2)) << number;
  }
}

/// PCT's bound for depth 2 is 1 / (n k): in one of k schedules, the change of the first window is
/// at a given step. Schedules whose numbers differ by 24 have windows of the same size k, here 64
/// steps.
TEST(PriorityOrder, HitsEachStepOfAWindowEquallyOften) {
  uint64_t number = 2;
  while (PriorityOrder({.number = pct(number)}).window() != 64) number += 3;
  ASSERT_EQ(PriorityOrder({.number = pct(number)}).depth(), 2U);
  std::map<size_t, int> hits;
  constexpr int kSchedules = 6400;
  for (int i = 0; i < kSchedules; ++i)
    for (const size_t at : switches_of(steps_of(pct(number + 24 * static_cast<uint64_t>(i)), 65)))
      ++hits[at];
  // Each step is hit 100 times, with a standard deviation of 10.
  for (size_t step = 1; step <= 64; ++step) {
    EXPECT_GT(hits[step], 50) << step;
    EXPECT_LT(hits[step], 150) << step;
  }
}

/// Returns after which of its first `most_calls` calls the only thread stops.
std::set<uint64_t> stops_of(uint64_t schedule, uint64_t most_calls) {
  PriorityOrder order({.number = schedule});
  const std::vector<Thread> threads = {{.slot = 1, .serial = 1}};
  order.see(threads, Instant{});
  std::set<uint64_t> stops;
  for (uint64_t call = 0; call <= most_calls; stops.insert(call)) {
    const uint32_t calls = order.calls_for(threads[0], threads, /*is_quiet=*/false);
    order.turn_ended(1, {.progressed = true, .is_preempted = true, .calls = calls});
    call += calls;
  }
  return stops;
}

TEST(PriorityOrder, HasEachIntervalInTwelveSchedules) {
  std::set<uint32_t> intervals;
  for (uint64_t number = 1; number <= 12; number += 2)
    intervals.insert(PriorityOrder({.number = number}).interval());
  EXPECT_EQ(intervals, (std::set<uint32_t>{2, 4, 8, 16, 32, 64}));
}

/// The number of calls until the next stop is uniform in 1 to 2g - 1, with the mean g. So the first
/// stop comes after the k-th call with a probability of at least (1 - (k - 1) / (2g - 1)) / (2g -
/// 1). Any stop comes after a given call with a probability of at least 1 / (2g - 1), since the
/// number is drawn anew after each stop.
TEST(PriorityOrder, StopsAfterEachCallEquallyOften) {
  constexpr int kSchedules = 4000;
  for (uint64_t first = 1; first <= 11; first += 2) {
    const double interval = PriorityOrder({.number = first}).interval();
    std::map<uint64_t, int> stops;
    for (uint64_t i = 0; i < kSchedules; ++i)
      for (const uint64_t call : stops_of(first + 12 * i, 40)) ++stops[call];
    const double least = kSchedules / (2 * interval - 1);
    for (uint64_t call = 1; call <= 40; ++call)
      EXPECT_GT(stops[call], least - 5 * std::sqrt(least)) << interval << " " << call;
  }
}

/// A stop lasts one turn: the thread keeps its priority, and stops again later.
TEST(PriorityOrder, StopsThreadsAgainAndAgain) {
  for (uint64_t number = 1; number <= 11; number += 2) {
    const double interval = PriorityOrder({.number = number}).interval();
    const auto stops = static_cast<double>(stops_of(number, 6400).size());
    EXPECT_GT(stops, 0.7 * 6400 / interval) << number;
    EXPECT_LT(stops, 1.3 * 6400 / interval) << number;
  }
}

/// Returns the first schedule of depth 1 in which these threads have this order.
uint64_t schedule_with(const std::vector<uint64_t>& order) {
  for (uint64_t number = 1;; number += 3) {
    PriorityOrder tried({.number = pct(number)});
    std::vector<Thread> threads;
    for (const uint64_t serial : {1U, 2U}) threads.push_back({.slot = 0, .serial = serial});
    tried.see(threads, Instant{});
    bool is_it = true;
    for (size_t i = 0; i + 1 < order.size(); ++i) {
      const auto is_before = [&](uint64_t one, uint64_t other) {
        if (other == kNic) return !tried.is_behind_nic(threads[one - 1]);
        if (one == kNic) return tried.is_behind_nic(threads[other - 1]);
        return tried.is_before(threads[one - 1], threads[other - 1]);
      };
      is_it = is_it && is_before(order[i], order[i + 1]);
    }
    if (is_it) return pct(number);
  }
}

Options with(const std::vector<uint64_t>& order) {
  return {.schedule = {.number = schedule_with(order)}, .reports_hangs = true};
}

TEST(ThreadsWithPriorities, TheFirstRunsUntilItWaits) {
  Script s(with({2, 1, kNic}));
  s.starts(1).starts(2);
  s.gives(2).waits();
  s.gives(1).ends();
}

TEST(ThreadsWithPriorities, OneOfALowerPriorityStopsAfterEachCall) {
  Script s(with({2, 1, kNic}));
  s.starts(1).starts(2);
  s.gives(2).waits();
  s.gives(1);
  EXPECT_EQ(s.granted_calls(), 1U);
  // Thread 2 may have waited for the effect of thread 1's call, so it gets the next turn.
  s.is_preempted().gives(2).waits();
  s.gives(1).is_preempted().gives(2).ends();
  s.gives(1).ends();
}

/// The number of rounds before a program starts depends on how long its start takes in real time.
TEST(ThreadsWithPriorities, RoundsBeforeTheFirstThreadChangeNothing) {
  for (int rounds = 0; rounds < 5; ++rounds) {
    Script s(with({kNic, 1, 2}));
    s.with([](Facts& facts) { facts.has_seen_programs = false; });
    for (int i = 0; i < rounds; ++i) s.waits_outside();
    s.starts(1).starts(2);
    s.gives(1);
    EXPECT_EQ(s.granted_calls(), 1U) << rounds;
  }
}

TEST(ThreadsWithPriorities, TheNicActsAtOnceIfItsIsHigher) {
  Script s(with({kNic, 1, 2}));
  s.starts(1).starts(2);
  s.gives(1);
  EXPECT_EQ(s.granted_calls(), 1U);
  s.nic_is_due(3us);
  s.rings().is_preempted().advances_to(3us);
  s.gives(1).at(3us).ends();
  s.gives(2).ends();
}

TEST(ThreadsWithPriorities, TheNicIsLateIfItsIsLower) {
  Script s(with({1, 2, kNic}));
  s.starts(1).starts(2);
  s.gives(1).rings().waits();
  s.nic_is_due(3us);
  s.gives(2).at(0us).waits();
  s.advances_to(3us);
}

/// The NIC's work is due much later, for example the timer of a retransmission.
TEST(ThreadsWithPriorities, NoThreadWaitsForWhatTheNicDoesMuchLater) {
  Script s(with({kNic, 1, 2}));
  s.starts(1).starts(2).nic_is_due(67ms);
  s.gives(1).is_preempted();
  s.gives(1).at(0us).ends();
  s.gives(2).at(0us).ends();
}

TEST(ThreadsWithPriorities, NoThreadWaitsLongerThanAMillisecondForABusyNic) {
  Script s(with({kNic, 1, 2}));
  s.starts(1).starts(2);
  for (Duration due = 100us; due <= 3ms; due += 100us) s.nic_is_due(due);
  uint32_t turns = 0;
  s.plays([&](Script& script, uint64_t thread) {
    ++turns;
    EXPECT_EQ(thread, 1U);
    EXPECT_LE(script.now(), Instant(1100us));
    return false;
  });
  EXPECT_EQ(turns, 1U);
}

TEST(ThreadsWithPriorities, OneThatPollsLetsOthersRun) {
  Script s(with({1, 2, kNic}));
  s.starts(1).starts(2);
  s.gives(1).polls(2);
  s.gives(2).at(0us).waits();
  s.advances_to(100ns).gives(1).ends();
}

TEST(ThreadsWithPriorities, TimeDoesNotMoveWhileOneCouldRun) {
  Script s(with({1, 2, kNic}));
  s.starts(1).starts(2);
  s.gives(1).sleeps_until(1us);
  s.gives(2).at(0us).is_preempted();
  s.gives(2).at(0us).waits();
  s.advances_to(1us).gives(1).ends();
}

/// The thread has sent a request, for example, and a server answers it.
TEST(ThreadsWithPriorities, OneThatDidSomethingLooksForTheAnswerBeforeTimeMoves) {
  Script s(with({2, 1, kNic}));
  s.starts(1).starts(2);
  s.gives(2).sleeps_until(1s);
  s.gives(1).waits();
  s.gives(1).at(0us).ends();
  s.advances_to(1s).gives(2).ends();
}

/// The thread takes a lock again and again to read a flag, for example.
TEST(ThreadsWithPriorities, OneThatNeverWaitsIsLowered) {
  Script s(with({1, 2, kNic}));
  s.starts(1).starts(2);
  uint32_t turns = 0;
  s.plays([&](Script& script, uint64_t thread) {
    if (thread == 2) return false;
    script.is_preempted();
    return ++turns < 10;
  });
  EXPECT_LE(turns, 1U);
}

TEST(ListedStops, AreWhereThreadsStop) {
  Script s({.schedule = {.number = 0, .has_stops = true, .stops = {{.thread = 1, .call = 3}}},
            .reports_hangs = true});
  s.starts(1).starts(2);
  s.gives(1);
  EXPECT_EQ(s.granted_calls(), 3U);
  s.is_preempted();
  s.nic_is_due(3us);
  s.gives(2).waits();
  s.advances_to(3us).gives(2).waits();
  s.gives(1).at(3us).ends();
}

TEST(ListedStops, CountTheCallsOfAllTurns) {
  Script s({.schedule = {.number = 0, .has_stops = true, .stops = {{.thread = 1, .call = 3}}},
            .reports_hangs = true});
  s.starts(1).starts(2);
  s.gives(1).calls(2).sleeps_until(1us);
  s.gives(2).waits();
  s.advances_to(1us).gives(1);
  EXPECT_EQ(s.granted_calls(), 1U);
  s.is_preempted().gives(2).waits();
  s.gives(1).ends();
}

TEST(ListedStops, OneThatIsStoppedLetsSleepersWakeForAMillisecond) {
  Script s({.schedule = {.number = 0, .has_stops = true, .stops = {{.thread = 1, .call = 1}}},
            .reports_hangs = true});
  s.starts(1).starts(2);
  s.gives(1).is_preempted();
  s.gives(2).sleeps_until(500us);
  s.advances_to(500us).gives(2).sleeps_until(5ms);
  s.gives(1).at(500us).ends();
}

}  // namespace
}  // namespace rocemu::test
