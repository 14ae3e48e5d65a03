// Scripts that test which thread runs next, when time advances, and when a run hangs or ends.
#include "emulator/schedule/scheduler.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <set>

#include "tests/schedule/script.h"

namespace rocemu::test {
namespace {

using namespace std::chrono_literals;

TEST(Scheduler, GivesTurnsInTheOrderInWhichThreadsWereStarted) {
  Script s;
  s.starts(3).starts(1).starts(2);
  s.at(0ns).gives(1).waits();
  s.at(0ns).gives(2).waits();
  s.at(0ns).gives(3).waits();
}

TEST(Scheduler, GivesEachThreadATurnBeforeOneHasItsSecond) {
  Script s;
  s.starts(1).starts(2);
  s.gives(1).waits();
  s.gives(2).waits();
  s.gives(1).waits();
  s.gives(2).ends();
  s.gives(1).ends();
}

TEST(Scheduler, GivesATurnInTheSameRoundToAThreadThatStartsInIt) {
  Script s;
  s.starts(1);
  s.gives(1).waits();
  s.starts(2);
  s.gives(2).ends();
}

TEST(Scheduler, TimeStandsStillWhileAThreadHasSomethingToDo) {
  Script s;
  s.starts(1).starts(2);
  s.at(0ns).gives(1).sleeps_until(1s);
  s.at(0ns).gives(2).waits();
  s.at(0ns).gives(1).looks_again();
  s.at(0ns).gives(2).sleeps_until(500ms);
  s.at(0ns).advances_to(500ms);
  s.at(500ms).gives(2).ends();
  s.at(500ms).advances_to(1s);
  s.at(1s).gives(1).ends();
}

TEST(Scheduler, TimeMovesToWhatComesFirst) {
  Script s;
  s.starts(1).nic_is_due(3us).timer_is_due(2us);
  s.gives(1).sleeps_until(4us);
  s.at(0ns).advances_to(2us);
  s.at(2us).advances_to(3us);
  s.at(3us).advances_to(4us);
  s.at(4us).gives(1).ends();
}

TEST(Scheduler, TheNicActsAfterEachRoundAndThreadsLookAgain) {
  Script s;
  s.starts(1).starts(2);
  s.gives(1).rings().waits();
  s.gives(2).waits();
  s.gives(1).looks_again();
  s.gives(2).looks_again();
  s.nic_is_due(1us).advances_to(1us);
  s.at(1us).gives(1).ends();
}

TEST(Scheduler, ProgramsDoNotLookForWhatTheyCannotSee) {
  Script s;
  s.starts(1).nic_is_due(1us, /*is_seen=*/false).nic_is_due(2us);
  s.gives(1).waits();
  s.advances_to(1us);
  s.at(1us).advances_to(2us);  // thread 1 gets no turn in between
  s.at(2us).gives(1).ends();
}

TEST(Scheduler, ReportsAHangWhenEachThreadWaitsAndNothingIsDue) {
  Script s;
  s.starts(1).starts(2);
  s.gives(1).waits();
  s.gives(2).waits();
  s.reports_hang();
}

TEST(Scheduler, ReportsNoHangBeforeAProgramCameNorWhileTheNicWaitsForMemory) {
  for (bool Facts::*reason : {&Facts::is_held, &Facts::memory_waits}) {
    Script s;
    s.with([&](Facts& facts) { facts.*reason = true; });
    s.starts(1).gives(1).waits();
    for (int i = 0; i < 10; ++i) s.waits_outside();
  }
  Script s;
  s.with([](Facts& facts) { facts.has_seen_programs = false; });
  for (int i = 0; i < 10; ++i) s.waits_outside();
}

TEST(Scheduler, ReportsAHangWhenRetriesRepeatAndNoQpComesFurther) {
  Script s;
  s.starts(1).qps_stand_still().gives(1).waits();
  for (int i = 1;; ++i) {
    s.nic_is_due(i * 1ms, /*is_seen=*/false).advances_to(i * 1ms);
    // The scheduler first reads the QPs' progress after 1000 advances. It reports a hang if the
    // progress is the same after another 1000, and 64 for the one QP.
    if (i < 2064) continue;
    s.reports_hang();
    break;
  }
}

TEST(Scheduler, TimeStandsStillUntilItIsDecidedWhetherRetriesAreAHang) {
  Script s;
  s.starts(1).qps_stand_still().gives(1).waits();
  for (int i = 1; i <= 2064; ++i) s.nic_is_due(i * 1ms, /*is_seen=*/false).advances_to(i * 1ms);
  s.reports_hang();
  s.nic_is_due(3s, /*is_seen=*/false);
  s.waits_outside();
  s.with([](Facts& facts) { facts.real_now += 14s; }).waits_outside();
  s.with([](Facts& facts) { facts.real_now += 1s; }).advances_to(3s);
}

TEST(Scheduler, ARunIsOverWhenItsCommandHasEndedAndNoFrameIsUnderWay) {
  Script s;
  s.starts(1).starts(2).nic_is_due(1us);
  s.gives(1).sleeps_until(1h);
  s.with([](Facts& facts) { facts.has_command_ended = facts.has_frames_under_way = true; });
  s.gives(2).ends();
  s.advances_to(1us);
  s.with([](Facts& facts) { facts.has_frames_under_way = false; });
  s.gives(1).looks_again();
  s.ends_run();
}

TEST(Scheduler, AThreadThatWaitsForRoomKeepsTimeStill) {
  Script s;
  s.starts(1).starts(2);
  s.gives(1).sleeps_until(1s);
  s.gives(2).ends_turn({.progressed = true, .waits_for_room = true});
  s.gives(1).looks_again();
  s.gives(2).ends_turn({.waits_for_room = true});
  s.waits_outside();
}

TEST(Scheduler, ARequestAtTheControlSocketTakesNoTime) {
  Script s;
  s.starts(1).timer_is_due(10s);
  s.gives(1).asks().sleeps_until(10s);  // the timeout of the thread's recv(2)
  s.at(0ns).gives(1).asks().sleeps_until(10s);
  s.at(0ns).gives(1).sleeps_until(10ms);
  s.advances_to(10ms);
  s.gives(1).asks().sleeps_until(20ms);
  s.at(10ms).gives(1).ends();
}

TEST(Scheduler, RequestsFromOutsideOfTheRunKeepTimeFromMovingForOneRoundOnly) {
  Script s;
  s.starts(1).timer_is_due(1s).timer_is_due(2s).is_asked_without_end();
  s.gives(1).waits();
  s.gives(1).looks_again();
  s.advances_to(1s);
  s.gives(1).looks_again();
  s.advances_to(2s);
}

TEST(Scheduler, ARequestFromOutsideOfTheRunChangesNothingOfWhatThreadsDo) {
  const auto run = [](bool is_asked) {
    Script s;
    if (is_asked) s.is_asked_without_end();
    s.starts(1).starts(2).starts(3).nic_is_due(3us).timer_is_due(10us);
    s.gives(1).sleeps_until(7us);
    std::vector<std::pair<Duration, uint32_t>> turns;
    s.plays([&](Script& script, uint64_t thread) {
      if (script.now() >= Instant(10us)) return false;
      if (thread == 1) {
        script.now() < Instant(7us) ? script.looks_again() : script.ends();
        return true;
      }
      turns.emplace_back(script.now() - Instant(), script.granted().polls);
      script.polls_on();
      return true;
    });
    return turns;
  };
  EXPECT_GT(run(false).size(), 3U);
  EXPECT_EQ(run(true), run(false));
}

TEST(Scheduler, GivesNoTurnToAThreadWhoseWaitCannotHaveEnded) {
  schedule::Scheduler scheduler({});
  const std::array threads{schedule::Thread{.slot = 0, .serial = 1, .is_blocked = true},
                           schedule::Thread{.slot = 1, .serial = 2}};
  const Facts facts{.now = {}, .threads = threads};
  std::set<uint32_t> given;
  for (int i = 0; i < 100; ++i) {
    const Step step = scheduler.next(facts);
    switch (step.kind) {
      case Step::Kind::kLookForNews:
        scheduler.heard_news(false);
        break;
      case Step::Kind::kGiveTurn:
        given.insert(step.slot);
        scheduler.turn_ended({});
        break;
      case Step::Kind::kRunDevice:
        scheduler.device_ran(false, false);
        break;
      case Step::Kind::kServeControl:
        scheduler.control_served(false, false);
        break;
      case Step::Kind::kActIdle:
        scheduler.acted_idle(false);
        break;
      case Step::Kind::kAdvance:
        FAIL() << "time moves, and nothing is due";
      default:
        break;
    }
  }
  EXPECT_EQ(given, std::set<uint32_t>{1});
}

TEST(TurnOrder, FindsTheFirstReadyThreadBehindAPlace) {
  using schedule::Thread, schedule::TurnOrder;
  const std::vector<Thread> threads = {{.slot = 0, .serial = 4},
                                       {.slot = 1, .serial = 2},
                                       {.slot = 2, .serial = 3},
                                       {.slot = 3, .serial = 1}};
  const auto next = [&](uint64_t after, uint32_t sleeper) {
    const Thread* found = TurnOrder::next_after(
        {after}, threads, [&](const Thread& one) { return one.slot != sleeper; });
    return found == nullptr ? 0 : found->serial;
  };
  constexpr uint32_t kNone = 99;
  EXPECT_EQ(next(0, kNone), 1u);
  EXPECT_EQ(next(1, kNone), 2u);
  EXPECT_EQ(next(2, kNone), 3u);
  EXPECT_EQ(next(2, 2), 4u);
  EXPECT_EQ(next(4, kNone), 0u);
}

}  // namespace
}  // namespace rocemu::test
