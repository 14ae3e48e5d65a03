#include "emulator/schedule/hang_watch.h"

#include <gtest/gtest.h>

#include <chrono>

namespace rocemu::test {
namespace {

using namespace std::chrono_literals;
using schedule::Duration;
using schedule::HangWatch;
using schedule::Instant;

Instant at(Duration time) {
  return Instant(time);
}

void jump(HangWatch& watch, int times) {
  for (int i = 0; i < times; ++i) watch.jumped();
}

TEST(HangWatch, ReportsAStuckRunLessAndLessOften) {
  HangWatch watch;
  Duration now = 1s;
  EXPECT_TRUE(watch.report(at(now)));
  EXPECT_TRUE(watch.is_stuck());
  for (const Duration interval : {1ms, 2ms, 4ms, 8ms, 16ms, 32ms, 64ms, 128ms, 128ms, 128ms}) {
    now += interval;
    EXPECT_FALSE(watch.report(at(now - 1ns)));
    EXPECT_TRUE(watch.report(at(now)));
  }
}

TEST(HangWatch, ReportsTheNextStuckRunAsOftenAsTheFirst) {
  HangWatch watch;
  EXPECT_TRUE(watch.report(at(1s)));
  EXPECT_TRUE(watch.report(at(2s)));
  watch.see(1);  // the programs act
  EXPECT_TRUE(watch.report(at(3s)));
  EXPECT_FALSE(watch.report(at(3s + 1ms - 1ns)));
  EXPECT_TRUE(watch.report(at(3s + 1ms)));
}

TEST(HangWatch, ForgetsWhatItSawWhenProgramsDoSomething) {
  HangWatch watch;
  jump(watch, 1500);
  watch.repeats(true);
  EXPECT_TRUE(watch.report(at(1s)));
  watch.see(1);
  EXPECT_FALSE(watch.is_stuck());
  EXPECT_FALSE(watch.repeats());
  EXPECT_FALSE(watch.wants_progress());
  jump(watch, 1000);
  EXPECT_FALSE(watch.sees_progress({}, true)) << "the first look has nothing to compare with";
}

TEST(HangWatch, KeepsWhatItSawWhenProgramsDoNothing) {
  HangWatch watch;
  watch.see(7);
  jump(watch, 1000);
  EXPECT_TRUE(watch.report(at(1s)));
  watch.see(7);
  EXPECT_TRUE(watch.is_stuck());
  EXPECT_TRUE(watch.wants_progress());
}

TEST(HangWatch, LooksAtTheQpsEvery1000Jumps) {
  HangWatch watch;
  jump(watch, 999);
  EXPECT_FALSE(watch.wants_progress());
  jump(watch, 1);
  EXPECT_TRUE(watch.wants_progress());
  EXPECT_FALSE(watch.sees_progress({5}, true));
  jump(watch, 999);
  EXPECT_FALSE(watch.wants_progress());
  jump(watch, 1);
  EXPECT_TRUE(watch.wants_progress());
}

TEST(HangWatch, FindsRetriesWithoutEndAfter64MoreJumpsForEachQp) {
  HangWatch watch;
  jump(watch, 1000);
  EXPECT_FALSE(watch.sees_progress({5, 6}, true));
  jump(watch, 1000 + 2 * 64 - 1);
  EXPECT_FALSE(watch.sees_progress({5, 6}, true));
  jump(watch, 1);
  EXPECT_FALSE(watch.sees_progress({5, 6}, false)) << "what is due has an end";
  EXPECT_TRUE(watch.sees_progress({5, 6}, true));
}

TEST(HangWatch, Counts1000PacketsInANetworkAsOneJump) {
  HangWatch watch;
  for (int i = 0; i < 999'999; ++i) watch.jumped(true);
  EXPECT_FALSE(watch.wants_progress());
  watch.jumped(true);
  EXPECT_TRUE(watch.wants_progress());
}

TEST(HangWatch, BeginsAnewWhenAQpComesFurther) {
  HangWatch watch;
  jump(watch, 1000);
  EXPECT_FALSE(watch.sees_progress({5}, true));
  jump(watch, 2000);
  EXPECT_FALSE(watch.sees_progress({6}, true));
  jump(watch, 1063);
  EXPECT_FALSE(watch.sees_progress({6}, true));
  jump(watch, 1);
  EXPECT_TRUE(watch.sees_progress({6}, true));
}

TEST(HangWatch, DoesNotTakeTheFirstCheckWithoutQpsForAHang) {
  HangWatch watch;
  jump(watch, 1000);
  EXPECT_FALSE(watch.sees_progress({}, true));
  jump(watch, 1000);
  EXPECT_TRUE(watch.sees_progress({}, true));
}

TEST(HangWatch, LetsTimeStandStillFor15sWhileRetriesRepeat) {
  HangWatch watch;
  EXPECT_FALSE(watch.awaits_verdict(at(1s)));
  jump(watch, 1000);
  watch.repeats(true);
  EXPECT_TRUE(watch.report(at(1s)));
  EXPECT_TRUE(watch.awaits_verdict(at(16s - 1ns)));
  EXPECT_FALSE(watch.awaits_verdict(at(16s)));
  EXPECT_FALSE(watch.is_stuck());
  EXPECT_FALSE(watch.repeats());
  EXPECT_FALSE(watch.wants_progress()) << "the next look is 1000 jumps later";
}

}  // namespace
}  // namespace rocemu::test
