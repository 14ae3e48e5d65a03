#include "emulator/explore/trials/durations.h"

#include <gtest/gtest.h>

namespace rocemu::explore {
namespace {

TEST(Durations, ReplacesNumbersWithAUnitOfTime) {
  EXPECT_EQ(without_durations("Ran 3 tests in 0.012s"), "Ran 3 tests in <time>");
  EXPECT_EQ(without_durations("took 12 ms, then 3.5 Seconds"), "took <time>, then <time>");
  EXPECT_EQ(without_durations("1e-05 usec per message"), "<time> per message");
  EXPECT_EQ(without_durations("0,66s"), "<time>");
}

TEST(Durations, ReplacesTimesOfDayAndCompoundDurations) {
  EXPECT_EQ(without_durations("12:34:56.789 ready"), "<time> ready");
  EXPECT_EQ(without_durations("done in 1h2m3.5s"), "done in <time>");
}

TEST(Durations, KeepsOtherNumbers) {
  for (const char* line : {"3 tests", "version 1.2.3s", "1000 min 3 max 9", "12:34", "5 m wide",
                           "port 18515", "00:11:22:33:44:55", "x86s", "12 MS", "1 stone"}) {
    EXPECT_EQ(without_durations(line), line);
  }
}

TEST(Durations, ReducesThePaddingOfLinesWithADuration) {
  EXPECT_EQ(without_durations("===== 2 passed in 0.03s ====="), "= 2 passed in <time> =");
  EXPECT_EQ(without_durations("send    1.5 us"), "send <time>");
  EXPECT_EQ(without_durations("=====    5"), "=====    5") << "no duration, so no padding for one";
}

}  // namespace
}  // namespace rocemu::explore
