// Tests when a thread that has returned its turn spins until the next one.
#include "verbs_provider/turns/turn_spin.h"

#include <gtest/gtest.h>

namespace rocemu::turns {
namespace {

constexpr int64_t kLongest = kTurnSpinConstants.longest_ns;

/// Returns the number of waits without a spin before the next one with a spin.
uint32_t sleeps_before_spin(TurnSpin& spin) {
  uint32_t sleeps = 0;
  while (!spin.is_worthwhile()) ++sleeps;
  return sleeps;
}

TEST(TurnSpin, BeginsWithASpin) {
  EXPECT_TRUE(TurnSpin().is_worthwhile());
}

TEST(TurnSpin, ContinuesWhileItGetsTheTurn) {
  TurnSpin spin;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(spin.is_worthwhile());
    spin.ended(/*has_turn=*/true, kLongest);
  }
}

TEST(TurnSpin, SleepsTwiceAsOftenAfterEachSpinThatWasTooShort) {
  TurnSpin spin;
  for (const uint32_t sleeps : {1u, 2u, 4u, 8u, 16u, 32u, 64u, 64u, 64u}) {
    spin.ended(/*has_turn=*/false, kLongest);
    EXPECT_EQ(sleeps_before_spin(spin), sleeps);
  }
}

TEST(TurnSpin, TakesALongYieldForASpinThatWasTooShort) {
  TurnSpin spin;
  spin.ended(/*has_turn=*/true, kLongest + 1);
  EXPECT_EQ(sleeps_before_spin(spin), 1u);
}

TEST(TurnSpin, StartsAgainAfterASuccess) {
  TurnSpin spin;
  for (int i = 0; i < 5; ++i) spin.ended(/*has_turn=*/false, kLongest);
  EXPECT_EQ(sleeps_before_spin(spin), 16u);
  spin.ended(/*has_turn=*/true, 0);
  EXPECT_TRUE(spin.is_worthwhile());
  spin.ended(/*has_turn=*/false, kLongest);
  EXPECT_EQ(sleeps_before_spin(spin), 1u);
}

}  // namespace
}  // namespace rocemu::turns
