// Tests which rules --sanitize=... selects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/sanitizer/rules.h"

namespace rocemu::sanitizer {
namespace {

using ::testing::UnorderedElementsAre;

TEST(SelectRules, TakesAllOfTheDefaultWhereNothingIsSaid) {
  Selection expected;
  for (const Rule* rule : rules())
    if (rule->is_default) expected.insert(rule);
  EXPECT_EQ(select_rules("").rules, expected);
}

TEST(SelectRules, TakesOnlyTheRulesThatAreNamed) {
  EXPECT_THAT(select_rules("cq-overrun,refused-limit").rules,
              UnorderedElementsAre(&kCqOverrun, &kRefusedLimit));
}

TEST(SelectRules, LeavesOutOfTheDefaultWhatHasAMinus) {
  const Selection selected = select_rules("-cq-overrun,-refused-limit").rules;
  EXPECT_FALSE(selected.contains(&kCqOverrun));
  EXPECT_FALSE(selected.contains(&kRefusedLimit));
  EXPECT_EQ(selected.size() + 2, select_rules("").rules.size());
}

TEST(SelectRules, LeavesOutOfAllWhatHasAMinus) {
  const Selection selected = select_rules("all,-cq-overrun").rules;
  EXPECT_EQ(selected.size() + 1, rules().size());
  EXPECT_FALSE(selected.contains(&kCqOverrun));
}

TEST(SelectRules, NamesTheFirstWordThatIsNoRule) {
  EXPECT_EQ(select_rules("cq-overrun,overrun,nothing").unknown, "overrun");
  EXPECT_EQ(select_rules("-all").unknown, "all");
  EXPECT_EQ(select_rules("cq-overrun,").unknown, "(empty)");
}

TEST(Rules, EachHasAUniqueNameAndSentences) {
  std::set<std::string_view> names;
  for (const Rule* rule : rules()) {
    EXPECT_TRUE(names.insert(rule->id).second) << rule->id;
    EXPECT_EQ(find_rule(rule->id), rule);
    EXPECT_TRUE(rule->summary.ends_with('.')) << rule->id;
    EXPECT_TRUE(rule->remedy.ends_with('.')) << rule->id;
    EXPECT_FALSE(rule->clause.empty()) << rule->id;
  }
}

}  // namespace
}  // namespace rocemu::sanitizer
