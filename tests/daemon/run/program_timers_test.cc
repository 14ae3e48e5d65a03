// Tests timers of programs in virtual time.
#include "emulator/daemon/run/program_timers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ctime>
#include <optional>

#include "emulator/abi/turn_table.h"

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;
using engine::Instant;

class ProgramTimersTest : public testing::Test {
 protected:
  uint64_t expirations() const {
    uint64_t count = 0;
    return read(fd_.get(), &count, sizeof count) == sizeof count ? count : 0;
  }
  uint32_t make() { return timers_.make(getpid(), {.fd = UniqueFd(dup(fd_.get()))}); }

  const UniqueFd fd_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  ProgramTimers timers_;
};

TEST_F(ProgramTimersTest, AddTheNumberOfExpirationsToTheDescriptor) {
  const uint32_t timer = make();
  ASSERT_NE(timer, 0u);
  EXPECT_EQ(timers_.next_deadline(), std::nullopt);
  timers_.set(getpid(), timer, 1000, 100);
  EXPECT_EQ(timers_.next_deadline(), Instant(1000ns));
  EXPECT_FALSE(timers_.expire(Instant(999ns)));
  EXPECT_TRUE(timers_.expire(Instant(1000ns)));
  EXPECT_EQ(expirations(), 1u);
  EXPECT_EQ(timers_.next_deadline(), Instant(1100ns));
  EXPECT_TRUE(timers_.expire(Instant(1350ns)));  // 1100, 1200, 1300
  EXPECT_EQ(expirations(), 3u);
  EXPECT_EQ(timers_.next_deadline(), Instant(1400ns));
}

TEST_F(ProgramTimersTest, ExpireOnceWithoutAnInterval) {
  timers_.set(getpid(), make(), 5, 0);
  EXPECT_TRUE(timers_.expire(Instant(5ns)));
  EXPECT_FALSE(timers_.expire(Instant(1h)));
  EXPECT_EQ(timers_.next_deadline(), std::nullopt);
}

TEST_F(ProgramTimersTest, AreGoneWithTheirProcess) {
  timers_.set(getpid(), make(), 5, 0);
  timers_.remove_all(getpid());
  EXPECT_EQ(timers_.next_deadline(), std::nullopt);
}

TEST_F(ProgramTimersTest, SendASignalWithItsValue) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGRTMIN + 3);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const uint32_t timer =
      timers_.make(getpid(), {.fd = {}, .signal = SIGRTMIN + 3, .tid = gettid(), .value = 42});
  timers_.set(getpid(), timer, 5, 0);
  EXPECT_TRUE(timers_.expire(Instant(5ns)));
  siginfo_t info{};
  const timespec now{};
  EXPECT_EQ(sigtimedwait(&signals, &info, &now), SIGRTMIN + 3);
  EXPECT_EQ(info.si_code, SI_TIMER);
  EXPECT_EQ(info.si_value.sival_int, 42);
}

TEST_F(ProgramTimersTest, RefuseWhatCannotBeWrittenToWithoutWaiting) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  EXPECT_EQ(timers_.make(getpid(), {.fd = UniqueFd(ends[1])}), 0u);
  EXPECT_EQ(timers_.make(getpid(), {.fd = {}, .signal = 1000}), 0u);
}

TEST_F(ProgramTimersTest, DoNotWaitForADescriptorThatIsFull) {
  const uint64_t nearly_full = UINT64_MAX - 1;
  ASSERT_EQ(write(fd_.get(), &nearly_full, sizeof nearly_full), ssize_t{sizeof nearly_full});
  timers_.set(getpid(), make(), 5, 0);
  EXPECT_TRUE(timers_.expire(Instant(5ns)));  // the call returns immediately
}

TEST_F(ProgramTimersTest, OfAProcessAreLimited) {
  for (size_t i = 0; i < ProgramTimers::kMaxOfProcess; ++i) {
    ASSERT_NE(timers_.make(getpid(), {.fd = {}, .signal = SIGRTMIN}), 0u);
  }
  EXPECT_EQ(timers_.make(getpid(), {.fd = {}, .signal = SIGRTMIN}), 0u);
}

TEST_F(ProgramTimersTest, AWrongNumberOrTimeHasNoEffectOnOthers) {
  timers_.set(getpid(), 77, 5, 0);
  timers_.remove(getpid(), 78);
  EXPECT_EQ(timers_.next_deadline(), std::nullopt);
  const uint32_t timer = make();
  timers_.set(getpid(), timer, -5, -7);
  EXPECT_TRUE(timers_.expire(Instant(0ns)));
  timers_.set(getpid(), timer, 1, INT64_MAX);
  EXPECT_TRUE(timers_.expire(Instant(2ns)));
  EXPECT_EQ(timers_.next_deadline(), std::nullopt);
}

}  // namespace
}  // namespace rocemu::daemon
