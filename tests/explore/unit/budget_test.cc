// Tests when --budget stops trials and confirmations.
#include "emulator/explore/trials/budget.h"

#include <gtest/gtest.h>

namespace rocemu::explore {
namespace {

using namespace std::chrono_literals;

const Budget::Clock::time_point kBegin{1000s};

TEST(Budget, HasNoEndUnlessOneIsGiven) {
  const Budget budget(std::nullopt, kBegin, 1);
  EXPECT_FALSE(budget.is_over(kBegin + 1000h));
  EXPECT_FALSE(budget.is_over_for_trials(kBegin + 1000h));
}

TEST(Budget, IsForTrialsAsLongAsNothingWasFound) {
  const Budget budget(90s, kBegin, 1);
  EXPECT_FALSE(budget.is_over_for_trials(kBegin + 89s));
  EXPECT_TRUE(budget.is_over_for_trials(kBegin + 90s));
  EXPECT_TRUE(budget.is_over(kBegin + 90s));
}

// Confirming two findings with 2 runs of 5 s each takes 20 s, and writing their files takes half as
// long.
TEST(Budget, KeepsTimeToConfirmFindings) {
  Budget budget(90s, kBegin, 1);
  budget.reserve("HANG a", 5s, 2);
  budget.reserve("HANG b", 5s, 2);
  EXPECT_FALSE(budget.is_over_for_trials(kBegin + 59s));
  EXPECT_TRUE(budget.is_over_for_trials(kBegin + 60s));
  EXPECT_FALSE(budget.is_over(kBegin + 89s));
}

TEST(Budget, KeepsLessTimeWhereRunsGoSideBySide) {
  Budget budget(90s, kBegin, 2);
  budget.reserve("HANG a", 10s, 2);
  EXPECT_FALSE(budget.is_over_for_trials(kBegin + 74s));
  EXPECT_TRUE(budget.is_over_for_trials(kBegin + 75s));
}

TEST(Budget, KeepsTimeForEachPlaceOnce) {
  Budget budget(90s, kBegin, 1);
  for (int i = 0; i < 100; ++i) budget.reserve("HANG a", 1s, 2);
  EXPECT_FALSE(budget.is_over_for_trials(kBegin + 86s));
}

TEST(Budget, LeavesTheFirstHalfToTrials) {
  Budget budget(90s, kBegin, 1);
  budget.reserve("HANG a", 20s, 6);
  EXPECT_FALSE(budget.is_over_for_trials(kBegin + 44s));
  EXPECT_TRUE(budget.is_over_for_trials(kBegin + 45s));
}

TEST(Budget, KeepsNoTimeForARunThatDoesNotFit) {
  Budget budget(30s, kBegin, 1);
  budget.reserve("HANG a", 20s, 2);
  EXPECT_FALSE(budget.is_over_for_trials(kBegin + 29s));
}

}  // namespace
}  // namespace rocemu::explore
