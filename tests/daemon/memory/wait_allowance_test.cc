// Tests how long all programs may wait for one program whose memory is late.
#include "emulator/daemon/memory/wait_allowance.h"

#include <gtest/gtest.h>

#include "emulator/engine/base/random.h"

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;
using Duration = WaitAllowance::Duration;

TEST(WaitAllowance, LetsTheFirstLateCallsTakeTheWholeTime) {
  WaitAllowance allowance;
  auto now = WaitAllowance::Clock::now();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(allowance.limit(now), 20ms);
    allowance.spend(now, 20ms);
  }
  EXPECT_EQ(allowance.limit(now), 1ms);
}

// The total time of waits is at most the sum of the initial budget, a twentieth of the elapsed
// time, and the shortest wait for each late call. This holds for any programs and durations.
TEST(WaitAllowance, LimitsTheTimeOfManyLateCalls) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    engine::Random random(seed);
    WaitAllowance allowance;
    auto now = WaitAllowance::Clock::now();
    const auto begin = now;
    Duration waited{};
    for (int calls = 0; calls < 350; ++calls) {
      now += std::chrono::microseconds(random.next() % 2000);
      const Duration limit = allowance.limit(now);
      ASSERT_GE(limit, 1ms);
      ASSERT_LE(limit, 20ms);
      now += limit;  // each call is late and waits for the whole limit
      waited += limit;
      allowance.spend(now, limit);
    }
    EXPECT_LE(waited, 100ms + (now - begin) / 20 + 350 * 1ms);
    EXPECT_LT(waited, 600ms) << "350 late calls took 7 s when each had 20 ms";
  }
}

TEST(WaitAllowance, IsWholeAgainAfterTwoSecondsWithoutWaits) {
  WaitAllowance allowance;
  auto now = WaitAllowance::Clock::now();
  allowance.spend(now, 1h);
  EXPECT_EQ(allowance.limit(now), 1ms);
  EXPECT_EQ(allowance.limit(now + 200ms), 10ms);
  EXPECT_EQ(allowance.limit(now + 2s), 20ms);
  allowance.spend(now + 2s, 80ms);
  EXPECT_EQ(allowance.limit(now + 2s), 20ms);
  allowance.spend(now + 2s, 20ms);
  EXPECT_EQ(allowance.limit(now + 2s), 1ms);
}

TEST(WaitAllowance, CountsWhatPromptCallsTook) {
  WaitAllowance allowance;
  auto now = WaitAllowance::Clock::now();
  for (int i = 0; i < 100; ++i) allowance.spend(now, 900us);
  EXPECT_EQ(allowance.limit(now), 10ms);
}

}  // namespace
}  // namespace rocemu::daemon
