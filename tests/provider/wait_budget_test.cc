// Tests how long the empty polls of a thread may wait (docs/design/waiting.md).
#include "verbs_provider/polling/wait_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>

namespace rocemu::test {
namespace {

using provider::kBudgetConstants;
using provider::WaitBudget;

constexpr int64_t kUs = 1'000, kMs = 1'000'000;

/// Makes one empty poll of a thread, which sleeps for `at_most_ns` if the budget allows it. Returns
/// the time that it slept.
int64_t poll_and_sleep(WaitBudget& budget, int64_t at_most_ns = kBudgetConstants.most_ns) {
  budget.earn(1, false);
  if (!budget.allows_sleep(at_most_ns)) return 0;
  budget.slept(at_most_ns);
  return at_most_ns;
}

// A thousand polls can use the saved budget, and the 1 us that each poll earns.
TEST(WaitBudget, AnyThousandPollsSleepForLessThanTwoMilliseconds) {
  for (const int64_t at_most_ns : {kBudgetConstants.most_ns, 100 * kUs, 1 * kUs}) {
    WaitBudget budget;
    std::deque<int64_t> window;
    for (int i = 0; i < 20'000; ++i) {
      window.push_back(poll_and_sleep(budget, at_most_ns));
      if (window.size() > 1'000) window.pop_front();
      ASSERT_LT(std::accumulate(window.begin(), window.end(), int64_t{0}), 2 * kMs) << i;
    }
  }
}

// If a program stops polling after 2^20 polls, which take 50 ns each, it stops after little more
// than a second.
TEST(WaitBudget, AMillionPollsSleepForAboutASecondAtMost) {
  WaitBudget budget;
  int64_t slept = 0;
  for (int i = 0; i < 1 << 20; ++i) slept += poll_and_sleep(budget);
  EXPECT_LE(slept, (1 << 20) * kUs + kBudgetConstants.most_ns);
  EXPECT_GE(slept, 400 * kMs) << "it hardly waits at all";
}

TEST(WaitBudget, YieldsThatTakeNoTimeAreAllowedAtEachPoll) {
  WaitBudget budget;
  for (int i = 0; i < 100'000; ++i) {
    budget.earn(1, false);
    ASSERT_TRUE(budget.allows_yield()) << i;
    budget.yielded(700);
  }
}

TEST(WaitBudget, PollsPayForAYieldThatTookLonger) {
  WaitBudget budget;
  budget.yielded(kBudgetConstants.most_ns + 20 * kUs);
  budget.earn(1, false);
  EXPECT_TRUE(budget.allows_yield()) << "the time beyond what can be saved is not charged";
  budget.yielded(50 * kUs);
  int polls = 0;
  for (; !budget.allows_yield(); ++polls) budget.earn(1, false);
  EXPECT_EQ(polls, 50) << "it owed 49 us";
}

// After the completion for which the thread waited has arrived, the thread may sleep again at once.
TEST(WaitBudget, ACompletionPaysForASleep) {
  WaitBudget budget;
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(budget.allows_sleep(kBudgetConstants.most_ns));
    budget.slept(kBudgetConstants.most_ns);
    ASSERT_FALSE(budget.allows_sleep(1));
    budget.finds();
  }
}

// While one thread yields, each of 15 other threads, and the daemon, runs once.
TEST(WaitBudget, ThreadsThatYieldEarnForEachOther) {
  for (const uint32_t pollers : {0u, 1u, 15u}) {
    WaitBudget budget;
    budget.slept(kBudgetConstants.most_ns);
    int polls = 0;
    for (; !budget.allows_sleep(kBudgetConstants.most_ns); ++polls) budget.earn(pollers, false);
    // 0.85 ms / 8 us, or 0.85 ms / 1 us
    EXPECT_EQ(polls, pollers == 15 ? 107 : 850) << pollers << " pollers";
  }
}

TEST(WaitBudget, WhereSwitchesAreExpensiveAPollEarnsMore) {
  WaitBudget budget;
  budget.slept(kBudgetConstants.most_ns);
  int polls = 0;
  for (; !budget.allows_sleep(kBudgetConstants.most_ns); ++polls) budget.earn(1, true);
  EXPECT_EQ(polls, 54);  // 0.85 ms / 16 us
}

TEST(WaitBudget, AfterManySleepsInVainAThreadPollsOnForATimeSlice) {
  WaitBudget budget;
  uint32_t sleeps = 0, polls = 0, most_polls = 0;
  for (; sleeps < 129; ++polls) {
    if (poll_and_sleep(budget) == 0) continue;
    ++sleeps;
    most_polls = std::max(most_polls, std::exchange(polls, 0u));
    ASSERT_EQ(most_polls > 1'000, sleeps == 129) << sleeps;
  }
  EXPECT_EQ(most_polls, 131'072u) << "from the 128th to the next";
}

TEST(WaitBudget, ACompletionShowsThatTheSleepsWereNotInVain) {
  WaitBudget budget;
  for (int sleeps = 0; sleeps < 1'000; ++sleeps) {
    if (sleeps % 127 == 126) budget.finds();
    int polls = 0;
    while (poll_and_sleep(budget) == 0) ASSERT_LT(++polls, 1'000) << sleeps;
  }
}

}  // namespace
}  // namespace rocemu::test
