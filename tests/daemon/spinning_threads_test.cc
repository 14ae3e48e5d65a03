// Threads that spin are told from threads that compute.
#include "emulator/os/spinning_threads.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <new>
#include <thread>

#include "tests/daemon/child.h"

namespace rocemu {
namespace {

using namespace std::chrono_literals;

/// How often it was found to spin, of so many looks.
int spins_of(pid_t pid, int looks) {
  SpinningThreads threads;
  int spins = 0;
  for (int i = 0; i < looks; ++i) {
    std::this_thread::sleep_for(2ms);
    spins += threads.spins(pid, pid) ? 1 : 0;
  }
  return spins;
}

TEST(SpinningThreads, AreFound) {
  const Child child([] {
    std::atomic<bool> flag{false};
    while (!flag.load(std::memory_order_relaxed)) {
    }
  });
  SpinningThreads threads;
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (!threads.spins(child.pid(), child.pid())) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(1ms);
  }
}

TEST(SpinningThreads, OneThatHasNotRunSinceMemoryChangedIsLookedAtAgain) {
  const Child child([] {
    std::atomic<bool> flag{false};
    while (!flag.load(std::memory_order_relaxed)) {
    }
  });
  SpinningThreads threads;
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  const auto spins = [&] { return threads.spins(child.pid(), child.pid()); };
  while (!spins()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(1ms);
  }
  std::this_thread::sleep_for(20ms);
  ASSERT_EQ(kill(child.pid(), SIGSTOP), 0);
  ASSERT_EQ(waitpid(child.pid(), nullptr, WUNTRACED), child.pid());
  threads.look_again();
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(spins());
  ASSERT_EQ(kill(child.pid(), SIGCONT), 0);
  while (!spins()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(1ms);
  }
}

TEST(SpinningThreads, OneThatCountsDoesNotSpin) {
  const Child child([] {
    uint64_t count = 0;
    for (;;) {
      asm volatile("" : "+r"(count));
      ++count;
    }
  });
  EXPECT_EQ(spins_of(child.pid(), 50), 0);
}

TEST(SpinningThreads, OneThatMakesTheSameCallAgainAndAgainDoesNotSpin) {
  const Child child([] {
    for (;;) getppid();
  });
  EXPECT_LT(spins_of(child.pid(), 50), 50);
}

TEST(SpinningThreads, OneThatSleepsDoesNotSpin) {
  const Child child([] {
    for (;;) pause();
  });
  EXPECT_EQ(spins_of(child.pid(), 10), 0);
}

TEST(SpinningThreads, OneThatEndsWhileItIsLookedAtIsLeftToItsParent) {
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* const shortlived = new (page) std::atomic<pid_t>(0);
  const pid_t parent = fork();
  if (parent == 0) {
    for (int i = 0; i < 1000; ++i) {
      const pid_t child = fork();
      if (child == 0) _exit(0);
      shortlived->store(child);
      if (waitpid(child, nullptr, 0) != child) _exit(1);
    }
    _exit(0);
  }
  SpinningThreads threads;
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  int status = 0;
  while (waitpid(parent, &status, WNOHANG) == 0) {
    if (const pid_t child = shortlived->exchange(0); child != 0) threads.registers_of(child, child);
    threads.let_go();
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  }
  EXPECT_EQ(status, 0);
  munmap(page, 4096);
}

TEST(SpinningThreads, OneThatIsGoneDoesNotSpin) {
  const pid_t nobody = 0x3ffffff;
  EXPECT_EQ(SpinningThreads().registers_of(nobody, nobody), std::nullopt);
  EXPECT_EQ(spins_of(nobody, 3), 0);
}

}  // namespace
}  // namespace rocemu
