// Tests which resource limits are reported as too small for a NIC.
#include "emulator/os/process_limits.h"

#include <gtest/gtest.h>

namespace rocemu {
namespace {

constexpr rlimit kNone{RLIM_INFINITY, RLIM_INFINITY};

std::string text_with(rlimit files, rlim_t stack = RLIM_INFINITY, rlim_t size = RLIM_INFINITY) {
  return too_small_limit({files, {stack, RLIM_INFINITY}, {size, RLIM_INFINITY}});
}

TEST(ProcessLimits, AreEnoughWhereADistributionSetsThem) {
  EXPECT_EQ(text_with(kNone), "");
  EXPECT_EQ(text_with({1024, 524288}, 8 << 20), "");
  EXPECT_EQ(text_with({256, RLIM_INFINITY}, 512 << 10), "");  // macOS' and musl's
}

TEST(ProcessLimits, NameTheHardLimitOfDescriptorsWhichTheDaemonGoesUpTo) {
  EXPECT_EQ(text_with({12, 12}),
            "a process may have 12 file descriptors at most (the hard limit), and a NIC needs 64; "
            "raise it: ulimit -Hn 1024");
  EXPECT_EQ(text_with({64, 64}), "");
}

TEST(ProcessLimits, NameTheSoftLimitOfDescriptorsWhichRocemuHas) {
  EXPECT_EQ(text_with({12, 4096}),
            "a process may have 12 file descriptors, and a NIC needs 24; raise it: "
            "ulimit -Sn 1024");
}

TEST(ProcessLimits, AreReportedForStackAndFileSize) {
  EXPECT_EQ(text_with(kNone, 16 << 10),
            "stacks may have 16 KiB, and a NIC needs 32; raise it: ulimit -s 8192");
  EXPECT_EQ(text_with(kNone, RLIM_INFINITY, 0),
            "files may have 0 KiB, and a NIC needs 96; raise it: ulimit -f unlimited");
}

}  // namespace
}  // namespace rocemu
