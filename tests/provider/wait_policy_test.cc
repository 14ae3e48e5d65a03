// How a thread waits that polls for completions (docs/design/waiting.md).
#include "verbs_provider/polling/wait_policy.h"

#include <gtest/gtest.h>

namespace rocemu::test {
namespace {

using provider::PollMode;
using provider::WaitPolicy;
using Way = WaitPolicy::Way;

constexpr int64_t kUs = 1'000;

/// How many empty polls sleep after a yield that took so long.
uint32_t sleeps_after(WaitPolicy& policy, int64_t yield_ns) {
  EXPECT_EQ(policy.next(PollMode::kAdaptive), Way::kGiveWay);
  policy.gave_way(yield_ns);
  uint32_t sleeps = 0;
  while (policy.next(PollMode::kAdaptive) == Way::kSleep) ++sleeps;
  policy.gave_way(yield_ns);  // the yield that ended the loop
  return sleeps;
}

TEST(WaitPolicy, GivesWay) {
  WaitPolicy policy;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(policy.next(PollMode::kAdaptive), Way::kGiveWay);
    policy.gave_way(39 * kUs);
  }
}

TEST(WaitPolicy, SleepsWhereAYieldTookLong) {
  WaitPolicy policy;
  EXPECT_EQ(sleeps_after(policy, 4'000 * kUs), 200u);
}

TEST(WaitPolicy, SleepsForLongerEachTimeThatThisWasTooShort) {
  WaitPolicy policy;
  policy.gave_way(300 * kUs);
  for (const uint32_t expected : {200u, 400u, 800u, 1600u, 3200u, 6400u, 10'000u, 10'000u}) {
    uint32_t sleeps = 0;
    while (policy.next(PollMode::kAdaptive) == Way::kSleep) ++sleeps;
    EXPECT_EQ(sleeps, expected);
    policy.gave_way(300 * kUs);
  }
}

TEST(WaitPolicy, AShortYieldEndsTheCrowd) {
  WaitPolicy policy;
  sleeps_after(policy, 4'000 * kUs);
  while (policy.next(PollMode::kAdaptive) == Way::kSleep) continue;
  policy.gave_way(2 * kUs);
  EXPECT_EQ(policy.next(PollMode::kAdaptive), Way::kGiveWay);
  policy.gave_way(300 * kUs);
  uint32_t sleeps = 0;
  while (policy.next(PollMode::kAdaptive) == Way::kSleep) ++sleeps;
  EXPECT_EQ(sleeps, 200u);
}

TEST(WaitPolicy, SleepsWhereEveryYieldIsDear) {
  WaitPolicy policy;
  for (int i = 0; i < 31; ++i) policy.gave_way(50 * kUs);
  EXPECT_EQ(policy.next(PollMode::kAdaptive), Way::kGiveWay);
  policy.gave_way(50 * kUs);
  EXPECT_EQ(policy.next(PollMode::kAdaptive), Way::kSleep);
}

TEST(WaitPolicy, OneCheapYieldShowsThatSwitchesAre) {
  WaitPolicy policy;
  for (int i = 0; i < 1000; ++i) {
    policy.gave_way(i % 31 == 0 ? 3 * kUs : 50 * kUs);
    ASSERT_EQ(policy.next(PollMode::kAdaptive), Way::kGiveWay);
  }
}

TEST(WaitPolicy, AYieldThatLetNobodyInShowsNothing) {
  WaitPolicy policy;
  for (int i = 0; i < 64; ++i) policy.gave_way(i % 2 == 0 ? 300 : 50 * kUs);
  EXPECT_EQ(policy.next(PollMode::kAdaptive), Way::kSleep);
}

TEST(WaitPolicy, YieldingAndSpinningNeverSleep) {
  WaitPolicy policy;
  policy.gave_way(4'000 * kUs);
  EXPECT_EQ(policy.next(PollMode::kYield), Way::kGiveWay);
  EXPECT_EQ(policy.next(PollMode::kSpin), Way::kSpin);
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
