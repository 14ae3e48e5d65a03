// Tests when a thread that has returned its turn spins until the next one.
#include "verbs_provider/turns/turn_spin.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rocemu::turns {
namespace {

constexpr TurnSpinConstants kConstants = kTurnSpinConstants;
constexpr int64_t kNow = 1'000'000'000'000;  // any time

/// Returns the number of waits without a spin before the next one with a spin.
uint32_t sleeps_before_spin(TurnSpin& spin) {
  uint32_t sleeps = 0;
  while (!spin.is_worthwhile(kNow)) ++sleeps;
  return sleeps;
}

/// Yields for a long time at `now_ns`. Returns the time without spins that follows.
int64_t pause_after_long_yield(TurnSpin& spin, int64_t now_ns) {
  spin.ended(/*has_turn=*/true, kConstants.long_yield_ns, now_ns);
  int64_t pause = 1'000'000;
  while (!spin.is_worthwhile(now_ns + pause)) pause += 1'000'000;
  EXPECT_FALSE(spin.is_worthwhile(now_ns + pause - 1));
  return pause;
}

TEST(TurnSpin, BeginsWithASpin) {
  EXPECT_TRUE(TurnSpin().is_worthwhile(kNow));
}

TEST(TurnSpin, ContinuesWhileItGetsTheTurn) {
  TurnSpin spin;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(spin.is_worthwhile(kNow));
    spin.ended(/*has_turn=*/true, kConstants.longest_ns, kNow);
  }
}

TEST(TurnSpin, SleepsTwiceAsOftenAfterEachSpinThatWasTooShort) {
  TurnSpin spin;
  for (const uint32_t sleeps : {1u, 2u, 4u, 8u, 16u, 32u, 64u, 64u, 64u}) {
    spin.ended(/*has_turn=*/false, kConstants.longest_ns, kNow);
    EXPECT_EQ(sleeps_before_spin(spin), sleeps);
  }
}

TEST(TurnSpin, StartsAgainAfterASuccess) {
  TurnSpin spin;
  for (int i = 0; i < 5; ++i) spin.ended(/*has_turn=*/false, kConstants.longest_ns, kNow);
  EXPECT_EQ(sleeps_before_spin(spin), 16u);
  spin.ended(/*has_turn=*/true, 0, kNow);
  EXPECT_TRUE(spin.is_worthwhile(kNow));
  spin.ended(/*has_turn=*/false, kConstants.longest_ns, kNow);
  EXPECT_EQ(sleeps_before_spin(spin), 1u);
}

TEST(TurnSpin, PausesAfterALongYieldEvenIfItGotTheTurn) {
  TurnSpin spin;
  EXPECT_EQ(pause_after_long_yield(spin, kNow), kConstants.shortest_pause_ns);
}

TEST(TurnSpin, PausesLongerIfLongYieldsFollowEachOther) {
  TurnSpin spin;
  int64_t now = kNow, wanted = kConstants.shortest_pause_ns;
  for (int i = 0; i < 10; ++i) {
    const int64_t pause = pause_after_long_yield(spin, now);
    EXPECT_EQ(pause, wanted);
    now += pause + 1'000'000;
    wanted = std::min(2 * wanted, kConstants.longest_pause_ns);
  }
}

TEST(TurnSpin, ForgetsLongYieldsOfThePast) {
  TurnSpin spin;
  const int64_t later = kNow + pause_after_long_yield(spin, kNow);
  const int64_t pause = pause_after_long_yield(spin, later);
  EXPECT_EQ(pause, 2 * kConstants.shortest_pause_ns);
  EXPECT_EQ(pause_after_long_yield(spin, later + 2 * pause), kConstants.shortest_pause_ns);
}

}  // namespace
}  // namespace rocemu::turns
