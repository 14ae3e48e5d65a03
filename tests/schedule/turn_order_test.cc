#include "emulator/schedule/turn_order.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace rocemu::test {
namespace {

using namespace std::chrono_literals;
using schedule::Duration;
using schedule::Instant;
using schedule::Thread;
using schedule::TurnOrder;

/// SplitMix64 of the paper and of Vigna's reference implementation: the output for a state.
uint64_t splitmix(uint64_t state) {
  uint64_t z = state + 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

TEST(TurnOrder, IsThatOfTheStartWithoutASchedule) {
  const TurnOrder order(0);
  EXPECT_EQ(order.place_of({.slot = 1, .serial = 9}, Instant(5us)), (TurnOrder::Place{0, 9}));
}

TEST(TurnOrder, IsDrawnFromScheduleTimeAndThread) {
  ASSERT_EQ(splitmix(1234567), 6457827717110365317u);  // Vigna's first value for this seed
  const TurnOrder order(42);
  const uint64_t drawn = splitmix(splitmix(splitmix(42) ^ 5000) ^ 9);
  EXPECT_EQ(order.place_of({.slot = 1, .serial = 9}, Instant(5us)), (TurnOrder::Place{drawn, 9}));
}

TEST(TurnOrder, FindsTheFirstReadyThreadBehindAPlace) {
  const TurnOrder order(0);
  const std::vector<Thread> threads = {{.slot = 0, .serial = 4},
                                       {.slot = 1, .serial = 2},
                                       {.slot = 2, .serial = 3},
                                       {.slot = 3, .serial = 1}};
  const auto next = [&](uint64_t after, uint32_t sleeper) {
    const Thread* found = order.next_after({0, after}, threads, Instant{},
                                           [&](const Thread& one) { return one.slot != sleeper; });
    return found == nullptr ? 0 : found->serial;
  };
  constexpr uint32_t kNone = 99;
  EXPECT_EQ(next(0, kNone), 1u);
  EXPECT_EQ(next(1, kNone), 2u);
  EXPECT_EQ(next(2, kNone), 3u);
  EXPECT_EQ(next(2, 2), 4u);
  EXPECT_EQ(next(4, kNone), 0u);
}

}  // namespace
}  // namespace rocemu::test
