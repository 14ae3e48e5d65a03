// Tests which verdict follows from a run.
#include "emulator/explore/trials/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/explore/baseline_runs.h"
#include "tests/explore/unit/facts.h"

namespace rocemu::explore {
namespace {

using testing::HasSubstr;

const Baseline kBaseline = baseline_that_prints("sum 15\n");

Judgment judged(const RunFacts& facts, const Baseline& baseline = kBaseline) {
  return judge(facts, baseline, {});
}

TEST(Verdict, IsSurvivedWhenOutputAndStatusAreTheBaselines) {
  EXPECT_EQ(judged(run_that_prints("sum 15\n")).verdict, Verdict::kSurvived);
}

TEST(Verdict, IsWrongWhenTheOutputDiffersAndAllProgramsSucceed) {
  EXPECT_EQ(judged(run_that_prints("sum 10\n")).verdict, Verdict::kWrong);
}

TEST(Verdict, IsReportedWhenTheCommandExitsWithAnotherStatus) {
  RunFacts facts = run_that_prints("");
  facts.status = 1;
  facts.errors = "client: transport retry counter exceeded\n";
  const Judgment judgment = judged(facts);
  EXPECT_EQ(judgment.verdict, Verdict::kReported);
  EXPECT_EQ(judgment.detail, "exits with 1: client: transport retry counter exceeded");
}

TEST(Verdict, IsWrongWhenAProgramFailsWithoutAFault) {
  RunFacts facts = run_that_prints("");
  facts.without_fault = true;
  facts.status = 3;
  facts.errors = "slot 7 is used twice\n";
  const Judgment judgment = judged(facts);
  EXPECT_EQ(judgment.verdict, Verdict::kWrong);
  EXPECT_EQ(judgment.detail, "exits with 3: slot 7 is used twice");

  RunFacts same = facts;
  same.errors = "slot 35 is used twice\n";
  EXPECT_EQ(judged(same).signature, judged(facts).signature);
  same.status = 4;
  EXPECT_NE(judged(same).signature, judged(facts).signature);
}

TEST(Verdict, IsSurvivedWithoutAFaultToo) {
  RunFacts facts = run_that_prints("sum 15\n");
  facts.without_fault = true;
  EXPECT_EQ(judged(facts).verdict, Verdict::kSurvived);
}

// POSIX: without operands, wait waits for all children and exits with 0.
TEST(Verdict, IsReportedWhenAProgramBehindAShellExitsWithAnotherStatus) {
  RunFacts facts = run_that_prints("");
  facts.statuses = {{"server#1", {1}}};
  const Judgment judgment = judged(facts);
  EXPECT_EQ(judgment.verdict, Verdict::kReported);
  EXPECT_THAT(judgment.detail, HasSubstr("server#1 exits with 1"));
}

TEST(Verdict, IsReportedWhenOutputAndStatusOfAProgramDiffer) {
  RunFacts facts = run_that_prints("sum 10\n");
  facts.statuses = {{"client#1", {1}}};
  EXPECT_EQ(judged(facts).verdict, Verdict::kReported);
}

TEST(Verdict, NamesEachProgramThatReports) {
  RunFacts facts = run_that_prints("");
  facts.statuses = {{"client#1", {1}}, {"server#1", {2}}};
  EXPECT_THAT(judged(facts).detail, HasSubstr("client#1 exits with 1, server#1 exits with 2"));
}

TEST(Verdict, IsWrongWhenAProgramExitsWithTheStatusOfTheBaseline) {
  RunFacts usual;
  usual.statuses = {{"grep", {1}}};
  RunFacts facts = run_that_prints("sum 10\n");
  facts.statuses = {{"grep", {1}}};
  EXPECT_EQ(judged(facts, baseline_that_prints("sum 15\n", usual)).verdict, Verdict::kWrong);
}

TEST(Verdict, IsWrongWhenAProgramExitsWithAStatusThatSomeRunOfTheBaselineHas) {
  RunFacts later = run_that_prints("sum 15\n");
  later.statuses = {{"server#1", {1}}};
  RunFacts facts = run_that_prints("sum 10\n");
  facts.statuses = {{"server#1", {1}}};
  EXPECT_EQ(judged(facts, make_baseline({run_that_prints("sum 15\n"), later})).verdict,
            Verdict::kWrong);
}

TEST(Verdict, IsReportedWhenAProgramExitsWithAnotherStatusThanTheOneOfTheBaseline) {
  RunFacts usual;
  usual.statuses = {{"server#1", {3}}};
  RunFacts facts = run_that_prints("sum 10\n");
  facts.statuses = {{"server#1", {1}}};
  EXPECT_EQ(judged(facts, baseline_that_prints("sum 15\n", usual)).verdict, Verdict::kReported);
}

TEST(Verdict, IsWrongWhenAProgramThatFailsInTheBaselineSucceedsWithAnotherOutput) {
  RunFacts usual;
  usual.statuses = {{"server#1", {3}}};
  EXPECT_EQ(judged(run_that_prints("sum 10\n"), baseline_that_prints("sum 15\n", usual)).verdict,
            Verdict::kWrong);
}

// A parent that kills its server at the end does so even without a fault, so the signal does not
// report the fault.
TEST(Verdict, DoesNotTakeASignalForAReport) {
  RunFacts facts = run_that_prints("sum 10\n");
  facts.failed = {"server#1"};  // ended by SIGTERM, so it has no exit status
  EXPECT_EQ(judged(facts).verdict, Verdict::kWrong);
}

TEST(Verdict, IsACrashEvenIfAnotherProgramReports) {
  RunFacts facts = run_that_prints("");
  facts.statuses = {{"client#1", {1}}};
  facts.crashes = {"server#1 received SIGSEGV"};
  EXPECT_EQ(judged(facts).verdict, Verdict::kCrash);
}

TEST(Verdict, IsAHangEvenIfAnotherProgramReports) {
  RunFacts facts = run_that_prints("");
  facts.statuses = {{"client#1", {1}}};
  facts.deadlock = true;
  facts.waits = {"server#1 waits in ibv_get_cq_event: completion channel of CQ 1, armed"};
  EXPECT_EQ(judged(facts).verdict, Verdict::kHang);
}

TEST(Verdict, IsNotReachedWhenTheFaultDidNotActAndAProgramFailed) {
  RunFacts facts = run_that_prints("");
  facts.fired = false;
  facts.statuses = {{"client#1", {1}}};
  EXPECT_EQ(judged(facts).verdict, Verdict::kNotReached);
}

TEST(Verdict, HasNoLeakOfAProgramThatReports) {
  RunFacts facts = run_that_prints("sum 15\n");
  facts.failed = {"client#1"};
  facts.statuses = {{"client#1", {1}}};
  facts.left = {{"client#1 MR", 1}};
  EXPECT_EQ(judged(facts).verdict, Verdict::kReported);
}

}  // namespace
}  // namespace rocemu::explore
