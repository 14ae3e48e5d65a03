// Tests when threads that wait for a child, or that spin, are checked.
#include <gtest/gtest.h>

#include <cstdint>

#include "emulator/daemon/run/child_waits.h"
#include "emulator/os/threads/spin_checks.h"

namespace rocemu::daemon {
namespace {

TEST(ChildWaits, AThreadChecksOnceAfterEachEvent) {
  ChildWaits waits;
  EXPECT_TRUE(waits.may_have_ended(3));  // it has had no turn
  waits.has_turn(3);
  EXPECT_FALSE(waits.may_have_ended(3));
  EXPECT_TRUE(waits.may_have_ended(4));
  waits.happened();
  waits.happened();
  EXPECT_TRUE(waits.may_have_ended(3));
  waits.has_turn(3);
  EXPECT_FALSE(waits.may_have_ended(3));
}

TEST(ChildWaits, AThreadChecksOnceInAWhileForSignalsFromOutside) {
  ChildWaits waits;
  uint32_t turns = 0;
  for (int round = 0; round < 10'000; ++round) {
    waits.begin_round();
    if (!waits.may_have_ended(0)) continue;
    waits.has_turn(0);
    ++turns;
  }
  EXPECT_GE(turns, 10u);
  EXPECT_LE(turns, 100u);
}

/// Returns the number of turns with progress before the next check.
uint32_t turns_to_check(SpinChecks& checks) {
  uint32_t turns = 0;
  for (; !checks.is_due(); ++turns) checks.turn_progressed();
  return turns;
}

TEST(SpinChecks, AreRarerWhileAllThreadsSpin) {
  SpinChecks checks;
  for (const uint32_t turns : {1u, 2u, 4u, 8u, 16u, 32u, 64u, 64u, 64u}) {
    EXPECT_EQ(turns_to_check(checks), turns);
    checks.checked(true);
  }
  checks.checked(false);  // a thread has left its loop
  EXPECT_EQ(turns_to_check(checks), 1u);
}

}  // namespace
}  // namespace rocemu::daemon
