// Checks pictures by computation: each arrow ends in the row of the frame's arrival, and no text is
// truncated.
#include "emulator/timeline/drawing/geometry.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "emulator/timeline/arrange.h"
#include "emulator/timeline/beside.h"
#include "emulator/timeline/reading/read_capture.h"
#include "tests/timeline/layout/timelines.h"

namespace rocemu::timeline {
namespace {

bool overlap(const Box& a, const Box& b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/// Returns whether a segment has a point inside a box. Clips the segment at each edge of the box in
/// turn (Liang and Barsky).
bool crosses(const Point& from, const Point& to, const Box& box) {
  double enters = 0, leaves = 1;
  // keeps the points t of the segment with way * t < room
  const auto cut = [&](double way, double room) {
    if (way == 0) return room > 0;
    const double t = room / way;
    (way < 0 ? enters : leaves) = way < 0 ? std::max(enters, t) : std::min(leaves, t);
    return true;
  };
  const double x = to.x - from.x, y = to.y - from.y;
  return cut(-x, from.x - box.left) && cut(x, box.right - from.x) && cut(-y, from.y - box.top) &&
         cut(y, box.bottom - from.y) && enters < leaves;
}

void expect_legible(const Timeline& timeline, size_t width) {
  const Geometry picture = lay_out(timeline, width);
  const Arrangement rows = arrange(timeline);
  const auto arrows = static_cast<size_t>(std::ranges::count_if(timeline.happenings, is_arrow));
  ASSERT_EQ(picture.arrows.size(), arrows);
  for (const Arrow& arrow : picture.arrows) {
    const Happening& one = timeline.happenings[arrow.happening];
    const RowSpan& span = rows.spans[arrow.happening];
    const Row& start = picture.rows[span.row];
    const Row& end = picture.rows[span.end];
    EXPECT_GE(arrow.points.front().y, start.top) << one.text;
    EXPECT_LE(arrow.points.front().y, start.bottom) << one.text;
    EXPECT_EQ(arrow.points.front().x, picture.lifelines[one.lane]);
    EXPECT_GE(arrow.points.back().y, arrow.points.front().y) << one.text << " goes up";
    EXPECT_GE(arrow.points.back().y, end.top) << one.text << " ends above the row of its arrival";
    EXPECT_LE(arrow.points.back().y, end.bottom)
        << one.text << " ends below the row of its arrival";
    if (!arrow.lost) {
      EXPECT_EQ(arrow.points.back().x, picture.lifelines[one.to]);
    }
  }
  std::vector<const Label*> texts;
  for (const auto* list : {&picture.labels, &picture.times, &picture.heads, &picture.notes}) {
    for (const Label& label : *list) texts.push_back(&label);
  }
  for (const Label* label : texts) {
    const Box& box = label->box;
    EXPECT_GE(box.left, 0) << label->lines[0];
    EXPECT_LE(box.right, picture.width) << label->lines[0];
    EXPECT_LE(box.bottom, picture.height) << label->lines[0];
    for (const Arrow& arrow : picture.arrows) {
      if (const auto [x, y] = arrow.points.back(); arrow.lost) {
        EXPECT_FALSE(overlap(box, {x - kCross, y - kCross, x + kCross, y + kCross}))
            << label->lines[0];
      }
      for (size_t i = 1; i < arrow.points.size(); ++i) {
        EXPECT_FALSE(crosses(arrow.points[i - 1], arrow.points[i], box))
            << label->lines[0] << " is cut by " << timeline.happenings[arrow.happening].text;
      }
    }
  }
  std::ranges::sort(texts, {}, [](const Label* label) { return label->box.top; });
  for (size_t i = 0; i < texts.size(); ++i) {
    for (size_t j = i + 1; j < texts.size() && texts[j]->box.top < texts[i]->box.bottom; ++j)
      EXPECT_FALSE(overlap(texts[i]->box, texts[j]->box))
          << texts[i]->lines[0] << " and " << texts[j]->lines[0];
  }
}

TEST(Geometry, LetsASegmentCrossABoxOnlyIfItHasAPointInside) {
  const Box box{10, 10, 20, 20};
  EXPECT_TRUE(crosses({0, 15}, {30, 15}, box));
  EXPECT_TRUE(crosses({12, 12}, {13, 13}, box));
  EXPECT_TRUE(crosses({0, 5}, {30, 25}, box));
  EXPECT_FALSE(crosses({0, 20}, {30, 20}, box)) << "along its edge";
  EXPECT_FALSE(crosses({0, 21}, {30, 21}, box));
  EXPECT_FALSE(crosses({0, 0}, {12, 30}, box));
  EXPECT_FALSE(crosses({0, 15}, {9, 15}, box));
}

TEST(Geometry, EndsArrowsAtTheHeightOfTheTimeAtWhichTheyArrive) {
  const Timeline timeline = Written()
                                .frame("SEND", 0, 1)
                                .post("post_recv wr 1", 1)
                                .at(1)
                                .completion("recv wr 1", 1)
                                .frame("ACK", 1, 0)
                                .take();
  const Geometry picture = lay_out(timeline, 80);
  ASSERT_EQ(picture.times.size(), 3u);
  for (size_t i = 0; i < 2; ++i) {
    const Box& time = picture.times[i + 1].box;
    EXPECT_EQ(picture.arrows[i].points.back().y, (time.top + time.bottom) / 2);
  }
}

TEST(Geometry, PutsTheTextOfAnArrowDirectlyAboveItAndItsReasonDirectlyBelow) {
  const Geometry picture = lay_out(Written().lost_frame("SEND", 0, 1).take(), 80);
  const double shaft = picture.arrows[0].points[0].y;
  EXPECT_EQ(picture.labels[0].lines[0], "SEND");
  EXPECT_LT(picture.labels[0].box.bottom, shaft);
  EXPECT_LT(shaft - picture.labels[0].box.bottom, kLineHeight / 2);
  EXPECT_EQ(picture.labels[1].lines[0], "dropped by rule 'lost'");
  EXPECT_GT(picture.labels[1].box.top, shaft);
  EXPECT_LT(picture.labels[1].box.top - shaft, kLineHeight / 2);
}

TEST(Geometry, GivesTwoRunsATimeColumnEach) {
  const Timeline first = Written().verb("a").at(1).verb("b").take();
  const Timeline second = Written().at(2).verb("a").at(3).verb("b").take();
  const Geometry picture = lay_out(beside(first, second), 160);
  std::vector<std::string> left, right;
  for (const Label& time : picture.times)
    (time.box.right < picture.lifelines[0] ? left : right).push_back(time.lines[0]);
  EXPECT_EQ(left, (std::vector<std::string>{"0 ns", "1 us"}));
  EXPECT_EQ(right, (std::vector<std::string>{"2 us", "3 us"}));
  for (const Label& time : picture.times) {
    if (time.box.left < picture.lifelines[1]) continue;
    EXPECT_GT(time.box.left, picture.lifelines[1]);
    EXPECT_LT(time.box.right, picture.lifelines[2]);
  }
}

TEST(Geometry, CutsNoTextOfTimelinesByChance) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    expect_legible(by_chance(seed), 60 + 40 * (seed % 5));
    if (HasFailure()) return;
  }
}

TEST(Geometry, CutsNoTextOfTwoRunsByChance) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    expect_legible(beside(by_chance(seed), by_chance(seed + 1000)), 80 + 60 * (seed % 4));
    if (HasFailure()) return;
  }
}

TEST(Geometry, CutsNoTextOfCapturesOfLinuxRxe) {
  size_t captures = 0;
  for (const auto& file : std::filesystem::directory_iterator(ROCEMU_TEST_DATA "/rxe")) {
    if (file.path().extension() != ".pcap") continue;
    SCOPED_TRACE(file.path().string());
    expect_legible(read_capture(file.path().string()), 80);
    ++captures;
  }
  EXPECT_GT(captures, 20u);
}

}  // namespace
}  // namespace rocemu::timeline
