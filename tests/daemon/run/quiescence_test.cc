// Tests when Quiescence considers all threads of a group of processes asleep.
#include "emulator/daemon/run/quiescence.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/os/child.h"

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;

/// Waits until the process is quiet, for at most a minute, which is more than any machine needs.
bool becomes_quiet(Quiescence& quiescence, pid_t pid) {
  const auto deadline = std::chrono::steady_clock::now() + 1min;
  while (!quiescence.is_quiet({pid})) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(100us);
  }
  return true;
}

TEST(Quiescence, IncludesAThreadThatSleeps) {
  const Child child([] { pause(); });
  Quiescence quiescence(std::nullopt);
  EXPECT_TRUE(becomes_quiet(quiescence, child.pid()));
  EXPECT_FALSE(quiescence.anyone_runs());
}

TEST(Quiescence, ExcludesAThreadThatComputes) {
  const Child child([] {
    for (std::atomic<int> i = 0;; ++i) {
    }
  });
  Quiescence quiescence(std::nullopt);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(quiescence.is_quiet({child.pid()}));
  EXPECT_TRUE(quiescence.anyone_runs());
}

// While waitpid(2) inspects the children, the thread's state is that of a sleeping thread, although
// it does not sleep.
TEST(Quiescence, ExcludesAThreadThatHasTheStateOfASleepingOneForAMoment) {
  const Child child([] {
    const pid_t parent = getpid();
    for (int i = 0; i < 200; ++i) {
      if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(0);  // the parent has ended already
        while (true) pause();
      }
    }
    while (true) waitpid(-1, nullptr, WNOHANG);
  });
  Quiescence quiescence(std::nullopt);
  for (int i = 0; i < 200; ++i) ASSERT_FALSE(quiescence.is_quiet({child.pid()})) << "look " << i;
}

// The process has just ended, so its parent will be woken soon, which is not visible yet.
TEST(Quiescence, ExcludesAProcessThatHasJustEnded) {
  const Child child([] {});
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT), 0);
  Quiescence quiescence(std::nullopt);
  EXPECT_FALSE(quiescence.is_quiet({child.pid()}));
  EXPECT_TRUE(becomes_quiet(quiescence, child.pid())) << "but it does not run for ever";
}

}  // namespace
}  // namespace rocemu::daemon
