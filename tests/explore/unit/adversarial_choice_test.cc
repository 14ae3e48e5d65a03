// Tests how the adversary's actions are reduced to those that a failure needs.
#include "emulator/explore/trials/adversarial_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "emulator/explore/trials/variation.h"

namespace rocemu::explore {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(AdversarialChoices, AreReadFromTheLinesOfTheirClass) {
  const std::string lines =
      "placement 1 a WRITE is late\norder 1 an event is late\nplacement 12 a SEND\n"
      "placement\nplacement x y\n\nplacement 7";
  EXPECT_THAT(choices_of(lines, "placement"), ElementsAre(AdversarialChoice{1, "a WRITE is late"},
                                                          AdversarialChoice{12, "a SEND"}));
  EXPECT_THAT(choices_of(lines, "atomicity"), ElementsAre());
}

TEST(AdversarialChoices, AreNumbersInTheOptionsArgument) {
  EXPECT_EQ(adversarial_with("placement", {{3, ""}, {17, ""}}), "placement:3:17");
  EXPECT_EQ(adversarial_with("undefined", {}), "undefined");
}

/// A program in which `count` choices can be made, and which fails if all of the `needed` choices
/// are made.
class FailingProgram {
 public:
  FailingProgram(uint64_t count, std::set<uint64_t> needed)
      : count_(count), needed_(std::move(needed)) {}

  AdversarialRun run(const std::string& argument) {
    ++runs;
    std::set<uint64_t> allowed;
    std::istringstream words(argument);
    std::string word;
    for (std::getline(words, word, ':'); std::getline(words, word, ':');)
      allowed.insert(std::stoull(word));
    AdversarialRun made;
    for (uint64_t i = 1; i <= count_; ++i)
      if (allowed.empty() || allowed.contains(i)) made.choices.push_back({i, "choice"});
    made.is_again = std::ranges::all_of(needed_, [&](uint64_t one) {
      return std::ranges::find(made.choices, one, &AdversarialChoice::number) != made.choices.end();
    });
    return made;
  }
  ShrunkChoices shrunk(size_t most_runs = 100) {
    return shrink_choices(
        "placement", [this](const std::string& argument) { return run(argument); }, most_runs);
  }
  size_t runs = 0;

 private:
  uint64_t count_;
  std::set<uint64_t> needed_;
};

TEST(ShrinkChoices, LeavesTheOneThatIsNeeded) {
  for (const uint64_t needed : {1u, 2u, 50u, 99u, 100u})
    EXPECT_EQ(FailingProgram(100, {needed}).shrunk().argument,
              "placement:" + std::to_string(needed));
}

TEST(ShrinkChoices, LeavesThoseThatAreNeededTogether) {
  EXPECT_EQ(FailingProgram(40, {3, 31}).shrunk().argument, "placement:3:31");
  EXPECT_EQ(FailingProgram(3, {1, 2, 3}).shrunk().argument, "placement:1:2:3");
}

TEST(ShrinkChoices, WithoutChoicesReturnsTheClass) {
  const ShrunkChoices shrunk = FailingProgram(0, {}).shrunk();
  EXPECT_EQ(shrunk.argument, "placement");
  EXPECT_THAT(shrunk.text, HasSubstr("class placement"));
}

TEST(ShrinkChoices, FindsNothingIfTheRunDoesNotFailAgain) {
  EXPECT_EQ(FailingProgram(10, {11}).shrunk().argument, "");
}

TEST(ShrinkChoices, IsBounded) {
  FailingProgram program(1000, {1, 250, 500, 750, 1000});
  EXPECT_THAT(program.shrunk(20).argument, HasSubstr("placement:1"));
  EXPECT_LE(program.runs, 22u);  // 20, and the two runs that show that the program fails
}

TEST(Variation, ReplacesTheSeedOfTheOtherRuns) {
  Variation variation;
  EXPECT_THAT(variation.added_to({"--seed", "4"}), ElementsAre("--seed", "4"));
  variation.schedule = "9";
  EXPECT_THAT(variation.added_to({"--seed", "4"}), ElementsAre("--seed", "4", "--schedule", "9"));
  variation = {};
  variation.adversarial = "order:2";
  variation.seed = 5;
  EXPECT_THAT(variation.added_to({"--seed", "4", "--same-keys"}),
              ElementsAre("--same-keys", "--adversarial=order:2", "--seed", "5"));
  EXPECT_EQ(variation.adversarial_class(), "order");
}

}  // namespace
}  // namespace rocemu::explore
