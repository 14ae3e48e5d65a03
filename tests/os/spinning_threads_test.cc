// Tests that threads that spin are distinguished from threads that compute.
#include "emulator/os/threads/spinning_threads.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <new>
#include <string>
#include <thread>

#include "emulator/os/proc.h"
#include "tests/os/child.h"

namespace rocemu {
namespace {

using namespace std::chrono_literals;

/// Returns whether the thread is found to spin within `looks` checks.
bool is_found(SpinningThreads& threads, pid_t pid, int looks) {
  for (int i = 0; i < looks; ++i) {
    if (threads.hold_if_it_spins(pid, pid)) return true;
    std::this_thread::sleep_for(2ms);
  }
  return false;
}
bool is_found(pid_t pid, int looks) {
  SpinningThreads threads;
  return is_found(threads, pid, looks);
}
/// Enough checks even on the busiest machine.
constexpr int kManyLooks = 30'000;

/// A compiler may remove a loop without effects ([intro.progress] of C++20), so this loop has an
/// empty asm statement.
[[noreturn]] void spin() {
  for (;;) asm volatile("");
}

/// Memory that a child shares with the test.
template <class T>
class Shared {
 public:
  Shared()
      : page_(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (page_ == MAP_FAILED) throw std::bad_alloc();
    value_ = new (page_) T();
  }
  ~Shared() { munmap(page_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T& operator*() const { return *value_; }
  T* operator->() const { return value_; }

 private:
  void* page_;
  T* value_;
};

/// Waits until the condition is true, for a limited time. Returns whether it became true.
bool comes(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

std::chrono::nanoseconds own_time_of(pid_t pid) {
  return std::chrono::nanoseconds(std::stoll(
      proc::contents_of(proc::directory_of(pid) + "/task/" + std::to_string(pid) + "/schedstat")));
}

TEST(SpinningThreads, AreHeldUntilMemoryChanges) {
  const Shared<std::atomic<bool>> flag, seen;
  const Child child([&] {
    while (!flag->load(std::memory_order_relaxed)) {
    }
    seen->store(true);
    pause();
  });
  SpinningThreads threads;
  ASSERT_TRUE(is_found(threads, child.pid(), kManyLooks));
  EXPECT_TRUE(threads.holds(child.pid()));
  const auto before = own_time_of(child.pid());
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(own_time_of(child.pid()), before);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(threads.still_spins(child.pid()));
  EXPECT_FALSE(seen->load());
  flag->store(true);
  EXPECT_FALSE(threads.still_spins(child.pid()));
  EXPECT_FALSE(threads.holds(child.pid()));
  EXPECT_TRUE(comes([&] { return seen->load(); }));
}

TEST(SpinningThreads, ATestAndSetLockIsALoopToo) {
  const Shared<std::atomic<bool>> lock, has_it;
  lock->store(true);
  const Child child([&] {
    while (lock->exchange(true)) {
    }
    has_it->store(true);
    pause();
  });
  SpinningThreads threads;
  ASSERT_TRUE(is_found(threads, child.pid(), kManyLooks));
  lock->store(false);
  EXPECT_FALSE(threads.still_spins(child.pid()));
  EXPECT_TRUE(comes([&] { return has_it->load(); }));
}

TEST(SpinningThreads, ALoopOf150InstructionsIsFound) {
  const Shared<std::array<std::atomic<uint32_t>, 50>> values;
  const Shared<std::atomic<bool>> seen;
  const Child child([&] {
    for (uint32_t sum = 0; sum == 0;) {
      for (const auto& value : *values) sum += value.load(std::memory_order_relaxed);
    }
    seen->store(true);
    pause();
  });
  SpinningThreads threads;
  ASSERT_TRUE(is_found(threads, child.pid(), kManyLooks));
  EXPECT_TRUE(threads.still_spins(child.pid()));
  values->back().store(1);
  EXPECT_FALSE(threads.still_spins(child.pid()));
  EXPECT_TRUE(comes([&] { return seen->load(); }));
}

TEST(SpinningThreads, OneThatIsHeldTakesASignal) {
  static std::atomic<bool>* handled;
  const Shared<std::atomic<bool>> flag, shared_handled;
  handled = &*shared_handled;
  const Child child([&] {
    signal(SIGUSR1, [](int) { handled->store(true); });
    while (!flag->load(std::memory_order_relaxed)) {
    }
  });
  SpinningThreads threads;
  ASSERT_TRUE(is_found(threads, child.pid(), kManyLooks));
  ASSERT_EQ(kill(child.pid(), SIGUSR1), 0);
  EXPECT_FALSE(threads.still_spins(child.pid()));
  EXPECT_TRUE(comes([&] { return shared_handled->load(); }));
  EXPECT_TRUE(is_found(threads, child.pid(), kManyLooks));  // after its handler
}

TEST(SpinningThreads, OneThatIsKilledWhileItIsHeldIsLeftToItsParent) {
  const Shared<std::atomic<pid_t>> spinner;
  const Child parent([&] {
    const pid_t child = fork();
    if (child == 0) spin();
    spinner->store(child);
    while (waitpid(child, nullptr, 0) != child) {
    }
    spinner->store(0);
    pause();
  });
  ASSERT_TRUE(comes([&] { return spinner->load() != 0; }));
  const pid_t pid = spinner->load();
  SpinningThreads threads;
  ASSERT_TRUE(is_found(threads, pid, kManyLooks));
  ASSERT_EQ(kill(pid, SIGKILL), 0);
  EXPECT_TRUE(comes([&] {
    threads.reap();
    return !threads.holds(pid) && spinner->load() == 0;
  }));
}

TEST(SpinningThreads, ContinueWhenTheyAreReleased) {
  const Child child(spin);
  ASSERT_TRUE(is_found(child.pid(), kManyLooks));
  const auto before = own_time_of(child.pid());
  EXPECT_TRUE(comes([&] { return own_time_of(child.pid()) > before + 1ms; }));
}

TEST(SpinningThreads, OneThatCountsDoesNotSpin) {
  const Child child([] {
    uint64_t count = 0;
    for (;;) {
      asm volatile("" : "+r"(count));
      ++count;
    }
  });
  EXPECT_FALSE(is_found(child.pid(), 50));
}

TEST(SpinningThreads, OneThatCountsInMemoryDoesNotSpin) {
  const Child child([] {
    volatile uint64_t count = 0;
    for (;;) count = count + 1;
  });
  EXPECT_FALSE(is_found(child.pid(), 50));
}

TEST(SpinningThreads, OneThatMakesTheSameCallAgainAndAgainDoesNotSpin) {
  const Child child([] {
    for (;;) getppid();
  });
  EXPECT_FALSE(is_found(child.pid(), 50));
}

TEST(SpinningThreads, OneThatSleepsDoesNotSpin) {
  const Child child([] {
    for (;;) pause();
  });
  EXPECT_FALSE(is_found(child.pid(), 10));
}

#if defined(__x86_64__)
/// A child that calls epoll_wait(2), and reports its result.
class WaitingChild {
 public:
  bool is_asleep() const {
    return proc::field_of(proc::contents_of(proc::directory_of(child_.pid()) + "/status"), "State")
        .starts_with("S");
  }
  pid_t pid() const { return child_.pid(); }
  int error() const { return *error_; }

 private:
  static void wait_in(std::atomic<int>& error) {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    sigaction(SIGUSR1, &action, nullptr);
    epoll_event event{};
    if (epoll_wait(epoll_create1(0), &event, 1, -1) < 0) error = errno;
    pause();
  }

  const Shared<std::atomic<int>> error_;
  const Child child_{[this] { wait_in(*error_); }};
};

TEST(SpinningThreads, OneThatIsInspectedInACallDoesNotNotice) {
  const WaitingChild child;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(comes([&] { return child.is_asleep(); }));
    EXPECT_FALSE(is_found(child.pid(), 1));
  }
  ASSERT_TRUE(comes([&] { return child.is_asleep(); }));
  EXPECT_EQ(child.error(), 0);
  ASSERT_EQ(kill(child.pid(), SIGUSR1), 0);
  EXPECT_TRUE(comes([&] { return child.error() == EINTR; }));  // signal(7)
}

TEST(SpinningThreads, OneThatIsInspectedInACallHandlesItsSignals) {
  for (int i = 0; i < 50; ++i) {
    const WaitingChild child;
    ASSERT_TRUE(comes([&] { return child.is_asleep(); }));
    ASSERT_EQ(kill(child.pid(), SIGUSR1), 0);
    is_found(child.pid(), 1);
    EXPECT_TRUE(comes([&] { return child.error() == EINTR; }));
  }
}
#endif

TEST(SpinningThreads, OneThatEndsWhileItIsInspectedIsLeftToItsParent) {
  const Shared<std::atomic<pid_t>> shortlived;
  const pid_t parent = fork();
  if (parent == 0) {
    for (int i = 0; i < 200; ++i) {
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
    if (const pid_t child = shortlived->exchange(0); child != 0)
      threads.hold_if_it_spins(child, child);
    threads.reap();
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  }
  EXPECT_EQ(status, 0);
}

TEST(SpinningThreads, OneThatIsGoneDoesNotSpin) {
  const pid_t nobody = 0x3ffffff;
  EXPECT_FALSE(is_found(nobody, 3));
}

}  // namespace
}  // namespace rocemu
