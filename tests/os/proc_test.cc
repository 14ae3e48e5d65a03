#include "emulator/os/proc.h"

#include <gtest/gtest.h>

namespace rocemu::proc {
namespace {

// proc(5), /proc/sys/kernel/pid_max: "the value at which PIDs wrap around".
TEST(NumbersOfProcesses, AreInOrderOfAgeWhereTheyBeginAnew) {
  std::vector<pid_t> numbers = {301, 32766, 302, 32760, 32767};
  sort_by_age(numbers, 32760);
  EXPECT_EQ(numbers, (std::vector<pid_t>{32760, 32766, 32767, 301, 302}));
  sort_by_age(numbers, 300);
  EXPECT_EQ(numbers, (std::vector<pid_t>{301, 302, 32760, 32766, 32767}));
}

}  // namespace
}  // namespace rocemu::proc
