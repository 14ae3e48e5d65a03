#include "emulator/timeline/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/timeline/layout/timelines.h"

namespace rocemu::timeline {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;

std::vector<std::string> texts(const Timeline& timeline) {
  std::vector<std::string> all;
  for (const Happening& one : timeline.happenings) all.push_back(one.text);
  return all;
}

template <class Choose>
Timeline selected(Timeline timeline, Choose choose) {
  Selection selection;
  choose(selection);
  select(selection, timeline);
  return timeline;
}

Timeline limited(Timeline timeline, size_t most) {
  limit(most, timeline);
  return timeline;
}

TEST(Select, KeepsWhatHappensWithinATimeBothEndsIncluded) {
  const Timeline all = Written().verb("a").at(1).verb("b").at(2).verb("c").at(3).verb("d").take();
  EXPECT_THAT(texts(selected(all,
                             [](Selection& one) {
                               one.from = 1us;
                               one.to = 2us;
                             })),
              ElementsAre("b", "c"));
}

TEST(Select, KeepsTheKindsThatAreNamed) {
  const Timeline all = Written().verb("a").post("b").completion("c").take();
  EXPECT_THAT(texts(selected(all,
                             [](Selection& one) {
                               one.kinds = {Kind::kVerb, Kind::kCompletion};
                             })),
              ElementsAre("a", "c"));
}

TEST(Select, TakesProcessesByNameOrNumberAndDropsLanesWithNothingLeft) {
  const Timeline all = Written().verb("a", 0).verb("b", 1).take();
  EXPECT_THAT(texts(selected(all, [](Selection& one) { one.processes = {"program"}; })),
              ElementsAre("a", "b"));
  const Timeline second = selected(all, [](Selection& one) { one.processes = {"101"}; });
  EXPECT_THAT(texts(second), ElementsAre("b"));
  ASSERT_EQ(second.lanes.size(), 1u);
  EXPECT_EQ(second.lanes[0].device, "rocemu1");
  EXPECT_EQ(second.happenings[0].lane, 0u);
}

TEST(Select, KeepsFramesOfWhichOneEndIsWanted) {
  const Timeline all = Written(3).frame("to", 0, 1).frame("from", 1, 2).frame("past", 0, 2).take();
  const Timeline kept = selected(all, [](Selection& one) { one.qpns = {0x12}; });
  EXPECT_THAT(texts(kept), ElementsAre("to", "from"));
  EXPECT_EQ(kept.lanes.size(), 3u);
}

TEST(Select, NeedsAllConditionsAtOnce) {
  const Timeline all = Written().verb("a", 0).verb("b", 1).take();
  EXPECT_THAT(texts(selected(all,
                             [](Selection& one) {
                               one.devices = {"rocemu0"};
                               one.qpns = {0x12};
                             })),
              ElementsAre());
}

TEST(Select, ShowsTheNeighborsOfTheFirstError) {
  const Timeline all =
      Written().verb("a").verb("b").failing_verb("c").verb("d").failing_verb("e").take();
  const Timeline kept = selected(all, [](Selection& one) { one.around_error = 1; });
  EXPECT_THAT(texts(kept), ElementsAre("b", "c fails: EINVAL", "d"));
  EXPECT_THAT(kept.notes, Contains("rows that are not shown: 1 earlier, 1 later"));
}

TEST(Select, ShowsTheFirstFaultIfThereIsNoError) {
  const Timeline all = Written().verb("a").lost_frame("b", 0, 1).verb("c").verb("d").take();
  EXPECT_THAT(texts(selected(all, [](Selection& one) { one.around_error = 0; })), ElementsAre("b"));
}

TEST(Select, ShowsTheEndIfNothingIsWrong) {
  const Timeline all = Written().verb("a").verb("b").verb("c").take();
  EXPECT_THAT(texts(selected(all, [](Selection& one) { one.around_error = 1; })),
              ElementsAre("b", "c"));
}

TEST(Limit, LeavesAShortTimelineAlone) {
  const Timeline all = Written().verb("a").verb("b").take();
  const Timeline kept = limited(all, 2);
  EXPECT_THAT(texts(kept), ElementsAre("a", "b"));
  EXPECT_TRUE(kept.notes.empty());
}

TEST(Limit, KeepsTheBeginningIfNothingIsWrong) {
  EXPECT_THAT(texts(limited(Written().verb("a").verb("b").verb("c").take(), 2)),
              ElementsAre("a", "b"));
}

TEST(Limit, KeepsTheRowsAroundTheFirstError) {
  const Timeline all =
      Written().verb("a").verb("b").verb("c").failing_verb("d").verb("e").verb("f").take();
  EXPECT_THAT(texts(limited(all, 2)), ElementsAre("c", "d fails: EINVAL"));
  EXPECT_THAT(texts(limited(all, 4)), ElementsAre("b", "c", "d fails: EINVAL", "e"));
}

TEST(Limit, KeepsAsManyRowsAsItMayAtTheEnd) {
  const Timeline all = Written().verb("a").verb("b").verb("c").failing_verb("d").take();
  EXPECT_THAT(texts(limited(all, 3)), ElementsAre("b", "c", "d fails: EINVAL"));
}

}  // namespace
}  // namespace rocemu::timeline
