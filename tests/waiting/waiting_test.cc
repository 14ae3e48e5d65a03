// Tests the waiting policies of both sides together, on simulated machines
// (docs/design/waiting.md).
#include <gtest/gtest.h>

#include "tests/waiting/parties.h"

namespace rocemu::test {
namespace {

using provider::PollMode;

// times of a context switch, as measured on two VMs
constexpr Nanoseconds kCheap = 1'600, kDear = 25'000;

constexpr Nanoseconds kLong = 10'000'000'000;

struct Shape {
  size_t processors, pairs;
  Nanoseconds context_switch;
};

class OnEachMachine : public testing::TestWithParam<Shape> {
 protected:
  PingPongs::Result run(Waits waits, size_t hogs = 0, PollMode mode = PollMode::kAdaptive,
                        Nanoseconds time = 500'000'000) {
    const Shape& shape = GetParam();
    const MachineConfig config{.processors = shape.processors,
                               .context_switch = shape.context_switch,
                               .wake_up = 3 * shape.context_switch};
    return PingPongs(config, shape.pairs, waits, hogs, mode).run(time);
  }
};

std::vector<Shape> shapes() {
  std::vector<Shape> shapes;
  for (const Nanoseconds context_switch : {kCheap, kDear}) {
    for (const size_t processors : {1u, 2u, 3u, 4u, 8u, 16u}) {
      for (const size_t pairs : {1u, 2u, 4u, 8u})
        shapes.push_back({processors, pairs, context_switch});
    }
  }
  return shapes;
}

INSTANTIATE_TEST_SUITE_P(, OnEachMachine, testing::ValuesIn(shapes()), [](const auto& test) {
  return std::to_string(test.param.processors) + "Processors" + std::to_string(test.param.pairs) +
         "Pairs" + (test.param.context_switch == kCheap ? "Cheap" : "Dear");
});

// The model omits costs of sleeping other than the wake-up (ibv_get_cq_event, arming the CQ), so it
// favors threads that sleep.
TEST_P(OnEachMachine, PollingIsNotMuchSlowerThanSleeping) {
  const auto polling = run(Waits::kPolling), sleeping = run(Waits::kSleeping);
  EXPECT_LE(polling.median, 2 * sleeping.median);
  EXPECT_GE(2 * polling.messages, sleeping.messages);
}

// With many threads, each waits long for its turn, even if switches are cheap. If the others run
// more, a thread that sleeps is delayed even more.
TEST_P(OnEachMachine, WhereSwitchesAreCheapPollersYieldHoweverManyTheyAre) {
  if (GetParam().context_switch != kCheap) return;
  const auto adaptive = run(Waits::kPolling, 0, PollMode::kAdaptive);
  const auto yielding = run(Waits::kPolling, 0, PollMode::kYield);
  EXPECT_EQ(adaptive.median, yielding.median);
  EXPECT_EQ(adaptive.late, yielding.late);
}

// If switches are expensive, some threads sleep while others still yield.
TEST_P(OnEachMachine, PollingHasNoLongTail) {
  const auto result = run(Waits::kPolling);
  EXPECT_LE(result.late, (GetParam().context_switch == kCheap ? 20 : 40) * result.median);
}

TEST_P(OnEachMachine, OneThatHasAProcessorDoesNotSwitch) {
  const auto result = run(Waits::kPolling);
  // there is no processor for each thread
  if (GetParam().processors <= 2 * GetParam().pairs) return;
  EXPECT_LE(result.median, 2 * kCheap);
}

TEST_P(OnEachMachine, BesideOtherWorkPollingIsBetterThanYieldingOnly) {
  const size_t hogs = 2 * GetParam().processors;
  const auto adaptive = run(Waits::kPolling, hogs, PollMode::kAdaptive, kLong);
  const auto yielding = run(Waits::kPolling, hogs, PollMode::kYield, kLong);
  EXPECT_GT(adaptive.messages, 4 * yielding.messages);
}

// If the daemon yielded to a program that reads memory in a loop on the same processor, it would
// get the processor back only after a time slice. So the daemon must sleep and be woken. With one
// processor that does not help, since the program also keeps its peer from writing to the memory.
TEST_P(OnEachMachine, OnePairThatLooksAtMemoryDoesNotWaitForTimeSlices) {
  if (GetParam().pairs != 1 || GetParam().processors == 1) return;
  const auto result = run(Waits::kInMemory);
  EXPECT_LE(result.late, 4 * GetParam().context_switch);
}

}  // namespace
}  // namespace rocemu::test
