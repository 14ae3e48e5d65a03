// Tests which runs become findings, and which findings count.
#include "emulator/explore/findings/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/explore/baseline_runs.h"
#include "tests/explore/unit/facts.h"

namespace rocemu::explore {
namespace {

using testing::ElementsAre;

Result result_of(size_t number, Verdict verdict, const std::string& place) {
  Result result;
  result.trial.number = number;
  result.trial.causes = {{"fault " + std::to_string(number), "{on: frame, total: 1, do: drop}"}};
  result.judgment = {verdict, place, "ends in " + place};
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

TEST(Findings, BeginWithTheMostSevere) {
  const std::vector<Finding> findings = group({{1, result_of(1, Verdict::kLeak, "a")},
                                               {2, result_of(2, Verdict::kWrong, "b")},
                                               {3, result_of(3, Verdict::kHang, "c")},
                                               {4, result_of(4, Verdict::kCrash, "d")}});
  std::vector<Verdict> verdicts;
  for (const Finding& finding : findings) verdicts.push_back(finding.verdict);
  EXPECT_THAT(verdicts,
              ElementsAre(Verdict::kCrash, Verdict::kHang, Verdict::kWrong, Verdict::kLeak));
}

// ---- Wrong uses of verbs ----

Misuse posted_after_error(const std::string& where, const std::string& before = "poll() a.c:1") {
  return {
      .rule = "posted-after-error",
      .is_error = true,
      .message = "server#1 posted send 2",
      .program = "server",
      .places = {"polled the error by ibv_poll_cq: " + before, "posted by ibv_post_send: " + where},
      .where = where,
      .refused = ""};
}

Misuse refused(const std::string& verb) {
  return {.rule = "destroy-failed",
          .is_error = false,
          .message = "server#1 could not destroy CQ 1",
          .program = "server",
          .places = {"failed by ibv_" + verb + ": main() a.c:9"},
          .where = "main() at a.c:9",
          .refused = verb};
}

Result misused(size_t number, const std::vector<Misuse>& misuses, const std::string& rule = "",
               const Baseline& baseline = baseline_that_prints("")) {
  Trial trial;
  trial.number = number;
  trial.causes = {{"fault " + std::to_string(number), rule}};
  RunFacts facts = run_that_prints("");
  facts.misuses = misuses;
  return judged(trial, facts, baseline, {});
}

TEST(Misuses, AreFindingsOfTheirOwnOneForEachPlace) {
  const std::vector<Finding> findings =
      group({{1, misused(1, {posted_after_error("f() a.c:2"), posted_after_error("g() a.c:3")})},
             {2, misused(2, {posted_after_error("f() a.c:2", "poll() a.c:7")})}});
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_THAT(findings[0].triggers, ElementsAre(1, 2));
  EXPECT_EQ(findings[0].sentence(),
            "error [posted-after-error]: server#1 posted send 2, in f() a.c:2, after fault 1 (1 "
            "other fault leads to it)");
  EXPECT_THAT(findings[1].triggers, ElementsAre(1));
}

TEST(Misuses, AreTheVerdictOfARunThatSurvivesAndNotOfOneThatCrashes) {
  Result result = misused(1, {posted_after_error("f() a.c:2")});
  EXPECT_EQ(result.verdict(), Verdict::kMisuse);
  result.judgment = {Verdict::kCrash, "a", "received SIGSEGV"};
  EXPECT_EQ(result.verdict(), Verdict::kCrash);
  EXPECT_EQ(group({{1, result}}).size(), 2u);
}

TEST(Misuses, OfTheRunWithoutFaultsAreReportedOnceAndOfNoFault) {
  RunFacts usual = run_that_prints("");
  usual.misuses = {posted_after_error("f() a.c:2")};
  const Baseline baseline = make_baseline({usual});
  const Result same = misused(1, usual.misuses, "", baseline);
  EXPECT_EQ(same.verdict(), Verdict::kSurvived);
  const std::vector<Finding> findings = group({{1, same}}, baseline.misuses);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_TRUE(findings[0].triggers.empty());
  EXPECT_EQ(findings[0].sentence(),
            "error [posted-after-error]: server#1 posted send 2, in f() a.c:2, without any fault");
  EXPECT_TRUE(has_again(findings[0], usual, baseline, {}));
  EXPECT_FALSE(has_again(findings[0], run_that_prints(""), baseline, {}));
}

TEST(Misuses, AreNotWhatTheFaultItselfDoes) {
  const std::string busy = R"({on: verb, verb: destroy_cq, nth: 1, do: {errno: EBUSY}})";
  EXPECT_TRUE(misused(1, {refused("destroy_cq")}, busy).misuses.empty());
  EXPECT_EQ(misused(1, {refused("destroy_qp")}, busy).misuses.size(), 1u);
  EXPECT_EQ(misused(1, {refused("destroy_cq")}, "{on: frame, do: drop}").misuses.size(), 1u);
  Misuse overrun = posted_after_error("f() a.c:2");
  overrun.rule = "cq-overrun";
  EXPECT_TRUE(misused(1, {overrun}, "{on: completion, do: overrun}").misuses.empty());
}

TEST(Finding, IsRepeatableUnlessNoRepetitionEndsLikeIt) {
  Finding finding;
  EXPECT_TRUE(finding.is_repeatable());  // no run was repeated
  finding.repetitions = 2;
  EXPECT_FALSE(finding.is_repeatable());
  finding.confirmed = 1;
  EXPECT_TRUE(finding.is_repeatable());
}

}  // namespace
}  // namespace rocemu::explore
