// When the daemon waits awake for a turn to come back.
#include "emulator/daemon/run/awake_wait.h"

#include <gtest/gtest.h>

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;
using Instant = AwakeWait::Instant;

constexpr Instant kStart{1h};

bool waits_at(const AwakeWait& wait, Instant now) {
  return wait.until(now) > now;
}

TEST(AwakeWait, IsAsLongAsItTakesToBeWoken) {
  EXPECT_EQ(AwakeWait().until(kStart), kStart + kAwakeConstants.longest);
}

TEST(AwakeWait, IsNeverWhereThatIsAskedFor) {
  EXPECT_FALSE(waits_at(AwakeWait(true), kStart));
}

TEST(AwakeWait, GoesOnWhileTurnsComeBackInTime) {
  AwakeWait wait;
  for (int i = 0; i < 10'000; ++i) wait.ended(true, kStart);
  EXPECT_TRUE(waits_at(wait, kStart));
}

TEST(AwakeWait, PausesAfterALongTurnTwiceAsLongEachTime) {
  AwakeWait wait;
  Instant now = kStart;
  for (auto pause = kAwakeConstants.shortest_pause; pause < kAwakeConstants.longest_pause;
       pause *= 2) {
    wait.ended(false, now);
    EXPECT_FALSE(waits_at(wait, now + pause - 1ns));
    EXPECT_TRUE(waits_at(wait, now + pause));
    now += pause;
  }
  for (int i = 0; i < 100; ++i) {
    wait.ended(false, now);
    now += kAwakeConstants.longest_pause;
    EXPECT_TRUE(waits_at(wait, now));
  }
}

TEST(AwakeWait, PausesBrieflyAgainOnceNobodyIsInTheWay) {
  AwakeWait wait;
  for (int i = 0; i < 10; ++i) wait.ended(false, kStart);
  for (int i = 0; i < 1000; ++i) wait.ended(true, kStart);
  wait.ended(false, kStart);
  EXPECT_TRUE(waits_at(wait, kStart + kAwakeConstants.shortest_pause));
}

}  // namespace
}  // namespace rocemu::daemon
