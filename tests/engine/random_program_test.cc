// Tests that the engine's outputs depend only on its inputs, and that its invariants hold for all
// inputs.
#include "tests/engine/random_program.h"

#include <gtest/gtest.h>

namespace rocemu::test {
namespace {

constexpr uint64_t kSeeds = 40;
constexpr uint32_t kInputs = 1500;

TEST(RandomPrograms, GiveTheSameOutputsTwiceAndKeepTheInvariants) {
  uint64_t completions = 0, successes = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    RandomProgram first(seed);
    first.run(kInputs);
    EXPECT_EQ(first.broken(), "") << "seed " << seed;
    RandomProgram second(seed);
    second.run(kInputs);
    ASSERT_EQ(first.transcript() == second.transcript(), true) << "seed " << seed;
    completions += first.completions();
    successes += first.successes();
  }
  RecordProperty("completions", std::to_string(completions));
  RecordProperty("successes", std::to_string(successes));
  // Random programs would test little if they only caused errors.
  EXPECT_GT(completions, kSeeds * kInputs / 10);
  EXPECT_GT(successes, completions / 10);
}

/// A capture must not change what programs see. Without it, most of these messages travel without
/// frames (link/short_requests.h).
TEST(RandomPrograms, GiveTheSameOutputsWithAndWithoutACapture) {
  constexpr uint64_t kMoreSeeds = 60;
  uint64_t completions = 0, successes = 0;
  for (uint64_t seed = 0; seed < kMoreSeeds; ++seed) {
    RandomProgram traced(seed, RandomProgram::Frames::kTraced);
    traced.run(kInputs);
    EXPECT_EQ(traced.broken(), "") << "seed " << seed;
    RandomProgram untraced(seed, RandomProgram::Frames::kUntraced);
    untraced.run(kInputs);
    ASSERT_EQ(traced.transcript() == untraced.transcript(), true) << "seed " << seed;
    ASSERT_EQ(traced.counters(), untraced.counters()) << "seed " << seed;
    completions += untraced.completions();
    successes += untraced.successes();
  }
  EXPECT_GT(completions, kMoreSeeds * kInputs / 10);
  EXPECT_GT(successes, completions / 10);
}

}  // namespace
}  // namespace rocemu::test
