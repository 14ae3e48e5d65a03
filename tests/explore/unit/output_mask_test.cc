// Tests which part of a program's output is compared with that of the baseline.
#include "emulator/explore/trials/output_mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/explore/trials/durations.h"

namespace rocemu::explore {
namespace {

using testing::HasSubstr;

/// The texts are the last lines of test runners, as the runners' sources print them, with different
/// durations.
TEST(Durations, OfTestRunnersAreNotCompared) {
  const struct {
    const char *one, *other;
  } kLines[] = {
      {"[==========] 3 tests from 1 test suite ran. (12 ms total)",
       "[==========] 3 tests from 1 test suite ran. (60012 ms total)"},
      {"[       OK ] Transfer.Completes (0 ms)", "[       OK ] Transfer.Completes (4294 ms)"},
      {"============================== 1 passed in 0.66s ===============================",
       "============================== 1 passed in 10.66s =============================="},
      {"========================= 1 passed in 61.20s (0:01:01) =========================",
       "========================= 1 passed in 75.20s (0:01:15) ========================="},
      {"1 passed, 1 warning in 0.66s", "1 passed, 1 warning in 4.95s"},
      {"1/2 Test #1: transfer .........................   Passed    0.66 sec",
       "1/2 Test #1: transfer .........................   Passed   10.66 sec"},
      {"Total Test time (real) =   0.67 sec", "Total Test time (real) =  10.67 sec"},
      {"Ran 3 tests in 0.012s", "Ran 3 tests in 4.306s"},
      {"ok  \texample.com/rdma\t0.5s", "ok  \texample.com/rdma\t4.8s"},
      {"--- PASS: TestTransfer (0.00s)", "--- PASS: TestTransfer (4.29s)"},
      {"test result: ok. 3 passed; 0 failed; 0 ignored; finished in 0.66s",
       "test result: ok. 3 passed; 0 failed; 0 ignored; finished in 4.95s"},
      {"Time:        1.234 s, estimated 2 s", "Time:        61 s, estimated 2 s"},
      {"elapsed 1m2.5s", "elapsed 1h1m2.5s"},
      {"took 1 second", "took 2 seconds"},
      {"took 999 ms", "took 1.2 s"},
      {"took 5 \u00b5s", "took 7 \u00b5s"},
      {"took 0,66 s", "took 4,95 s"},
      {"took 1e-05 s", "took 4.3 s"},
      {"[12:34:56.789] done", "[12:35:06.789] done"},
      {"done (3.1 Seconds)", "done (9.1 Seconds)"},
  };
  for (const auto& [one, other] : kLines) {
    EXPECT_EQ(without_durations(one), without_durations(other));
    EXPECT_TRUE(OutputMask({std::string(one) + "\n"}).agrees(std::string(other) + "\n")) << other;
  }
}

TEST(Durations, DoNotHideOtherNumbersOfTheirLine) {
  const struct {
    const char *one, *other;
  } kLines[] = {
      {"Ran 3 tests in 0.012s", "Ran 2 tests in 0.012s"},
      {"[==========] 3 tests from 1 test suite ran. (12 ms total)",
       "[==========] 2 tests from 1 test suite ran. (12 ms total)"},
      {"=== 1 failed, 2 passed in 0.66s ===", "=== 3 passed in 0.66s ==="},
      {"read 4096 bytes in 0.5 s", "read 0 bytes in 0.5 s"},
      {"Passed    0.66 sec", "Failed    0.66 sec"},
      {"ok  \texample.com/rdma\t0.5s", "FAIL\texample.com/rdma\t0.5s"},
  };
  for (const auto& [one, other] : kLines)
    EXPECT_FALSE(OutputMask({std::string(one) + "\n"}).agrees(std::string(other) + "\n")) << other;
}

TEST(Durations, AreNoNumbersOfAnotherUnitAndNoPartsOfWords) {
  for (const char* line :
       {"sum 15", "4096 bytes", "3.2 GB/s", "5 servers", "5 sends", "x12s", "10 m", "5 h",
        "1000 min 3 max 9", "version 1.2.3 s", "00:11:22:33:44:55", "fe80::1:22:33", "0x10s",
        "message 5", "5 MS", "12:34", "10.0.0.1 s", "balance: 1,234,567 s"})
    EXPECT_EQ(without_durations(line), line);
}

TEST(Durations, LeavePaddingOfOtherLinesAlone) {
  EXPECT_EQ(without_durations("a   b ====="), "a   b =====");
}

TEST(OutputMask, ShowsTheFirstLineThatDiffers) {
  const OutputMask mask({"a\nsum 15\nin 3 ms\n"});
  EXPECT_EQ(mask.difference("a\nsum 10\nin 5 ms\n"), "line 2 is 'sum 10' instead of 'sum 15'");
  EXPECT_EQ(mask.difference("a\n"), "line 2 is '(nothing)' instead of 'sum 15'");
}

TEST(OutputMask, MasksNumbersThatDependOnTheLatency) {
  const OutputMask mask({"rate 100\nsum 15\n", "rate 90\nsum 15\n"});
  EXPECT_EQ(mask.masked_lines(), 1u);
  EXPECT_TRUE(mask.agrees("rate 7\nsum 15\n"));
  EXPECT_FALSE(mask.agrees("rate 7\nsum 14\n"));
}

TEST(OutputMask, ComparesNothingIfTheNumberOfLinesDependsOnTime) {
  const OutputMask mask({"a\nb\n", "a\n"});
  EXPECT_TRUE(mask.is_useless());
  EXPECT_TRUE(mask.agrees("c\n"));
}

TEST(OutputMask, DoesNotCompareTheOrderOfLinesOfSeveralWriters) {
  const OutputMask mask({"a\nb\n"}, /*has_several_writers=*/true);
  EXPECT_TRUE(mask.agrees("b\na\n"));
  EXPECT_THAT(mask.difference("b\nc\n"), HasSubstr("'c' instead of 'a'"));
}

}  // namespace
}  // namespace rocemu::explore
