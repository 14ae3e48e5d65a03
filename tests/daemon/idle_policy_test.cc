// What the daemon does when there is nothing to do (docs/design/idle-policy.md).
#include "emulator/daemon/client/idle_policy.h"

#include <gtest/gtest.h>

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;
using Way = IdlePolicy::Way;

constexpr engine::Instant kStart{1s};
constexpr IdlePolicy::Clients kOneSide{.both_sides = false, .rung_beside = false};

TEST(IdlePolicy, GivesWayForAWhileAndThenSleeps) {
  IdlePolicy rest(kStart);
  EXPECT_EQ(rest.next(kStart, kOneSide), Way::kGiveWay);
  EXPECT_EQ(rest.next(kStart + 49us, kOneSide), Way::kGiveWay);
  EXPECT_EQ(rest.next(kStart + 50us, kOneSide), Way::kSleep);
  rest.worked(kStart + 60us);
  EXPECT_EQ(rest.next(kStart + 70us, kOneSide), Way::kGiveWay);
}

TEST(IdlePolicy, BetweenClientsWaitsOnlyForAnAnswerFromElsewhere) {
  const IdlePolicy rest(kStart);
  const IdlePolicy::Clients rung_here{.both_sides = true, .rung_beside = true};
  EXPECT_EQ(rest.next(kStart + 1us, rung_here), Way::kLookAgain);
  EXPECT_EQ(rest.next(kStart + 4us, rung_here), Way::kSleep);
  const IdlePolicy::Clients rung_elsewhere{.both_sides = true, .rung_beside = false};
  EXPECT_EQ(rest.next(kStart, rung_elsewhere), Way::kSleep);
}

TEST(IdlePolicy, MessagesOfANetworkComeAfterAPause) {
  IdlePolicy rest(kStart);
  EXPECT_FALSE(rest.is_idle(kStart + 19us));
  EXPECT_TRUE(rest.is_idle(kStart + 20us));
  rest.worked(kStart + 20us);
  EXPECT_FALSE(rest.is_idle(kStart + 20us));
}

/// Of a yield that takes `took`, after which it sleeps at once for as long as this returns.
engine::Duration crowd_after(IdlePolicy& rest, engine::Instant& now, engine::Duration took) {
  rest.worked(now);
  rest.gave_way(now, now + took);
  now += took;
  const engine::Instant begin = now;
  for (rest.worked(now); rest.next(now, kOneSide) == Way::kSleep; rest.worked(now)) now += 1ms;
  return now - begin;
}

TEST(IdlePolicy, SleepsWhereAYieldTookLong) {
  IdlePolicy rest(kStart);
  engine::Instant now = kStart;
  EXPECT_EQ(crowd_after(rest, now, 299us), 0ms);
  EXPECT_EQ(crowd_after(rest, now, 4ms), 20ms);
}

TEST(IdlePolicy, SleepsForLongerEachTimeThatThisWasTooShort) {
  IdlePolicy rest(kStart);
  engine::Instant now = kStart;
  for (const auto expected : {20ms, 40ms, 80ms, 160ms, 320ms, 640ms, 1000ms, 1000ms}) {
    EXPECT_EQ(crowd_after(rest, now, 4ms), expected);
  }
}

TEST(IdlePolicy, WhoGivesWayInTurnEndsTheCrowd) {
  IdlePolicy rest(kStart);
  engine::Instant now = kStart;
  crowd_after(rest, now, 4ms);
  EXPECT_EQ(crowd_after(rest, now, 2us), 0ms);
  EXPECT_EQ(crowd_after(rest, now, 4ms), 20ms);
}

TEST(IdlePolicy, AYieldThatLetNobodyInProvesNothing) {
  IdlePolicy rest(kStart);
  engine::Instant now = kStart;
  crowd_after(rest, now, 4ms);
  EXPECT_EQ(crowd_after(rest, now, 300ns), 0ms);
  EXPECT_EQ(crowd_after(rest, now, 4ms), 40ms);
}

TEST(IdlePolicy, ACrowdIsForgottenWhenNobodyCame) {
  IdlePolicy rest(kStart);
  engine::Instant now = kStart;
  crowd_after(rest, now, 4ms);
  now += 21ms;
  crowd_after(rest, now, 300ns);
  EXPECT_EQ(crowd_after(rest, now, 4ms), 20ms);
}

}  // namespace
}  // namespace rocemu::daemon
