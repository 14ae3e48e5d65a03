// When a thread that polls beside the daemon goes elsewhere, and what that leaves as it was.
#include "verbs_provider/polling/cpu_placement.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cerrno>

#include "tests/support/one_processor.h"

namespace rocemu::test {
namespace {

using provider::CpuPlacement;

constexpr int kWaits = 16;  // after so many it leaves
constexpr int64_t kWait = 2'000;

/// A thread that waits for completions; what it does between its waits takes a time.
class Thread {
 public:
  Thread() { place_.ends(now_); }

  /// Waits, after `between_ns` and so many completions and work requests. Whether it is better off
  /// elsewhere.
  bool waits(int64_t between_ns, uint64_t completions = 1, int posts = 1) {
    now_ += between_ns;
    place_.finds(completions);
    for (int i = 0; i < posts; ++i) place_.posts();
    const bool leaves = place_.begins(beside_daemon, now_);
    now_ += kWait;
    place_.ends(now_);
    return leaves;
  }
  /// Which of so many waits is the first after which it leaves, from 1; 0 if none.
  int leaves_at(int waits_made, int64_t between_ns, uint64_t completions = 1, int posts = 1) {
    for (int i = 1; i <= waits_made; ++i) {
      if (waits(between_ns, completions, posts)) return i;
    }
    return 0;
  }

  bool beside_daemon = true;
  CpuPlacement& place() { return place_; }

 private:
  CpuPlacement place_;
  int64_t now_ = 1'000'000'000;
};

TEST(CpuPlacement, OnlyAThreadThatDoesNothingElseMaySleepLonger) {
  CpuPlacement place;
  place.ends(1'000'000);
  EXPECT_TRUE(place.may_sleep(1'000'500));
  place.ends(2'000'000);
  EXPECT_FALSE(place.may_sleep(2'002'000));
  place.finds(4);
  place.posts();
  EXPECT_TRUE(place.may_sleep(2'002'000)) << "it had completions to look at";
  EXPECT_FALSE(place.may_sleep(2'002'000)) << "which count once";
}

TEST(CpuPlacement, IsLeftByWhoDoesNothingElse) {
  Thread thread;
  EXPECT_EQ(thread.leaves_at(1000, 1'000), kWaits);
}

TEST(CpuPlacement, IsKeptByWhoDoesOtherThings) {
  Thread thread;
  EXPECT_EQ(thread.leaves_at(1000, 5'000), 0);
  // Half of the time is enough: a wait for data in memory is one.
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(thread.waits(i % 2 == 0 ? 100 : 5'000));
}

TEST(CpuPlacement, IsNotLeftForPollsThatFindNothing) {
  Thread thread;
  EXPECT_EQ(thread.leaves_at(1000, 100, 0, 0), 0);
}

TEST(CpuPlacement, CompletionsAndWorkRequestsMayTakeTheirTime) {
  Thread thread;
  EXPECT_EQ(thread.leaves_at(1000, 12'000, 16, 1), kWaits);
  Thread poster;
  EXPECT_EQ(poster.leaves_at(1000, 40'000, 1, 100), kWaits);
  Thread slow;
  EXPECT_EQ(slow.leaves_at(1000, 50'000, 1, 100), 0);
}

TEST(CpuPlacement, NotMoreThanAPollTakesCounts) {
  Thread thread;
  EXPECT_EQ(thread.leaves_at(1000, 20'000, 1'000'000), 0);
}

TEST(CpuPlacement, ToWakeTheDaemonIsNoOtherThing) {
  Thread thread;
  int left = 0;
  for (int i = 0; i < kWaits; ++i) {
    thread.place().was_kept(9'000);
    left += thread.waits(10'000) ? 1 : 0;
  }
  EXPECT_EQ(left, 1);
}

TEST(CpuPlacement, IsNotLeftAgainAtOnce) {
  Thread thread;
  ASSERT_EQ(thread.leaves_at(1000, 100), kWaits);
  EXPECT_EQ(thread.leaves_at(4'000, 100), 0) << "8.4 ms";
  EXPECT_NE(thread.leaves_at(1'000, 100), 0);
}

TEST(CpuPlacement, WhoOnlyThenWaitsForOtherThingsGoesBackAndStays) {
  Thread thread;
  ASSERT_NE(thread.leaves_at(1000, 100), 0);
  thread.beside_daemon = false;
  EXPECT_EQ(thread.leaves_at(1000, 10'000), 8);
  EXPECT_EQ(thread.leaves_at(1000, 10'000), 0);
  thread.beside_daemon = true;
  EXPECT_EQ(thread.leaves_at(400'000, 100), 0) << "0.84 s";
  EXPECT_NE(thread.leaves_at(100'000, 100), 0);
}

TEST(CpuPlacement, WhoIsKeptNowAndThenRegretsNothing) {
  Thread thread;
  thread.beside_daemon = false;
  EXPECT_EQ(thread.leaves_at(100, 10'000), 0) << "it never left";
  thread.beside_daemon = true;
  ASSERT_NE(thread.leaves_at(1000, 100), 0);
  thread.beside_daemon = false;
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(thread.waits(i % 3 == 0 ? 10'000 : 100));
}

TEST(LeaveProcessor, GoesToAnotherAndKeepsWhatMayBeUsed) {
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  errno = EXDEV;
  provider::leave_processor();
  EXPECT_EQ(errno, EXDEV);
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(LeaveProcessor, StaysWhereItMayUseNoOther) {
  const OneProcessor one;
  errno = EXDEV;
  provider::leave_processor();
  EXPECT_EQ(errno, EXDEV);
  EXPECT_EQ(static_cast<uint32_t>(sched_getcpu()), one.number());
}

}  // namespace
}  // namespace rocemu::test
