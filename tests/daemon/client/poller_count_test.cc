// Tests the number of polling threads: it rises at once and falls slowly.
#include "emulator/daemon/client/poller_count.h"

#include <gtest/gtest.h>

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;

TEST(PollerCount, IsTheMostThatYieldedAtOnceRoundedUpForEachProcessor) {
  PollerCount count(4);
  count.note(3);
  count.note(9);
  count.note(5);
  EXPECT_TRUE(count.count(engine::Instant(1s), /*active=*/2));
  EXPECT_EQ(count.per_processor(), 3u);
}

TEST(PollerCount, HasAtLeastOneThreadOfEachClientThatRang) {
  PollerCount count(2);
  count.note(1);
  EXPECT_TRUE(count.count(engine::Instant(1s), /*active=*/5));
  EXPECT_EQ(count.per_processor(), 3u);
}

TEST(PollerCount, FallsByAnEighthEachTimeDownToZero) {
  PollerCount count(0);  // an unknown number of processors counts as one
  count.note(16);
  EXPECT_TRUE(count.count(engine::Instant(1s), 0));
  EXPECT_EQ(count.per_processor(), 16u);
  EXPECT_TRUE(count.count(engine::Instant(2s), 0));
  EXPECT_EQ(count.per_processor(), 14u);
  EXPECT_TRUE(count.count(engine::Instant(3s), 0));
  EXPECT_EQ(count.per_processor(), 12u);  // 14 decreases by 1.75, and the result is rounded up
  for (int i = 0; i < 20; ++i) count.count(engine::Instant(4s), 0);
  EXPECT_EQ(count.per_processor(), 0u);
  EXPECT_FALSE(count.count(engine::Instant(5s), 0)) << "nothing changed";
}

TEST(PollerCount, IsDueTheMoreSeldomTheMoreClientsThereAre) {
  PollerCount count(1);
  count.count(engine::Instant(1s), 0);
  EXPECT_FALSE(count.is_due(engine::Instant(1s + 1ms - 1ns), 0));
  EXPECT_TRUE(count.is_due(engine::Instant(1s + 1ms), 0));
  EXPECT_FALSE(count.is_due(engine::Instant(1s + 2ms - 1ns), 100));
  EXPECT_TRUE(count.is_due(engine::Instant(1s + 2ms), 100));
}

}  // namespace
}  // namespace rocemu::daemon
