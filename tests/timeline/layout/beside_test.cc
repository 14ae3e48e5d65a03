// Tests the text about the first difference of two runs.
#include "emulator/timeline/beside.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/timeline/layout/timelines.h"

namespace rocemu::timeline {

using testing::ElementsAre;

bool operator==(const Difference& a, const Difference& b) {
  return a.field == b.field && a.first == b.first && a.second == b.second;
}
void PrintTo(const Difference& one, std::ostream* out) {
  *out << one.field << ": " << one.first << " | " << one.second;
}

namespace {

TEST(Beside, SaysWhichFieldDiffersAndItsValueInEachRun) {
  Timeline first = Written().completion("send wr 1 completes: SUCCESS").take();
  first.happenings[0].details = {{"client", "1"}, {"status", "SUCCESS"}, {"wr_id", "1"}};
  Timeline second = Written().completion("send wr 1 completes: RNR_RETRY_EXC_ERR").take();
  second.happenings[0].details = {{"client", "2"}, {"status", "RNR_RETRY_EXC_ERR"}, {"wr_id", "1"}};
  EXPECT_THAT(beside(first, second).differences,
              ElementsAre(Difference{"what happens", "send wr 1 completes: SUCCESS",
                                     "send wr 1 completes: RNR_RETRY_EXC_ERR"},
                          Difference{"status", "SUCCESS", "RNR_RETRY_EXC_ERR"}));
}

TEST(Beside, ReportsALossAsAFrameThatArrivesInOneRun) {
  const Timeline both =
      beside(Written().frame("SEND", 0, 1).take(), Written().lost_frame("SEND", 0, 1).take());
  EXPECT_THAT(both.differences,
              ElementsAre(Difference{"arrives", "yes", "no, dropped by rule 'lost'"}));
  const auto mark = std::ranges::find_if(both.happenings, is_first_difference);
  ASSERT_NE(mark, both.happenings.end());
  EXPECT_EQ(mark->reason, "arrives: 1st run yes, 2nd run no, dropped by rule 'lost'");
}

TEST(Beside, ComparesPsnsRelativeToTheConnectionsFirst) {
  Timeline first =
      Written().frame("SEND psn +0 (100)", 0, 1).frame("SEND psn +1 (101)", 0, 1).take();
  Timeline second =
      Written().frame("SEND psn +0 (700)", 0, 1).frame("SEND psn +2 (702)", 0, 1).take();
  first.happenings[1].psn = 1;
  second.happenings[1].psn = 2;
  EXPECT_THAT(beside(first, second).differences,
              ElementsAre(Difference{"what happens", "SEND psn +1 (101)", "SEND psn +2 (702)"},
                          Difference{"psn", "+1", "+2"}));
}

TEST(Beside, NamesTheQpOfEachRun) {
  const Timeline both = beside(Written().verb("a", 0).take(), Written().verb("a", 1).take());
  EXPECT_THAT(both.differences, ElementsAre(Difference{"where", "program rocemu0 QP 0x11",
                                                       "program rocemu1 QP 0x12"}));
}

TEST(Beside, SaysThatOneRunEnds) {
  const Timeline both = beside(Written().verb("a").verb("b").take(), Written().verb("a").take());
  EXPECT_THAT(both.differences, ElementsAre(Difference{"what happens", "b", "nothing more"}));
}

TEST(Beside, FindsNoDifferenceInTimesProcessNumbersAndAbsolutePsns) {
  Timeline second = Written().at(9).frame("SEND psn +0 (7)", 0, 1).take();
  second.lanes[0].pid = 99;
  const Timeline both = beside(Written().frame("SEND psn +0 (100)", 0, 1).take(), second);
  EXPECT_THAT(both.differences, ElementsAre());
  EXPECT_THAT(both.notes, ElementsAre("both runs are equal"));
}

TEST(Beside, NumbersTheRunOfEachLane) {
  const Timeline both = beside(Written().take(), Written().take());
  std::vector<uint8_t> runs;
  for (const Lane& lane : both.lanes) runs.push_back(lane.run);
  EXPECT_THAT(runs, ElementsAre(1, 1, 2, 2));
}

}  // namespace
}  // namespace rocemu::timeline
