// Tests in which rows events are, and where arrows end.
#include "emulator/timeline/arrange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/timeline/beside.h"
#include "tests/timeline/layout/timelines.h"

namespace rocemu::timeline {

using testing::ElementsAre;

bool operator==(const Fold& a, const Fold& b) {
  return a.first == b.first && a.last == b.last;
}
void PrintTo(const Fold& fold, std::ostream* out) {
  *out << fold.first << " to " << fold.last;
}

namespace {

TEST(Arrange, GivesEachHappeningTheRowBelowTheLast) {
  const Arrangement rows = arrange(Written().verb("a").at(1).verb("b").verb("c").take());
  EXPECT_EQ(rows.rows, 3u);
  EXPECT_EQ(rows.spans[0].row, 0u);
  EXPECT_EQ(rows.spans[1].row, 1u);
  EXPECT_EQ(rows.spans[2].row, 2u);
}

TEST(Arrange, LetsAnArrowEndInTheFirstRowOfTheTimeOfItsArrival) {
  // The receives are posted at the time of the SEND, but after it, so the SEND's arrow ends below
  // them.
  const Arrangement rows = arrange(Written()
                                       .frame("SEND", 0, 1)
                                       .post("post_recv wr 1", 1)
                                       .post("post_recv wr 2", 1)
                                       .at(1)
                                       .completion("recv wr 1", 1)
                                       .frame("ACK", 1, 0)
                                       .at(2)
                                       .completion("send wr 1")
                                       .take());
  EXPECT_EQ(rows.spans[0].end, 3u);
  EXPECT_EQ(rows.spans[4].end, 5u);
  EXPECT_EQ(rows.rows, 6u);
}

TEST(Arrange, GivesATimeAtWhichFramesOnlyArriveOneRow) {
  const Arrangement rows = arrange(
      Written().frame("a", 0, 1, 5).frame("b", 0, 1, 5).frame("c", 0, 1, 7).at(6).verb("d").take());
  EXPECT_EQ(rows.spans[0].end, 3u);
  EXPECT_EQ(rows.spans[1].end, 3u);
  EXPECT_EQ(rows.spans[3].row, 4u);
  EXPECT_EQ(rows.spans[2].end, 5u) << "after the last happening, too";
  EXPECT_EQ(rows.rows, 6u);
}

TEST(Arrange, LetsAFrameThatOvertakesAnotherEndAboveIt) {
  const Arrangement rows = arrange(Written().frame("slow", 0, 1, 9).frame("fast", 0, 1, 1).take());
  EXPECT_EQ(rows.spans[0].end, 3u);
  EXPECT_EQ(rows.spans[1].end, 2u);
}

TEST(Arrange, KeepsLostInstantAndLocalFramesInTheirRows) {
  const Arrangement rows = arrange(Written()
                                       .lost_frame("lost", 0, 1)
                                       .frame("as a capture has it", 0, 1, 0)
                                       .frame("to itself", 1, 1)
                                       .at(1)
                                       .verb("later")
                                       .take());
  for (const size_t i : {0u, 1u, 2u}) EXPECT_EQ(rows.spans[i].end, rows.spans[i].row) << i;
  EXPECT_EQ(rows.rows, 4u);
}

TEST(Arrange, NeverEndsAnArrowAboveAHappeningOfAnEarlierTimeNorBelowOneOfALaterTime) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Timeline timeline = by_chance(seed);
    const Arrangement rows = arrange(timeline);
    for (size_t i = 0; i < timeline.happenings.size(); ++i) {
      const Happening& one = timeline.happenings[i];
      if (!is_arrow(one) || one.lost || one.flight.count() == 0) continue;
      for (size_t j = 0; j < timeline.happenings.size(); ++j) {
        const engine::Instant at = timeline.happenings[j].at;
        if (at < arrival_of(one)) {
          EXPECT_LT(rows.spans[j].row, rows.spans[i].end) << seed;
        }
        if (at > arrival_of(one)) {
          EXPECT_GT(rows.spans[j].row, rows.spans[i].end) << seed;
        }
      }
    }
  }
}

TEST(Folds, HoldSetUpOfAnyLaneInOneRow) {
  const Arrangement rows = arrange(Written()
                                       .verb("alloc_pd")
                                       .verb("reg_mr, 64 B")
                                       .verb("create_qp 0x11")
                                       .verb("alloc_pd", 1)
                                       .verb("modify_qp to RTR")
                                       .frame("SEND", 0, 1, 0)
                                       .take());
  EXPECT_THAT(rows.folds, ElementsAre(Fold{0, 4}));
}

TEST(Folds, AreOfThreeRowsAtLeast) {
  EXPECT_THAT(arrange(Written().verb("a").verb("b").take()).folds, ElementsAre());
  EXPECT_THAT(arrange(Written().verb("a").verb("b").verb("c").take()).folds,
              ElementsAre(Fold{0, 2}));
}

TEST(Folds, LeaveOutWhatFailsAndWhatTakesAQpToError) {
  Timeline timeline = Written()
                          .verb("a")
                          .verb("b")
                          .failing_verb("c")
                          .verb("d")
                          .verb("e")
                          .verb("f")
                          .verb("g")
                          .take();
  EXPECT_THAT(arrange(timeline).folds, ElementsAre(Fold{3, 6}));
  timeline.happenings[4].state = "ERR";
  EXPECT_THAT(arrange(timeline).folds, ElementsAre());
}

TEST(Folds, HoldPostsOfReceivesApartFromVerbs) {
  const Arrangement rows = arrange(Written()
                                       .verb("a")
                                       .verb("b")
                                       .verb("c")
                                       .post("post_recv wr 1")
                                       .post("post_recv wr 2")
                                       .post("post_recv wr 3")
                                       .take());
  EXPECT_THAT(rows.folds, ElementsAre(Fold{0, 2}, Fold{3, 5}));
}

TEST(Folds, LeaveOutSendsAndWhatConnects) {
  EXPECT_THAT(arrange(Written().verb("post_send").verb("post_send").verb("post_send").take()).folds,
              ElementsAre());
  EXPECT_THAT(
      arrange(Written().post("post_send wr 1").post("post_send wr 2").post("post_send wr 3").take())
          .folds,
      ElementsAre());
  EXPECT_THAT(
      arrange(Written().verb("rdma_create_id").verb("rdma_connect").verb("rdma_query").take())
          .folds,
      ElementsAre());
}

TEST(Folds, EndWhereAnArrowArrives) {
  const Arrangement rows = arrange(Written()
                                       .frame("SEND", 0, 1)
                                       .verb("a")
                                       .verb("b")
                                       .verb("c")
                                       .at(1)
                                       .verb("d")
                                       .verb("e")
                                       .verb("f")
                                       .verb("g")
                                       .take());
  EXPECT_EQ(rows.spans[0].end, 4u);
  EXPECT_THAT(rows.folds, ElementsAre(Fold{1, 3}, Fold{5, 7}));
}

TEST(TwoRuns, HaveTheSameInTheSameRowUpToTheFirstDifferenceAndBothGoOnBelowIt) {
  const Timeline first = Written().frame("SEND", 0, 1).at(5).verb("a").verb("b").take();
  const Timeline second =
      Written().frame("SEND", 0, 1).at(7).verb("a").lost_frame("x", 0, 1).take();
  const Timeline both = beside(first, second);
  const Arrangement rows = arrange(both);
  std::vector<std::pair<std::string, uint32_t>> of_first, of_second, mark;
  for (size_t i = 0; i < both.happenings.size(); ++i) {
    const Happening& one = both.happenings[i];
    auto& list = is_first_difference(one)        ? mark
                 : both.lanes[one.lane].run == 1 ? of_first
                                                 : of_second;
    list.emplace_back(one.text, rows.spans[i].row);
  }
  using Pair = std::pair<std::string, uint32_t>;
  EXPECT_THAT(of_first, ElementsAre(Pair{"SEND", 0}, Pair{"a", 2}, Pair{"b", 4}));
  EXPECT_THAT(of_second, ElementsAre(Pair{"SEND", 0}, Pair{"a", 2}, Pair{"x", 4}));
  EXPECT_THAT(mark, ElementsAre(Pair{"first difference", 3}));
}

TEST(TwoRuns, KeepEqualRowsTogetherIfFramesOfOneArriveLater) {
  const Timeline first = Written().frame("SEND", 0, 1, 1).at(3).verb("a").verb("b").take();
  const Timeline second = Written().frame("SEND", 0, 1, 8).at(3).verb("a").verb("b").take();
  const Timeline both = beside(first, second);
  const Arrangement rows = arrange(both);
  for (size_t i = 0; i < both.happenings.size(); i += 2)
    EXPECT_EQ(rows.spans[i].row, rows.spans[i + 1].row) << both.happenings[i].text;
  EXPECT_EQ(rows.spans[0].end, 1u);
  EXPECT_EQ(rows.spans[1].end, 4u);
}

}  // namespace
}  // namespace rocemu::timeline
