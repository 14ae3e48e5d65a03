// Tests which runs become findings, and which findings count.
#include "emulator/explore/findings/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rocemu::explore {
namespace {

using testing::ElementsAre;

Result result_of(size_t number, Verdict verdict, const std::string& place) {
  Result result;
  result.trial.number = number;
  result.trial.causes = {{"fault " + std::to_string(number), "{on: frame, total: 1, do: drop}"}};
  result.judgement = {verdict, place, "ends in " + place};
  return result;
}

TEST(Findings, AreOneForEachPlace) {
  const std::vector<Finding> findings = group({{1, result_of(1, Verdict::kHang, "a")},
                                               {2, result_of(2, Verdict::kHang, "b")},
                                               {3, result_of(3, Verdict::kHang, "a")}});
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_THAT(findings[0].triggers, ElementsAre(1, 3));
  EXPECT_THAT(findings[1].triggers, ElementsAre(2));
}

TEST(Findings, AreNoneWhereAProgramReportsOrSurvives) {
  EXPECT_TRUE(group({{1, result_of(1, Verdict::kSurvived, "")},
                     {2, result_of(2, Verdict::kReported, "")},
                     {3, result_of(3, Verdict::kNotReached, "")}})
                  .empty());
}

TEST(Findings, BeginWithWhatIsWorst) {
  const std::vector<Finding> findings = group({{1, result_of(1, Verdict::kLeak, "a")},
                                               {2, result_of(2, Verdict::kWrong, "b")},
                                               {3, result_of(3, Verdict::kHang, "c")},
                                               {4, result_of(4, Verdict::kCrash, "d")}});
  std::vector<Verdict> verdicts;
  for (const Finding& finding : findings) verdicts.push_back(finding.verdict);
  EXPECT_THAT(verdicts,
              ElementsAre(Verdict::kCrash, Verdict::kHang, Verdict::kWrong, Verdict::kLeak));
}

TEST(Finding, IsRepeatableUnlessNoRepetitionEndsLikeIt) {
  Finding finding;
  EXPECT_TRUE(finding.is_repeatable());  // no repetition was run
  finding.repetitions = 2;
  EXPECT_FALSE(finding.is_repeatable());
  finding.confirmed = 1;
  EXPECT_TRUE(finding.is_repeatable());
}

}  // namespace
}  // namespace rocemu::explore
