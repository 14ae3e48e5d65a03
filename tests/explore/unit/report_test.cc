// Tests the reports of `rocemu explore`, and its exit status.
#include "emulator/explore/findings/exploration_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "emulator/explore/files.h"
#include "emulator/explore/findings/conclusion.h"
#include "emulator/explore/findings/report_page.h"
#include "emulator/os/temporary_directory.h"

namespace rocemu::explore {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

/// Has two faults that were tried, one of which makes the program hang, and one that was not tried.
class Reports : public testing::Test {
 protected:
  Reports() {
    options_.folder = summary_.folder = dir_.path().string();
    summary_.command = {"./server", "a<b"};
    summary_.points = summary_.classes = summary_.trials = 3;
    for (size_t number = 1; number <= 2; ++number) {
      Result& result = results_[number];
      result.trial = trial(number);
      result.judgment = number == 1 ? Judgment{Verdict::kHang, "in main", "server#1 blocks in read"}
                                    : Judgment{Verdict::kSurvived, "", ""};
    }
    findings_ = group(results_);
  }

  static Trial trial(size_t number) {
    Trial trial;
    trial.number = number;
    trial.kind = "verb";
    trial.causes = {{"fault " + std::to_string(number), "{on: verb, do: {errno: ENOMEM}}"}};
    return trial;
  }

  std::string text() const { return report_as_text(summary_, results_, findings_); }
  std::string page() const { return report_as_page(dir_.path(), summary_, results_, findings_); }
  int concluded() {
    testing::internal::CaptureStdout();
    const int status = conclude(options_, summary_, results_, findings_);
    testing::internal::GetCapturedStdout();
    return status;
  }

  TemporaryDirectory dir_;
  Options options_;
  Summary summary_;
  std::map<size_t, Result> results_;
  std::vector<Finding> findings_;
};

TEST_F(Reports, CountAFindingThatCameAgain) {
  findings_[0].repetitions = findings_[0].confirmed = 2;
  EXPECT_THAT(text(),
              testing::StartsWith("finding 1  HANG   server#1 blocks in read after fault 1\n"
                                  "  reproduce: "));
  EXPECT_EQ(concluded(), 1);
}

TEST_F(Reports, SetApartAFindingThatNeverCameAgain) {
  findings_[0].repetitions = 2;
  EXPECT_THAT(text(), HasSubstr("not repeatable 1  HANG   server#1 blocks in read after fault 1\n"
                                "           confirmed by 0 of 2 repetitions\n"));
  EXPECT_THAT(text(), Not(HasSubstr("finding 1")));
  const Json json = report_as_json(summary_, results_, findings_);
  EXPECT_TRUE(json["findings"].empty());
  EXPECT_EQ(json["not_repeatable"].size(), 1u);
  EXPECT_THAT(page(), HasSubstr("<h2>Not repeatable</h2>"));
  EXPECT_EQ(concluded(), 0);
  EXPECT_THAT(contents_of(dir_.path() / "report.xml"), HasSubstr("failures=\"0\""));
  EXPECT_TRUE(Json::parse(contents_of(dir_.path() / "report.sarif"))["runs"][0]["results"].empty());
}

TEST_F(Reports, CountAFindingThatCameAgainOnce) {
  findings_[0].repetitions = 2;
  findings_[0].confirmed = 1;
  EXPECT_THAT(text(), HasSubstr("confirmed by 1 of 2 repetitions"));
  EXPECT_EQ(concluded(), 1);
}

TEST_F(Reports, ListFaultsThatWereNotTriedOrNotRepeated) {
  summary_.stopped = "the time of --budget is over";
  summary_.not_tried = {trial(3)};
  EXPECT_THAT(text(), HasSubstr("           was not repeated\n"));
  EXPECT_THAT(text(), HasSubstr("the time of --budget is over: 1 fault was not tried (verb 1), 1 "
                                "finding was not repeated; --resume continues from here\n"));
  EXPECT_EQ(report_as_json(summary_, results_, findings_)["not_tried"], Json({"fault 3"}));
  EXPECT_THAT(page(), HasSubstr("fault 3"));
  EXPECT_EQ(concluded(), 1);
}

TEST_F(Reports, HaveAWarningThatDoesNotFail) {
  results_[2].misuses = {{.verdict = Verdict::kMisuse,
                          .signature = "refused-limit server",
                          .detail = "warning [refused-limit]: server#1 asked for too much",
                          .is_warning = true}};
  results_.erase(1);
  findings_ = group(results_);
  EXPECT_EQ(concluded(), 0);
  const std::string junit = contents_of(dir_.path() / "report.xml");
  EXPECT_THAT(junit, HasSubstr("tests=\"1\" failures=\"0\""));
  EXPECT_THAT(junit, HasSubstr("<system-out>finding 1: warning [refused-limit]: server#1 asked"));
  const Json sarif = Json::parse(contents_of(dir_.path() / "report.sarif"));
  EXPECT_EQ(sarif["runs"][0]["results"][0]["level"], "warning");
}

TEST_F(Reports, HaveATestOfTheRunWithoutFaultsIfThereIsAFindingInIt) {
  findings_ = group(results_, {{.verdict = Verdict::kMisuse,
                                .signature = "cq-overrun server",
                                .detail = "error [cq-overrun]: server#1 overran CQ 1"}});
  EXPECT_EQ(concluded(), 1);
  EXPECT_THAT(contents_of(dir_.path() / "report.xml"),
              HasSubstr("<testcase classname=\"baseline\" name=\"no fault\">\n      <failure "
                        "type=\"MISUSE\" message=\"error [cq-overrun]: server#1 overran CQ 1\">"));
  EXPECT_THAT(text(),
              HasSubstr("without any fault\n           was not repeated\n  reproduce: rocemu run "
                        "--lockstep -- "));
}

TEST_F(Reports, LinkTheFilesOfAFindingThatExist) {
  fs::create_directory(dir_.path() / "1");
  std::ofstream(dir_.path() / "1" / "scenario.yaml");
  std::ofstream(dir_.path() / "1" / "timeline.html");
  std::ofstream(dir_.path() / "1" / "events.jsonl");
  EXPECT_THAT(page(), HasSubstr("<a href=\"1/scenario.yaml\">scenario</a>"));
  EXPECT_THAT(page(), HasSubstr("<a href=\"1/timeline.html\">timeline</a>"));
  EXPECT_THAT(page(), HasSubstr("<a href=\"1/events.jsonl\">recording</a>"));
  EXPECT_THAT(page(), Not(HasSubstr("1/trace.pcap")));
}

TEST_F(Reports, ArePagesForDarkAndForNarrowScreens) {
  EXPECT_THAT(page(), HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(page(), HasSubstr("name=\"viewport\""));
  EXPECT_THAT(page(), HasSubstr("overflow-wrap:anywhere"));
  EXPECT_THAT(page(), HasSubstr("a&lt;b"));
}

}  // namespace
}  // namespace rocemu::explore
