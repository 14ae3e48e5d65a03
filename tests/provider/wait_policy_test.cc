// Tests how a thread that polls for completions waits (docs/design/waiting.md).
#include "verbs_provider/polling/wait_policy.h"

#include <gtest/gtest.h>

namespace rocemu::test {
namespace {

using provider::PollMode;
using provider::WaitPolicy;
using Way = WaitPolicy::Way;

constexpr int64_t kMicrosecond = 1'000;

/// Returns how the thread waits next, if there is time for any way of waiting.
Way next(WaitPolicy& policy, PollMode mode = PollMode::kAdaptive) {
  policy.finds();
  return policy.next(mode);
}

/// Returns how many empty polls sleep after a yield that took `yield_ns`.
uint32_t sleeps_after(WaitPolicy& policy, int64_t yield_ns) {
  policy.gave_way(yield_ns);
  uint32_t sleeps = 0;
  while (next(policy) == Way::kSleep) ++sleeps;
  return sleeps;
}

/// Simulates two long yields. After a third consecutive one, the policy would sleep instead of
/// yielding.
void two_long_yields(WaitPolicy& policy) {
  for (int i = 0; i < 2; ++i) EXPECT_EQ(sleeps_after(policy, 4'000 * kMicrosecond), 0u);
}

TEST(WaitPolicy, YieldsAtFirst) {
  WaitPolicy policy;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(next(policy), Way::kGiveWay);
    policy.gave_way(29 * kMicrosecond);
  }
}

TEST(WaitPolicy, SleepsWhereYieldsTakeLong) {
  WaitPolicy policy;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(sleeps_after(policy, 649 * kMicrosecond), 0u);
  two_long_yields(policy);
  EXPECT_EQ(sleeps_after(policy, 650 * kMicrosecond), 200u);
}

// Single long yields happen while programs start.
TEST(WaitPolicy, SingleLongTurnsShowNothing) {
  WaitPolicy policy;
  for (int i = 0; i < 10; ++i) {
    two_long_yields(policy);
    EXPECT_EQ(sleeps_after(policy, 2 * kMicrosecond), 0u);
  }
}

TEST(WaitPolicy, SleepsForLongerEachTimeThatThisWasTooShort) {
  WaitPolicy policy;
  two_long_yields(policy);
  for (const uint32_t expected : {200u, 400u, 800u, 1600u, 3200u, 6400u, 10'000u, 10'000u}) {
    EXPECT_EQ(sleeps_after(policy, 700 * kMicrosecond), expected);
  }
}

TEST(WaitPolicy, AShortYieldEndsTheCrowd) {
  WaitPolicy policy;
  two_long_yields(policy);
  EXPECT_EQ(sleeps_after(policy, 4'000 * kMicrosecond), 200u);
  EXPECT_EQ(sleeps_after(policy, 2 * kMicrosecond), 0u);
  two_long_yields(policy);
  EXPECT_EQ(sleeps_after(policy, 4'000 * kMicrosecond), 200u);
}

TEST(WaitPolicy, SleepsWhereEveryYieldIsExpensive) {
  WaitPolicy policy;
  for (int i = 0; i < 31; ++i) policy.gave_way(50 * kMicrosecond);
  EXPECT_EQ(next(policy), Way::kGiveWay);
  policy.gave_way(50 * kMicrosecond);
  EXPECT_EQ(next(policy), Way::kSleep);
}

TEST(WaitPolicy, OneCheapYieldShowsThatSwitchesAre) {
  WaitPolicy policy;
  for (int i = 0; i < 1000; ++i) {
    policy.gave_way(i % 31 == 0 ? 3 * kMicrosecond : 50 * kMicrosecond);
    ASSERT_EQ(next(policy), Way::kGiveWay);
  }
}

// Each of sixteen threads waits for the turns of the others, although no switch is expensive.
TEST(WaitPolicy, LongYieldsOfManyThreadsAreNotExpensive) {
  WaitPolicy policy;
  policy.finds_nothing(16);
  for (int i = 0; i < 1000; ++i) {
    policy.gave_way(250 * kMicrosecond);
    ASSERT_EQ(next(policy), Way::kGiveWay);
  }
  for (int i = 0; i < 3; ++i) policy.gave_way(4'000 * kMicrosecond);  // time slices
  EXPECT_EQ(next(policy), Way::kSleep);
}

TEST(WaitPolicy, TurnsOfThreadsThatBlockDoNotShowTheCostOfASwitch) {
  WaitPolicy policy;
  for (int i = 0; i < 1000; ++i) {
    policy.gave_way(300 * kMicrosecond, WaitPolicy::Then::kBlocks);
    ASSERT_EQ(next(policy), Way::kGiveWay);
  }
  for (int i = 0; i < 3; ++i) policy.gave_way(4'000 * kMicrosecond, WaitPolicy::Then::kBlocks);
  EXPECT_EQ(next(policy), Way::kSleep);
}

TEST(WaitPolicy, SwitchesOfManyThreadsCanBeExpensive) {
  WaitPolicy policy;
  policy.finds_nothing(7);
  // 200 us for eight switches of 25 us
  for (int i = 0; i < 32; ++i) policy.gave_way(200 * kMicrosecond);
  EXPECT_EQ(next(policy), Way::kSleep);
}

TEST(WaitPolicy, AYieldWithoutASwitchShowsNothing) {
  WaitPolicy policy;
  for (int i = 0; i < 64; ++i) policy.gave_way(i % 2 == 0 ? 300 : 50 * kMicrosecond);
  EXPECT_EQ(next(policy), Way::kSleep);
}

/// Makes empty polls until a poll waits in the way `way`. Returns the number of these polls.
int polls_between(WaitPolicy& policy, Way way) {
  for (int polls = 1;; ++polls) {
    policy.finds_nothing(1);
    const Way next = policy.next(PollMode::kAdaptive);
    if (next == way) return polls;
    EXPECT_EQ(next, Way::kPollOn);
  }
}

TEST(WaitPolicy, PollsOnUntilItHasEarnedASleep) {
  WaitPolicy policy;
  two_long_yields(policy);
  policy.gave_way(4'000 * kMicrosecond);
  policy.finds();
  EXPECT_EQ(polls_between(policy, Way::kSleep), 1);
  for (int sleeps = 1; sleeps < 100; ++sleeps) {
    policy.slept(850 * kMicrosecond);
    ASSERT_EQ(polls_between(policy, Way::kSleep), 850) << "1 us each";
  }
}

TEST(WaitPolicy, PollsOnUntilItHasEarnedAYield) {
  WaitPolicy policy;
  for (int turns = 0; turns < 2; ++turns) policy.gave_way(600 * kMicrosecond);
  EXPECT_EQ(polls_between(policy, Way::kGiveWay), 351) << "it had 850 us";
  for (int turns = 0; turns < 10; ++turns) {
    policy.gave_way(600 * kMicrosecond);
    ASSERT_EQ(polls_between(policy, Way::kGiveWay), 600);
  }
}

TEST(WaitPolicy, HasTimeForAnotherReasonToSleepOnlyOnce) {
  WaitPolicy policy;
  EXPECT_TRUE(policy.may_sleep(850 * kMicrosecond));
  policy.slept(400 * kMicrosecond);
  EXPECT_FALSE(policy.may_sleep(850 * kMicrosecond));
  policy.finds();
  EXPECT_TRUE(policy.may_sleep(850 * kMicrosecond));
}

TEST(WaitPolicy, YieldingAndSpinningNeverSleep) {
  WaitPolicy policy;
  for (int i = 0; i < 3; ++i) policy.gave_way(4'000 * kMicrosecond);
  EXPECT_EQ(next(policy, PollMode::kYield), Way::kGiveWay);
  EXPECT_EQ(next(policy, PollMode::kSpin), Way::kPollOn);
}

TEST(WaitPolicy, ReadsItsMode) {
  PollMode mode;
  EXPECT_TRUE(parse_poll_mode(nullptr, &mode));
  EXPECT_EQ(mode, PollMode::kAdaptive);
  EXPECT_TRUE(parse_poll_mode("adaptive", &mode));
  EXPECT_EQ(mode, PollMode::kAdaptive);
  EXPECT_TRUE(parse_poll_mode("yield", &mode));
  EXPECT_EQ(mode, PollMode::kYield);
  EXPECT_TRUE(parse_poll_mode("spin", &mode));
  EXPECT_EQ(mode, PollMode::kSpin);
  for (const char* wrong : {"", "Spin", "spin ", "0"}) {
    EXPECT_FALSE(parse_poll_mode(wrong, &mode)) << wrong;
    EXPECT_EQ(mode, PollMode::kAdaptive) << wrong;
  }
}

}  // namespace
}  // namespace rocemu::test
