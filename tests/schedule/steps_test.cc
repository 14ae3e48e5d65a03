// Tests the scheduler step by step, including the steps that scripts omit, and how long it waits.
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "emulator/schedule/scheduler.h"

namespace rocemu::test {
namespace {

using namespace std::chrono_literals;
using schedule::Duration;
using schedule::Facts;
using schedule::Instant;
using schedule::Polling;
using schedule::Step;
using schedule::Turn;
using Kind = Step::Kind;

/// A scheduler, its facts, and the answers of a world in which nothing happens.
class Steps : public testing::Test {
 protected:
  Step next() {
    facts.threads = threads;
    return scheduler.next(facts);
  }
  void expect(Kind kind, int line = __builtin_LINE()) {
    EXPECT_EQ(static_cast<int>(next().kind), static_cast<int>(kind)) << "line " << line;
  }
  void gives_turn(const Turn& turn = {}, int line = __builtin_LINE()) {
    expect(Kind::kGiveTurn, line);
    scheduler.turn_ended(turn);
  }
  void nic_has_nothing(int line = __builtin_LINE()) {
    expect(Kind::kRunDevice, line);
    scheduler.device_ran(false, false);
  }
  void socket_has_nothing(int line = __builtin_LINE()) {
    expect(Kind::kServeControl, line);
    scheduler.control_served(false, false);
  }
  /// Runs a round in which each thread checks again, and nothing happens.
  void round_in_vain(const Turn& turn = {}, int line = __builtin_LINE()) {
    for (size_t i = 0; i < turns_of_round; ++i) gives_turn(turn, line);
    nic_has_nothing(line);
    socket_has_nothing(line);
  }
  void does_nothing_when_idle(int line = __builtin_LINE()) {
    expect(Kind::kActIdle, line);
    scheduler.acted_idle(false);
  }
  void waits(Duration time, int line = __builtin_LINE()) {
    const Step step = next();
    EXPECT_EQ(static_cast<int>(step.kind), static_cast<int>(Kind::kWait)) << "line " << line;
    EXPECT_EQ(step.time, time) << "line " << line;
  }
  /// Expects that the clock advances to `until`, where something is due, and reports to the
  /// scheduler what happened then. `is_seen`: whether programs see what is due. `has_happened`:
  /// whether anything happened.
  void advances(Instant until, bool is_seen, bool has_happened, int line = __builtin_LINE()) {
    const Step step = next();
    EXPECT_EQ(static_cast<int>(step.kind), static_cast<int>(Kind::kAdvance)) << "line " << line;
    EXPECT_EQ(step.until, until) << "line " << line;
    facts.now = until;
    scheduler.advanced(until, is_seen, has_happened);
  }
  /// Sets the state of thread 1: it has polled until now, and its granted polls take the time until
  /// `ready_at`.
  void polls_until(Instant ready_at) {
    threads[0].polling = Polling{.polled_at = facts.now,
                                 .polls = static_cast<uint32_t>((ready_at - facts.now) / 50ns),
                                 .ready_at = ready_at,
                                 .streak = 100'000,
                                 .since = Instant{}};
    turns_of_round = 0;
  }

  schedule::Scheduler scheduler{{.reports_hangs = true}};
  Facts facts{};
  std::vector<schedule::Thread> threads{{.slot = 7, .serial = 1}};
  size_t turns_of_round = 1;
};

TEST_F(Steps, ARoundIsTurnsThenTheNicThenTheControlSocketThenTime) {
  threads[0].deadline = Instant(5us);
  EXPECT_TRUE(scheduler.in_round());
  gives_turn({.progressed = true});
  EXPECT_TRUE(scheduler.in_round());
  expect(Kind::kRunDevice);
  EXPECT_FALSE(scheduler.in_round()) << "it has had its last turn";
  scheduler.device_ran(false, false);
  expect(Kind::kShow);  // the thread did something
  round_in_vain();
  advances(Instant(5us), false, false);
  expect(Kind::kContinue);
  EXPECT_TRUE(scheduler.in_round()) << "the thread's time has come";
  gives_turn();
}

TEST_F(Steps, WhatNoProgramSeesBringsALookForNewsAndNoRound) {
  facts.device = Instant(1us);
  round_in_vain();
  advances(Instant(1us), /*is_seen=*/false, true);
  facts.device = Instant(2us);
  expect(Kind::kContinue);
  EXPECT_FALSE(scheduler.in_round());
  expect(Kind::kLookForNews);
  scheduler.heard_news(false);
  nic_has_nothing();
  socket_has_nothing();
  advances(Instant(2us), /*is_seen=*/false, true);
  expect(Kind::kContinue);
  expect(Kind::kLookForNews);
  scheduler.heard_news(true);  // a program came
  gives_turn();
}

TEST_F(Steps, BeginsWithARoundOfTurnsAfterAStepThatFailed) {
  facts.device = Instant(1us);
  round_in_vain();
  advances(Instant(1us), /*is_seen=*/false, true);
  scheduler.restart();
  EXPECT_TRUE(scheduler.in_round());
  gives_turn();
}

TEST_F(Steps, RequestsAreServedOnceBeforeTimeMovesAndAgainAfterwards) {
  facts.device = Instant(1us);
  gives_turn();
  nic_has_nothing();
  expect(Kind::kServeControl);
  scheduler.control_served(/*has_answered=*/true, false);
  gives_turn();
  nic_has_nothing();
  advances(Instant(1us), /*is_seen=*/true, true);
  facts.device = schedule::kNever;
  expect(Kind::kContinue);
  gives_turn();
  nic_has_nothing();
  expect(Kind::kServeControl);
}

TEST_F(Steps, RequestsWaitForTheEndOfTheRunOnceItsCommandHasEnded) {
  facts.has_command_ended = facts.has_frames_under_way = true;
  facts.device = Instant(1us);
  gives_turn();
  nic_has_nothing();
  advances(Instant(1us), /*is_seen=*/true, true);
}

// A thread that polls may continue only after every other thread that is ready has checked since
// the latest event. A request that acted is an event.
TEST_F(Steps, ARequestThatActedIsNewsForThreadsThatPoll) {
  for (const bool has_acted : {false, true}) {
    SCOPED_TRACE(has_acted);
    scheduler = schedule::Scheduler({.reports_hangs = false});
    facts = {};
    threads = {{.slot = 7, .serial = 1}, {.slot = 8, .serial = 2}};
    gives_turn({.polls = true});
    gives_turn({.polls = true});
    polls_until(Instant(10us));
    threads[1].polling = threads[0].polling;
    nic_has_nothing();
    expect(Kind::kServeControl);
    scheduler.control_served(false, has_acted);
    if (has_acted) {
      expect(Kind::kShow);
      round_in_vain();
    }
    advances(Instant(10us), false, false);
    expect(Kind::kContinue);
    const Step turn = next();
    EXPECT_EQ(static_cast<int>(turn.kind), static_cast<int>(Kind::kGiveTurn));
    if (has_acted) {
      EXPECT_EQ(turn.polls.polls, 1U);
    } else {
      EXPECT_GT(turn.polls.polls, 1U);
    }
  }
}

// The first poll of the turn sees what the other thread did before.
TEST_F(Steps, AThreadThatPolledBeforeAnotherActedPollsOnWhenItsPollsAreOver) {
  threads.push_back({.slot = 8, .serial = 2});
  gives_turn({.polls = true});
  threads[0].polling = Polling{.polls = 200, .ready_at = Instant(10us), .streak = 100'000};
  gives_turn({.progressed = true});
  nic_has_nothing();
  expect(Kind::kShow);
  turns_of_round = 1;  // the turn of thread 2
  round_in_vain();
  advances(Instant(10us), false, false);
  expect(Kind::kContinue);
  const Step turn = next();
  EXPECT_EQ(turn.slot, 7U);
  EXPECT_EQ(turn.polls.polls, 8192U);
}

TEST_F(Steps, ThreadsThatGoOnAfterARequestMayAskAgainBeforeTimeMoves) {
  threads[0].deadline = Instant(1us);
  gives_turn();
  nic_has_nothing();
  expect(Kind::kServeControl);
  scheduler.control_served(/*has_answered=*/true, false);
  gives_turn({.progressed = true});
  nic_has_nothing();
  expect(Kind::kShow);
  gives_turn();
  nic_has_nothing();
  expect(Kind::kServeControl);
}

// Events that no program sees come in long series: the NIC has one for each packet of a message.
TEST_F(Steps, AThreadThatPollsFindsLateWhatTheNicDoesAfter16EventsThatNoProgramSees) {
  for (const int events : {15, 16}) {
    SCOPED_TRACE(events);
    scheduler = schedule::Scheduler({.reports_hangs = false});
    facts = {};
    threads = {{.slot = 7, .serial = 1}};
    gives_turn({.polls = true});
    polls_until(Instant(events * 1us));
    nic_has_nothing();
    socket_has_nothing();
    for (int i = 1; i <= events; ++i) {
      facts.device = Instant(i * 1us);
      if (i != 1) {
        expect(Kind::kLookForNews);
        scheduler.heard_news(false);
        nic_has_nothing();
        socket_has_nothing();
      }
      advances(Instant(i * 1us), /*is_seen=*/false, true);
      expect(Kind::kContinue);
    }
    facts.device = facts.now + 1us;
    // 1 us is the time of 20 polls. The thread has found nothing for 16 us, and an eighth of that
    // is the time of 40 polls.
    EXPECT_EQ(next().polls.polls, events == 15 ? 20U : 40U);
  }
}

TEST_F(Steps, WhatTheNicDoesWhenIdleIsNewsForAThreadThatPolls) {
  facts.is_held = true;
  turns_of_round = 1;
  threads[0].deadline = Instant(10us);
  for (const Duration time : {1ms, 1ms, 1ms}) {
    round_in_vain();
    waits(time);
  }
  round_in_vain();
  expect(Kind::kActIdle);
  scheduler.acted_idle(true);
  expect(Kind::kShow);
  round_in_vain();
  waits(1ms);  // the same time as after any event
}

TEST_F(Steps, APausedNicLetsProgramsLookForThreeRoundsBeforeItIsAskedForMore) {
  facts.is_paused = true;
  for (int i = 0; i < 3; ++i) {
    round_in_vain();
    expect(Kind::kContinue);
  }
  round_in_vain();
  expect(Kind::kActIdle);
  scheduler.acted_idle(true);
  expect(Kind::kShow);
  for (int i = 0; i < 3; ++i) {
    round_in_vain();
    expect(Kind::kContinue);
  }
}

// Three short waits let an external event arrive before a hang is reported. Later waits are so long
// that the search for a hang is not disturbed by turns.
TEST_F(Steps, WaitsShortlyThreeTimesAndThenLongWhileNothingCanHappen) {
  // no program has started, so only a first program can come from outside
  facts.has_seen_programs = false;
  turns_of_round = 0;
  threads.clear();
  const auto wait_longer = [&] {
    for (const Duration time : {1ms, 1ms, 1ms}) {
      round_in_vain();
      waits(time);
    }
    for (const Duration time : {16ms, 20ms, 20ms}) {
      round_in_vain();
      does_nothing_when_idle();
      waits(time);
    }
  };
  wait_longer();
  expect(Kind::kRunDevice);
  scheduler.device_ran(/*has_worked=*/true, false);
  expect(Kind::kShow);
  wait_longer();
  // After something happened in due work, the waits also start again with the shortest one.
  facts.device = Instant(1us);
  round_in_vain();
  advances(Instant(1us), false, /*has_happened=*/true);
  facts.device = schedule::kNever;
  expect(Kind::kContinue);
  expect(Kind::kLookForNews);
  scheduler.heard_news(false);
  nic_has_nothing();
  socket_has_nothing();
  waits(1ms);
}

TEST_F(Steps, DoesNotBeginTheCountOfWaitsAnewWhenNothingHappens) {
  facts.has_seen_programs = false;
  for (const Duration time : {1ms, 1ms}) {
    round_in_vain();
    waits(time);
  }
  facts.timers = Instant(1us);
  round_in_vain();
  advances(Instant(1us), false, /*has_happened=*/false);
  facts.timers = schedule::kNever;
  expect(Kind::kContinue);
  round_in_vain();
  waits(1ms);
  round_in_vain();
  does_nothing_when_idle();
  waits(16ms);
}

TEST_F(Steps, ThreadsThatPollGoOnWithoutAWaitFor1999RoundsWhileTimeIsHeld) {
  facts.is_held = true;
  for (int round = 1; round < 2000; ++round) {
    round_in_vain({.polls = true});
    if (round > 3) does_nothing_when_idle();
    waits(0ms);
  }
  for (const Duration time : {1ms, 2ms, 4ms, 8ms, 16ms, 20ms, 20ms}) {
    round_in_vain({.polls = true});
    does_nothing_when_idle();
    waits(time);
  }
}

// The time of 2^20 polls of 50 ns.
constexpr Duration kBusy{52'428'800};

TEST_F(Steps, AThreadThatPollsForNothingKeepsTheProcessorForAMillionPolls) {
  scheduler = schedule::Scheduler({.reports_hangs = false});
  facts.now = Instant(kBusy - 1ns);
  polls_until(facts.now + 1us);
  round_in_vain();
  advances(facts.now + 1us, false, false);
}

TEST_F(Steps, AThreadThatPollsForNothingWaitsLongerAndLongerAfterAMillionPolls) {
  scheduler = schedule::Scheduler({.reports_hangs = false});
  facts.now = Instant(kBusy);
  for (const Duration time : {1ms, 2ms, 4ms, 8ms, 16ms, 20ms, 20ms}) {
    polls_until(facts.now + 1us);
    round_in_vain();
    does_nothing_when_idle();
    waits(time);
    round_in_vain();
    advances(facts.now + 1us, false, false);  // the thread continues to poll after each wait
    expect(Kind::kContinue);
  }
}

TEST_F(Steps, PollsForNothingAreAHangAfterAMillionOfThem) {
  for (const Duration begin : {kBusy - 1us - 1ns, kBusy - 1us}) {
    scheduler = schedule::Scheduler({.reports_hangs = true});
    facts.now = Instant(begin);
    polls_until(facts.now + 1us);
    round_in_vain();
    advances(facts.now + 1us, false, false);
    expect(facts.now < Instant(kBusy) ? Kind::kContinue : Kind::kReportHang);
  }
}

TEST_F(Steps, ARunThatIsBeingEndedLetsThreadsPollWithoutTime) {
  gives_turn({.polls = true});
  polls_until(Instant(10us));
  scheduler.end();
  nic_has_nothing();
  socket_has_nothing();
  waits(0ms);
  const Step turn = next();
  EXPECT_EQ(static_cast<int>(turn.kind), static_cast<int>(Kind::kGiveTurn));
  EXPECT_EQ(turn.polls.polls, 1U);
}

TEST_F(Steps, AHangThatFollowsWhatProgramsDidIsReportedAtOnce) {
  const auto hangs = [&] {
    for (const Duration time : {1ms, 1ms, 1ms}) {
      round_in_vain();
      waits(time);
    }
    round_in_vain();
    does_nothing_when_idle();
    expect(Kind::kReportHang);
    waits(16ms);
  };
  hangs();
  round_in_vain();
  does_nothing_when_idle();
  waits(20ms);  // the same hang is reported again only after 1 ms of real time
  gives_turn({.progressed = true});
  nic_has_nothing();
  expect(Kind::kShow);
  hangs();
}

// Only periodic work of the NIC is due, so the hang stays reported until 15 s have passed.
TEST_F(Steps, ARunThatHangsStaysReportedWhileTheNicRepeatsItself) {
  turns_of_round = 1;
  for (const Duration time : {1ms, 1ms, 1ms}) {
    round_in_vain();
    waits(time);
  }
  round_in_vain();
  does_nothing_when_idle();
  expect(Kind::kReportHang);
  waits(16ms);
  facts.device = Instant(1us);
  facts.real_now += 100ms;
  round_in_vain();
  advances(Instant(1us), /*is_seen=*/false, true);
  facts.device = Instant(2us);
  expect(Kind::kReportHang);
  expect(Kind::kLookForNews);
  scheduler.heard_news(false);
  nic_has_nothing();
  socket_has_nothing();
  waits(1ms);  // time stands still
}

}  // namespace
}  // namespace rocemu::test
