// Tests how a thread of the daemon waits (docs/design/waiting.md).
#include "emulator/daemon/client/idle_policy.h"

#include <gtest/gtest.h>

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;
using Way = IdlePolicy::Way;

constexpr engine::Instant kStart{1s};

TEST(IdlePolicy, YieldsForAWhileAndThenSleeps) {
  IdlePolicy policy(kStart);
  EXPECT_EQ(policy.next(kStart, {}), Way::kGiveWay);
  EXPECT_EQ(policy.next(kStart + 49us, {}), Way::kGiveWay);
  EXPECT_EQ(policy.next(kStart + 50us, {}), Way::kSleep);
  policy.worked(kStart + 60us);
  EXPECT_EQ(policy.next(kStart + 70us, {}), Way::kGiveWay);
}

TEST(IdlePolicy, BesideOneThatKeepsTheProcessorWaitsOnlyForAnAnswerFromElsewhere) {
  const IdlePolicy policy(kStart);
  IdlePolicy::Clients clients{
      .beside = true, .elsewhere = true, .rung_beside = true, .beside_gives_way = false};
  EXPECT_EQ(policy.next(kStart + 1us, clients), Way::kLookAgain);
  EXPECT_EQ(policy.next(kStart + 4us, clients), Way::kSleep);
  clients.rung_beside = false;
  EXPECT_EQ(policy.next(kStart, clients), Way::kSleep);
}

TEST(IdlePolicy, YieldsToClientsThatYield) {
  const IdlePolicy policy(kStart);
  const IdlePolicy::Clients clients{
      .beside = true, .elsewhere = true, .rung_beside = true, .beside_gives_way = true};
  EXPECT_EQ(policy.next(kStart + 1us, clients), Way::kGiveWay);
  EXPECT_EQ(policy.next(kStart + 49us, clients), Way::kGiveWay);
}

TEST(IdlePolicy, YieldsIfNoClientIsElsewhere) {
  const IdlePolicy policy(kStart);
  const IdlePolicy::Clients clients{.beside = true, .rung_beside = true, .beside_gives_way = false};
  EXPECT_EQ(policy.next(kStart + 1us, clients), Way::kGiveWay);
}

TEST(IdlePolicy, YieldsRegularlyDuringEndlessWork) {
  IdlePolicy policy(kStart);
  policy.worked(kStart + 49us);
  EXPECT_FALSE(policy.must_yield(kStart + 49us));
  EXPECT_TRUE(policy.must_yield(kStart + 50us));
  policy.gave_way(kStart + 50us, kStart + 51us);
  EXPECT_FALSE(policy.must_yield(kStart + 100us));
  EXPECT_TRUE(policy.must_yield(kStart + 101us));
}

TEST(IdlePolicy, BusyPollingKeepsTheProcessor) {
  const IdlePolicy policy(kStart, true);
  EXPECT_FALSE(policy.must_yield(kStart + 1s));
  EXPECT_EQ(policy.next(kStart + 1s, {}), Way::kLookAgain);
  EXPECT_EQ(policy.next(kStart + 1s, {.beside = true, .elsewhere = true}), Way::kLookAgain);
}

TEST(IdlePolicy, MessagesOfANetworkComeAfterAPause) {
  IdlePolicy policy(kStart);
  EXPECT_FALSE(policy.is_idle(kStart + 19us));
  EXPECT_TRUE(policy.is_idle(kStart + 20us));
  policy.worked(kStart + 20us);
  EXPECT_FALSE(policy.is_idle(kStart + 20us));
}

/// Returns how long the policy sleeps immediately after a yield that took `took`.
engine::Duration crowd_after(IdlePolicy& policy, engine::Instant& now, engine::Duration took) {
  policy.worked(now);
  policy.gave_way(now, now + took);
  now += took;
  const engine::Instant begin = now;
  for (policy.worked(now); policy.next(now, {}) == Way::kSleep; policy.worked(now)) now += 1ms;
  return now - begin;
}

/// Simulates two long yields. After a third consecutive one, the daemon would sleep instead of
/// yielding.
void almost_a_crowd(IdlePolicy& policy, engine::Instant& now) {
  for (int i = 0; i < 2; ++i) EXPECT_EQ(crowd_after(policy, now, 4ms), 0ms);
}

TEST(IdlePolicy, SleepsWhereYieldsTakeLong) {
  IdlePolicy policy(kStart);
  engine::Instant now = kStart;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(crowd_after(policy, now, 650us), 0ms);
  almost_a_crowd(policy, now);
  EXPECT_EQ(crowd_after(policy, now, 651us), 20ms);
}

// Single long yields happen while programs start.
TEST(IdlePolicy, SingleLongYieldsAreNoCrowd) {
  IdlePolicy policy(kStart);
  engine::Instant now = kStart;
  for (int i = 0; i < 10; ++i) {
    almost_a_crowd(policy, now);
    EXPECT_EQ(crowd_after(policy, now, 2us), 0ms);
  }
}

TEST(IdlePolicy, SleepsForLongerEachTimeThatThisWasTooShort) {
  IdlePolicy policy(kStart);
  engine::Instant now = kStart;
  almost_a_crowd(policy, now);
  for (const auto expected : {20ms, 40ms, 80ms, 160ms, 320ms, 640ms, 1000ms, 1000ms}) {
    EXPECT_EQ(crowd_after(policy, now, 4ms), expected);
  }
}

TEST(IdlePolicy, AYieldOfAFewMicrosecondsEndsTheCrowd) {
  IdlePolicy policy(kStart);
  engine::Instant now = kStart;
  almost_a_crowd(policy, now);
  EXPECT_EQ(crowd_after(policy, now, 4ms), 20ms);
  EXPECT_EQ(crowd_after(policy, now, 2us), 0ms);
  almost_a_crowd(policy, now);
  EXPECT_EQ(crowd_after(policy, now, 4ms), 20ms);
}

TEST(IdlePolicy, AShortYieldDoesNotEndTheCrowd) {
  IdlePolicy policy(kStart);
  engine::Instant now = kStart;
  almost_a_crowd(policy, now);
  crowd_after(policy, now, 4ms);
  EXPECT_EQ(crowd_after(policy, now, 300ns), 0ms);
  EXPECT_EQ(crowd_after(policy, now, 4ms), 40ms);
}

TEST(IdlePolicy, AShortYieldNeitherCountsNorInterruptsARow) {
  IdlePolicy policy(kStart);
  engine::Instant now = kStart;
  almost_a_crowd(policy, now);
  EXPECT_EQ(crowd_after(policy, now, 300ns), 0ms);
  EXPECT_EQ(crowd_after(policy, now, 4ms), 20ms);
}

TEST(IdlePolicy, ACrowdIsForgottenIfNoThreadRan) {
  IdlePolicy policy(kStart);
  engine::Instant now = kStart;
  almost_a_crowd(policy, now);
  crowd_after(policy, now, 4ms);
  now += 21ms;
  crowd_after(policy, now, 300ns);
  almost_a_crowd(policy, now);
  EXPECT_EQ(crowd_after(policy, now, 4ms), 20ms);
}

}  // namespace
}  // namespace rocemu::daemon
