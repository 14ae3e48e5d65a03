#include "wire/psn.h"

#include <gtest/gtest.h>

#include "tests/wire/bytes.h"

namespace rocemu::wire {
namespace {

TEST(Psn, ItsValueHas24Bits) {
  EXPECT_EQ(Psn(0x1000000).value(), 0u);
  EXPECT_EQ(Psn(0xffffffff).value(), 0xffffffu);
}

TEST(Psn, AdditionAndSubtractionWrap) {
  EXPECT_EQ(Psn(0xffffff) + 1, Psn(0));
  EXPECT_EQ(Psn(0xfffffe) + 5, Psn(3));
  EXPECT_EQ(Psn(0) - 1, Psn(0xffffff));
  EXPECT_EQ(Psn(3) - 5, Psn(0xfffffe));
  EXPECT_EQ(Psn(7) + 0x1000000, Psn(7));
  Psn psn(0xfffffe);
  EXPECT_EQ(++psn, Psn(0xffffff));
  EXPECT_EQ(psn += 2, Psn(1));
  EXPECT_EQ(psn -= 3, Psn(0xfffffe));
}

TEST(Psn, DistanceIsPositiveWhenTheSecondIsLater) {
  EXPECT_EQ(psn_distance(Psn(10), Psn(10)), 0);
  EXPECT_EQ(psn_distance(Psn(10), Psn(13)), 3);
  EXPECT_EQ(psn_distance(Psn(13), Psn(10)), -3);
  EXPECT_EQ(psn_distance(Psn(0xffffff), Psn(0)), 1);
  EXPECT_EQ(psn_distance(Psn(0), Psn(0xffffff)), -1);
}

TEST(Psn, DistanceReachesHalfTheCircleBackAndOneLessAhead) {
  EXPECT_EQ(psn_distance(Psn(5), Psn(5 + 0x7fffff)), 0x7fffff);
  EXPECT_EQ(psn_distance(Psn(5), Psn(5 + 0x800000)), -0x800000);
  EXPECT_EQ(psn_distance(Psn(5), Psn(5 + 0x800001)), -0x7fffff);
}

TEST(Psn, AddingTheDistanceLeadsToTheOther) {
  for (const uint32_t from : {0u, 1u, 0x7fffffu, 0x800000u, 0xffffffu}) {
    for (const uint32_t to : {0u, 1u, 0x7fffffu, 0x800000u, 0xffffffu}) {
      const int32_t distance = psn_distance(Psn(from), Psn(to));
      EXPECT_EQ(Psn(from) + static_cast<uint32_t>(distance), Psn(to));
    }
  }
}

TEST(Psn, BeforeFollowsTheShorterWayRound) {
  EXPECT_TRUE(psn_before(Psn(1), Psn(2)));
  EXPECT_FALSE(psn_before(Psn(2), Psn(1)));
  EXPECT_FALSE(psn_before(Psn(2), Psn(2)));
  EXPECT_TRUE(psn_before(Psn(0xffffff), Psn(0)));
  EXPECT_FALSE(psn_before(Psn(0), Psn(0xffffff)));
}

// IBTA vol 1, 9.7.2: the duplicate region consists of the 2^23 values before the expected PSN.
TEST(Psn, ExactlyHalfTheCircleAwayCountsAsBefore) {
  EXPECT_TRUE(psn_before(Psn(0x800000), Psn(0)));
  EXPECT_TRUE(psn_before(Psn(0), Psn(0x800000)));
  EXPECT_FALSE(psn_before(Psn(0x7fffff), Psn(0)));
}

}  // namespace
}  // namespace rocemu::wire
