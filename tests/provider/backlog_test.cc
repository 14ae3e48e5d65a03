// Tests the time for which a thread need not check for completions (docs/design/waiting.md).
#include "verbs_provider/context/backlog.h"

#include <gtest/gtest.h>

namespace rocemu::test {
namespace {

using provider::Backlog;

constexpr int64_t kUs = 1'000, kMs = 1'000'000, kNow = 1000 * kMs;

using End = void (Backlog::*)(uint32_t requests, uint32_t ahead);

/// Returns the backlog of a thread whose requests completed every `each_ns` until kNow, with
/// `ahead` later requests outstanding at each completion.
Backlog backlog_of(End end, int64_t each_ns, uint32_t ahead, uint32_t requests = 1) {
  Backlog backlog;
  for (int64_t at = kNow - 10 * kMs; at < kNow; at += each_ns) {
    backlog.completions_to_await(at);
    (backlog.*end)(requests, ahead);
  }
  return backlog;
}

class LeadOf : public testing::TestWithParam<End> {};
INSTANTIATE_TEST_SUITE_P(, LeadOf, testing::Values(&Backlog::sends_end, &Backlog::receives_end),
                         [](const auto& test) { return test.index == 0 ? "Sends" : "Receives"; });

TEST_P(LeadOf, IsAwaitedForNoLongerThanAMoment) {
  EXPECT_EQ(backlog_of(GetParam(), 20 * kUs, 127).completions_to_await(kNow), 20u);
  EXPECT_EQ(backlog_of(GetParam(), 20 * kUs, 40).completions_to_await(kNow), 20u);
  EXPECT_EQ(backlog_of(GetParam(), 80 * kUs, 10'000).completions_to_await(kNow), 5u);
}

TEST_P(LeadOf, IsTooShortToSleep) {
  EXPECT_EQ(backlog_of(GetParam(), 20 * kUs, 39).completions_to_await(kNow), 0u);
}

TEST_P(LeadOf, CountsRequestsWithoutACompletion) {
  EXPECT_EQ(backlog_of(GetParam(), 200 * kUs, 300, 100).completions_to_await(kNow), 0u);
  EXPECT_EQ(backlog_of(GetParam(), 200 * kUs, 500, 100).completions_to_await(kNow), 2u);
  EXPECT_EQ(backlog_of(GetParam(), 1 * kMs, 500, 100).completions_to_await(kNow), 1u)
      << "the next is awaited at least";
}

TEST_P(LeadOf, IsOfCompletionsThatEndNothing) {
  Backlog backlog = backlog_of(GetParam(), 20 * kUs, 127, 0);
  EXPECT_EQ(backlog.completions_to_await(kNow), 20u);
  for (int i = 0; i < 5'000'000; ++i) (backlog.*GetParam())(1, 1'000'000'000);
  EXPECT_GT(backlog.completions_to_await(kNow + 1 * kMs), 0u) << "each took no time at all";
}

TEST_P(LeadOf, IsOfTheLatestCompletionsQp) {
  Backlog backlog = backlog_of(GetParam(), 20 * kUs, 127);
  (backlog.*GetParam())(1, 1);
  EXPECT_EQ(backlog.completions_to_await(kNow), 0u);
}

TEST_P(LeadOf, IsNotKnownAtFirst) {
  Backlog backlog;
  EXPECT_EQ(backlog.completions_to_await(kNow), 0u);
  (backlog.*GetParam())(1, 127);
  EXPECT_EQ(backlog.completions_to_await(kNow + 20 * kUs), 0u);
}

TEST_P(LeadOf, EndsWhereNothingComesAnyMore) {
  Backlog backlog = backlog_of(GetParam(), 20 * kUs, 127);
  EXPECT_GT(backlog.completions_to_await(kNow + 1 * kMs), 0u);
  EXPECT_EQ(backlog.completions_to_await(kNow + 7 * kMs), 0u);
}

TEST_P(LeadOf, IsNoneWhereItMayHaveToAnswer) {
  const End other = GetParam() == End(&Backlog::sends_end) ? End(&Backlog::receives_end)
                                                           : End(&Backlog::sends_end);
  Backlog backlog = backlog_of(GetParam(), 20 * kUs, 127);
  (backlog.*other)(1, 127);
  EXPECT_EQ(backlog.completions_to_await(kNow), 0u);
  for (int64_t at = kNow; at < kNow + 110 * kMs; at += 20 * kUs) {
    (backlog.*GetParam())(1, 127);
    ASSERT_EQ(backlog.completions_to_await(at) != 0, at >= kNow + 100 * kMs) << at - kNow;
  }
}

TEST(Backlog, ExpectsNoCompletionsOfAProgramThatPostsSends) {
  Backlog backlog = backlog_of(&Backlog::receives_end, 20 * kUs, 127);
  backlog.sends();
  EXPECT_EQ(backlog.completions_to_await(kNow), 0u);
}

}  // namespace
}  // namespace rocemu::test
