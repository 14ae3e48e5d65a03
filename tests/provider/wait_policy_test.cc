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
  policy.gave_way(yield_ns, 1);
  uint32_t sleeps = 0;
  while (policy.next(PollMode::kAdaptive) == Way::kSleep) ++sleeps;
  return sleeps;
}

/// One fewer than show that others keep the processor.
void two_long_turns(WaitPolicy& policy) {
  for (int i = 0; i < 2; ++i) EXPECT_EQ(sleeps_after(policy, 4'000 * kUs), 0u);
}

TEST(WaitPolicy, GivesWay) {
  WaitPolicy policy;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(policy.next(PollMode::kAdaptive), Way::kGiveWay);
    policy.gave_way(29 * kUs, 1);
  }
}

TEST(WaitPolicy, SleepsWhereYieldsTakeLong) {
  WaitPolicy policy;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(sleeps_after(policy, 649 * kUs), 0u);
  two_long_turns(policy);
  EXPECT_EQ(sleeps_after(policy, 650 * kUs), 200u);
}

// As happens while programs start.
TEST(WaitPolicy, SingleLongTurnsShowNothing) {
  WaitPolicy policy;
  for (int i = 0; i < 10; ++i) {
    two_long_turns(policy);
    EXPECT_EQ(sleeps_after(policy, 2 * kUs), 0u);
  }
}

TEST(WaitPolicy, SleepsForLongerEachTimeThatThisWasTooShort) {
  WaitPolicy policy;
  two_long_turns(policy);
  for (const uint32_t expected : {200u, 400u, 800u, 1600u, 3200u, 6400u, 10'000u, 10'000u}) {
    EXPECT_EQ(sleeps_after(policy, 700 * kUs), expected);
  }
}

TEST(WaitPolicy, AShortYieldEndsTheCrowd) {
  WaitPolicy policy;
  two_long_turns(policy);
  EXPECT_EQ(sleeps_after(policy, 4'000 * kUs), 200u);
  EXPECT_EQ(sleeps_after(policy, 2 * kUs), 0u);
  two_long_turns(policy);
  EXPECT_EQ(sleeps_after(policy, 4'000 * kUs), 200u);
}

TEST(WaitPolicy, SleepsWhereEveryYieldIsDear) {
  WaitPolicy policy;
  for (int i = 0; i < 31; ++i) policy.gave_way(50 * kUs, 1);
  EXPECT_EQ(policy.next(PollMode::kAdaptive), Way::kGiveWay);
  policy.gave_way(50 * kUs, 1);
  EXPECT_EQ(policy.next(PollMode::kAdaptive), Way::kSleep);
}

TEST(WaitPolicy, OneCheapYieldShowsThatSwitchesAre) {
  WaitPolicy policy;
  for (int i = 0; i < 1000; ++i) {
    policy.gave_way(i % 31 == 0 ? 3 * kUs : 50 * kUs, 1);
    ASSERT_EQ(policy.next(PollMode::kAdaptive), Way::kGiveWay);
  }
}

// Of sixteen threads each waits for the others' turns, though no switch is dear.
TEST(WaitPolicy, AYieldOfManyIsLongAndNotDear) {
  WaitPolicy policy;
  for (int i = 0; i < 1000; ++i) {
    policy.gave_way(250 * kUs, 16);
    ASSERT_EQ(policy.next(PollMode::kAdaptive), Way::kGiveWay);
  }
  for (int i = 0; i < 3; ++i) policy.gave_way(4'000 * kUs, 16);  // time slices
  EXPECT_EQ(policy.next(PollMode::kAdaptive), Way::kSleep);
}

TEST(WaitPolicy, TurnsOfThoseWhoBlockDoNotShowWhatASwitchTakes) {
  WaitPolicy policy;
  for (int i = 0; i < 1000; ++i) {
    policy.gave_way(300 * kUs, 1, WaitPolicy::Then::kBlocks);
    ASSERT_EQ(policy.next(PollMode::kAdaptive), Way::kGiveWay);
  }
  for (int i = 0; i < 3; ++i) policy.gave_way(4'000 * kUs, 1, WaitPolicy::Then::kBlocks);
  EXPECT_EQ(policy.next(PollMode::kAdaptive), Way::kSleep);
}

TEST(WaitPolicy, SwitchesOfManyCanBeDear) {
  WaitPolicy policy;
  for (int i = 0; i < 32; ++i) policy.gave_way(200 * kUs, 7);  // eight switches of 25 us
  EXPECT_EQ(policy.next(PollMode::kAdaptive), Way::kSleep);
}

TEST(WaitPolicy, AYieldThatLetNobodyInShowsNothing) {
  WaitPolicy policy;
  for (int i = 0; i < 64; ++i) policy.gave_way(i % 2 == 0 ? 300 : 50 * kUs, 1);
  EXPECT_EQ(policy.next(PollMode::kAdaptive), Way::kSleep);
}

TEST(WaitPolicy, YieldingAndSpinningNeverSleep) {
  WaitPolicy policy;
  for (int i = 0; i < 3; ++i) policy.gave_way(4'000 * kUs, 1);
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
