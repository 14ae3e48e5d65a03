#include "emulator/os/process_title.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emulator/os/proc.h"

namespace rocemu {
namespace {

constexpr int kUnsupported = 2;

/// Runs a child that sets this title, and exits with the result of `check()`. Returns its exit
/// status.
template <class Check>
int with_title(const std::vector<std::string>& arguments, Check check) {
  const pid_t child = fork();
  if (child == 0) _exit(set_process_title(arguments) ? check() : kUnsupported);
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(ProcessTitle, IsWhatProcShowsForAProgramWithTheseArguments) {
  // longer than the process's original arguments and environment
  const std::string long_value(10'000, 'x');
  const std::string before = proc::contents_of("/proc/self/environ");
  const int status = with_title({"/some where/rocemud", "--dir", "", long_value}, [&] {
    using namespace std::string_literals;
    const bool same = proc::name_of(getpid()) == "rocemud" &&
                      proc::contents_of("/proc/self/cmdline") ==
                          "/some where/rocemud\0--dir\0\0"s + long_value + "\0"s &&
                      proc::contents_of("/proc/self/environ") == before;
    return same ? 0 : 1;
  });
  if (status == kUnsupported) GTEST_SKIP() << "this kernel does not let processes change it";
  EXPECT_EQ(status, 0);
}

TEST(ProcessTitle, LeavesTheHeapUsable) {
  const int status = with_title({"title"}, [] {
    std::string large(1 << 20, 'a');
    for (int i = 0; i < 1000; ++i) large += std::string(1000, 'b');
    return large.size() == (1 << 20) + 1'000'000 && sbrk(4096) != reinterpret_cast<void*>(-1) ? 0
                                                                                              : 1;
  });
  if (status == kUnsupported) GTEST_SKIP() << "this kernel does not let processes change it";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace rocemu
