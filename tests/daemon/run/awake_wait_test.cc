// Tests when the daemon waits actively until a program returns its turn.
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

TEST(AwakeWait, LastsAsLongAsAWakeupTakes) {
  EXPECT_EQ(AwakeWait().until(kStart), kStart + kAwakeConstants.longest);
}

TEST(AwakeWait, IsDisabledByItsOption) {
  EXPECT_FALSE(waits_at(AwakeWait(true), kStart));
}

TEST(AwakeWait, ContinuesAfterShortTurns) {
  AwakeWait wait;
  wait.turn_ended(kAwakeConstants.long_turn - 1ns, kStart);
  EXPECT_TRUE(waits_at(wait, kStart));
}

TEST(AwakeWait, PausesAfterALongTurnForAMultipleOfItsTime) {
  AwakeWait wait;
  wait.turn_ended(4ms, kStart);
  EXPECT_FALSE(waits_at(wait, kStart + 32ms - 1ns));
  EXPECT_TRUE(waits_at(wait, kStart + 32ms));
}

TEST(AwakeWait, PausesForASecondAtMost) {
  AwakeWait wait;
  wait.turn_ended(1h, kStart);
  EXPECT_FALSE(waits_at(wait, kStart + 1s - 1ns));
  EXPECT_TRUE(waits_at(wait, kStart + 1s));
}

}  // namespace
}  // namespace rocemu::daemon
