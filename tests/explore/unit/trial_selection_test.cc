#include "emulator/explore/trials/trial_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rocemu::explore {
namespace {

using testing::ElementsAre;

Trial trial(const std::string& kind, const std::string& name, const std::string& process) {
  Trial one;
  one.kind = kind;
  one.name = name;
  one.process = process;
  one.causes = {{kind + " " + name, "{on: " + kind + "}"}};
  return one;
}

std::vector<Trial> numbered(size_t count) {
  std::vector<Trial> trials;
  for (size_t i = 1; i <= count; ++i) {
    trials.push_back(trial("verb", std::to_string(i), "a#1"));
    trials.back().number = i;
  }
  return trials;
}

Options only(const std::vector<std::string>& only) {
  Options options;
  options.only = only;
  return options;
}

Options processes(const std::vector<std::string>& processes) {
  Options options;
  options.processes = processes;
  return options;
}

Options shard(size_t shard, size_t shards) {
  Options options;
  options.shard = shard;
  options.shards = shards;
  return options;
}

Options mixtures(size_t count) {
  Options options;
  options.random = count;
  options.seed = 7;
  return options;
}

std::vector<size_t> numbers(const std::vector<Trial>& trials) {
  std::vector<size_t> all;
  for (const Trial& one : trials) all.push_back(one.number);
  return all;
}

TEST(TrialSelection, WantsEverythingWithoutOptions) {
  EXPECT_TRUE(is_wanted({}, trial("verb", "reg_mr", "server#1")));
}

TEST(TrialSelection, TakesTheKindInSingularAndPluralAndTheNameBehindAColon) {
  const Trial one = trial("verb", "reg_mr", "server#1");
  for (const char* name : {"verb", "verbs", "verb:reg_mr", "verbs:reg_mr"}) {
    EXPECT_TRUE(is_wanted(only({name}), one)) << name;
  }
  for (const char* name : {"frames", "verbs:dereg_mr", "verbs:", "ver"}) {
    EXPECT_FALSE(is_wanted(only({name}), one)) << name;
  }
  EXPECT_TRUE(is_wanted(only({"frames", "verbs"}), one)) << "one of them is enough";
}

TEST(TrialSelection, TakesAProcessByItsNameOrWithItsNumber) {
  const Trial one = trial("verb", "reg_mr", "server#2");
  EXPECT_TRUE(is_wanted(processes({"server"}), one));
  EXPECT_TRUE(is_wanted(processes({"server#2"}), one));
  EXPECT_FALSE(is_wanted(processes({"server#1"}), one));
  EXPECT_FALSE(is_wanted(processes({"serve"}), one));
}

// proc(5): comm has at most 15 characters (TASK_COMM_LEN is 16 with the zero at the end).
TEST(TrialSelection, ComparesLongProcessNamesAsTheKernelKeepsThem) {
  EXPECT_TRUE(
      is_wanted(processes({"a_very_long_program"}), trial("verb", "x", "a_very_long_pro#1")));
}

TEST(TrialSelection, GivesEachTrialToExactlyOneShard) {
  const std::vector<Trial> all = numbered(7);
  EXPECT_THAT(numbers(of_shard(all, shard(1, 3))), ElementsAre(1, 4, 7));
  EXPECT_THAT(numbers(of_shard(all, shard(2, 3))), ElementsAre(2, 5));
  EXPECT_THAT(numbers(of_shard(all, shard(3, 3))), ElementsAre(3, 6));
  EXPECT_THAT(numbers(of_shard(all, {})), ElementsAre(1, 2, 3, 4, 5, 6, 7));
}

TEST(TrialSelection, NumbersSchedulesBehindTheFaultsFromTheSeed) {
  std::vector<Trial> trials = numbered(2);
  Options options;
  options.schedules = 2;
  options.seed = 10;
  add_schedules(trials, options);
  ASSERT_EQ(trials.size(), 4u);
  EXPECT_THAT(numbers(trials), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(trials[2].variation.schedule, "11");
  EXPECT_EQ(trials[3].variation.schedule, "12");
  EXPECT_EQ(trials[3].kind, "schedule");
}

TEST(TrialSelection, TriesEachClassOfAdversaryWithEachSeed) {
  std::vector<Trial> trials = numbered(2);
  Options options;
  options.adversarial = 2;
  options.adversarial_classes = {"placement", "order"};
  options.seed = 7;
  add_adversaries(trials, options);
  EXPECT_THAT(numbers(trials), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(trials[2].variation.adversarial, "placement");
  EXPECT_EQ(trials[3].variation.adversarial, "order");
  EXPECT_EQ(trials[3].variation.seed, 7u);
  EXPECT_EQ(trials[5].variation.seed, 8u);
}

TEST(TrialSelection, MixesTwoToFourFaultsTheSameForTheSameSeed) {
  std::vector<Trial> first = numbered(9), second = numbered(9);
  add_mixtures(first, mixtures(20));
  add_mixtures(second, mixtures(20));
  ASSERT_EQ(first.size(), 29u);
  for (size_t i = 9; i < first.size(); ++i) {
    EXPECT_EQ(first[i].number, i + 1);
    EXPECT_EQ(first[i].kind, "mixture");
    EXPECT_GE(first[i].causes.size(), 2u);
    EXPECT_LE(first[i].causes.size(), 4u);
    EXPECT_EQ(first[i].text(), second[i].text());
  }
}

TEST(TrialSelection, MixesNothingOfAnEmptyPlan) {
  std::vector<Trial> none;
  add_mixtures(none, mixtures(5));
  EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace rocemu::explore
