// How long a thread knows that the NIC still has work (docs/ARCHITECTURE.md, "Sleep").
#include "verbs_provider/lead.h"

#include <gtest/gtest.h>

namespace rocemu::test {
namespace {

using provider::Lead;

constexpr int64_t kUs = 1'000, kMs = 1'000'000;

/// Of a thread that had a completion every so often until `now`, with so many requests ahead.
Lead lead_of(int64_t each_ns, uint32_t ahead, int64_t now) {
  Lead lead;
  for (int64_t at = now - 10 * kMs; at < now; at += each_ns) {
    lead.left_ns(at);
    lead.sends_end(1, ahead);
  }
  return lead;
}

TEST(Lead, IsTheTimeThatRequestsTakeThatHaveNotEnded) {
  Lead lead = lead_of(20 * kUs, 127, 100 * kMs);
  EXPECT_NEAR(static_cast<double>(lead.left_ns(100 * kMs)), 127. * 20 * kUs, 127. * kUs);
  lead.sends_end(1, 1);
  EXPECT_LT(lead.left_ns(100 * kMs), 30 * kUs) << "of that QP there is one more";
}

TEST(Lead, CountsRequestsWithoutACompletion) {
  Lead lead;
  for (int64_t at = kMs; at <= 10 * kMs; at += kMs) {
    lead.left_ns(at);
    lead.sends_end(100, 28);
  }
  EXPECT_EQ(lead.left_ns(11 * kMs), 28 * 10 * kUs);
}

TEST(Lead, IsNotKnownAtFirst) {
  Lead lead;
  EXPECT_EQ(lead.left_ns(100 * kMs), 0);
  lead.sends_end(1, 127);
  EXPECT_EQ(lead.left_ns(100 * kMs + 20 * kUs), 0);
}

TEST(Lead, EndsWhereNothingComesAnyMore) {
  Lead lead = lead_of(20 * kUs, 127, 100 * kMs);
  EXPECT_GT(lead.left_ns(101 * kMs), 0);
  EXPECT_EQ(lead.left_ns(107 * kMs), 0);
}

TEST(Lead, WhoIsSentMessagesHasNone) {
  Lead lead = lead_of(20 * kUs, 127, 100 * kMs);
  lead.receives();
  EXPECT_EQ(lead.left_ns(100 * kMs), 0);
  for (int64_t at = 100 * kMs; at < 210 * kMs; at += 20 * kUs) {
    lead.sends_end(1, 127);
    if (at < 199 * kMs) {
      ASSERT_EQ(lead.left_ns(at), 0) << at;
    } else {
      lead.left_ns(at);
    }
  }
  EXPECT_GT(lead.left_ns(210 * kMs), 0);
}

}  // namespace
}  // namespace rocemu::test
