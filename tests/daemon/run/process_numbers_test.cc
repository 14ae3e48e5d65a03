// Tests the numbers by which rules select one of several processes of a program.
#include "emulator/daemon/run/process_numbers.h"

#include <gtest/gtest.h>

namespace rocemu::daemon {
namespace {

TEST(ProcessNumbers, CountTheProcessesOfEachProgramFromOne) {
  ProcessNumbers numbers;
  EXPECT_EQ(numbers.name_of(100, "server").number, 1u);
  EXPECT_EQ(numbers.name_of(90, "client").number, 1u);
  EXPECT_EQ(numbers.name_of(80, "server").number, 2u);
  EXPECT_EQ(numbers.name_of(80, "server").program, "server");
}

TEST(ProcessNumbers, AProcessKeepsItsNumberWhenItComesAgain) {
  ProcessNumbers numbers;
  numbers.name_of(100, "server");
  numbers.name_of(80, "server");
  EXPECT_EQ(numbers.name_of(100, "server").number, 1u);
  EXPECT_EQ(numbers.name_of(70, "server").number, 3u);
}

TEST(ProcessNumbers, AProcessThatExecutesAnotherProgramGetsANumberOfIt) {
  ProcessNumbers numbers;
  numbers.name_of(90, "client");
  numbers.name_of(100, "sh");
  EXPECT_EQ(numbers.name_of(100, "client").number, 2u);
}

}  // namespace
}  // namespace rocemu::daemon
