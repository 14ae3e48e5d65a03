// Tests the copies that a program makes for the daemon: they are made in order, exactly once or not
// at all, whatever happens to the program's thread.
#include "emulator/daemon/memory/copy_queue.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <thread>
#include <vector>

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;
using abi::CopyJobs;
using engine::CopyKey;
using engine::CopyProgress;
using engine::RemoteRange;

constexpr engine::ClientId kClient{1}, kPeer{2};
constexpr size_t kSize = 100'000;

/// A program that copies, as verbs_provider/polling/copy_job.cc does, but in steps.
class Program {
 public:
  explicit Program(CopyJobs& jobs) : jobs_(jobs) {}

  bool take() {
    uint64_t seen = jobs_.state.load();
    while (true) {
      state_ = CopyJobs::unpack(seen);
      if (!state_.is_any_to_take()) return false;
      ++state_.taken;
      if (jobs_.state.compare_exchange_weak(seen, CopyJobs::pack(state_))) return true;
    }
  }
  void announce() { job().thread = static_cast<uint32_t>(syscall(SYS_gettid)); }
  bool copy() {
    const CopyJobs::Job& one = job();
    const auto call = one.is_read != 0 ? SYS_process_vm_readv : SYS_process_vm_writev;
    return syscall(call, one.pid, one.here, one.count_here, one.there, one.count_there, 0) ==
           static_cast<long>(one.length);
  }
  void finish(bool succeeded) {
    uint64_t seen = jobs_.state.load();
    while (true) {
      CopyJobs::State now = CopyJobs::unpack(seen);
      if (now.epoch != state_.epoch) {
        ++jobs_.returned;
        return;
      }
      ++now.finished;
      if (!succeeded) now.epoch |= 1;
      if (jobs_.state.compare_exchange_weak(seen, CopyJobs::pack(now))) return;
    }
  }
  bool make() {
    if (!take()) return false;
    announce();
    finish(copy());
    return true;
  }

 private:
  CopyJobs::Job& job() {
    return jobs_.jobs[static_cast<uint16_t>(state_.taken - 1) % CopyJobs::kCount];
  }

  CopyJobs& jobs_;
  CopyJobs::State state_{};
};

/// The client and its peer are this process, so that the test sees their memory.
class CopyQueueTest : public testing::Test {
 protected:
  CopyQueueTest() {
    void* memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared = new (memory) Shared{};
    shared->ring.takes_payload = 1;
    for (size_t i = 0; i < kSize; ++i) shared->source[i] = static_cast<uint8_t>(i * 7 + i / 256);
    shared->jobs.address = reinterpret_cast<uint64_t>(&shared->jobs);
    shared->peer_jobs.address = reinterpret_cast<uint64_t>(&shared->peer_jobs);
    peer.emplace(shared->peer_jobs, shared->ring, getpid());
    use(getpid());
  }
  ~CopyQueueTest() override {
    if (child > 0) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    munmap(shared, sizeof(Shared));
  }

  void use(pid_t pid) {
    shared->jobs.returned = 0;
    queue.emplace(shared->jobs, shared->ring, pid);
  }
  /// Asks for a copy of `length` bytes from `offset`.
  bool begin(uint32_t psn, size_t offset, size_t length, bool is_read = false) {
    const RemoteRange source[] = {{reinterpret_cast<uint64_t>(shared->source) + offset, length}};
    const RemoteRange target[] = {{reinterpret_cast<uint64_t>(shared->target) + offset, length}};
    return queue->begin({.key = key(psn),
                         .maker = kClient,
                         .from = is_read ? kPeer : kClient,
                         .source = source,
                         .to = is_read ? kClient : kPeer,
                         .target = target},
                        *peer);
  }
  static CopyKey key(uint32_t psn) { return {engine::QpNumber{5}, psn}; }
  bool update(std::chrono::nanoseconds after = 0ns) {
    now += after;
    return queue->update(now);
  }
  CopyProgress progress(uint32_t psn) { return queue->progress(key(psn)); }
  bool is_copied(size_t offset, size_t length) const {
    return std::equal(shared->source + offset, shared->source + offset + length,
                      shared->target + offset);
  }
  bool is_untouched() const {
    return std::all_of(shared->target, shared->target + kSize, [](uint8_t b) { return b == 0; });
  }

  struct Shared {
    CopyJobs jobs{}, peer_jobs{};
    abi::DoorbellRing ring{};
    std::atomic<uint32_t> step{0};
    uint8_t source[kSize] = {}, target[kSize] = {};
  };
  Shared* shared;
  std::optional<CopyQueue> queue, peer;
  engine::Instant now{};
  pid_t child = 0;
};

TEST_F(CopyQueueTest, AProgramMakesItsCopiesInOrder) {
  Program program(shared->jobs);
  ASSERT_TRUE(begin(1, 0, 1000));
  ASSERT_TRUE(begin(2, 1000, 1000, /*is_read=*/true));
  ASSERT_TRUE(program.make());
  EXPECT_EQ(progress(1), CopyProgress::kUnderWay) << "before update()";
  EXPECT_TRUE(update());
  EXPECT_EQ(progress(1), CopyProgress::kDone);
  EXPECT_EQ(progress(2), CopyProgress::kUnderWay);
  EXPECT_TRUE(is_copied(0, 1000));
  EXPECT_FALSE(is_copied(1000, 1000));
  ASSERT_TRUE(program.make());
  EXPECT_TRUE(update());
  EXPECT_FALSE(update()) << "nothing is new";
  EXPECT_EQ(progress(2), CopyProgress::kDone);
  EXPECT_TRUE(is_copied(1000, 1000));
  EXPECT_FALSE(program.make());
  for (const uint32_t psn : {1u, 2u}) queue->forget(key(psn));
  EXPECT_TRUE(queue->empty());
}

TEST_F(CopyQueueTest, OneThreadCopiesAtATime) {
  Program one(shared->jobs), other(shared->jobs);
  ASSERT_TRUE(begin(1, 0, 10) && begin(2, 10, 10));
  ASSERT_TRUE(one.take());
  EXPECT_FALSE(other.take());
  one.finish(one.copy());
  EXPECT_TRUE(other.take());
}

TEST_F(CopyQueueTest, AfterAFailureTheLaterOnesAreNotMade) {
  Program program(shared->jobs);
  ASSERT_TRUE(begin(1, 0, 10) && begin(2, 10, 10) && begin(3, 20, 10));
  ASSERT_TRUE(program.take());
  program.finish(false);
  EXPECT_FALSE(program.make());
  EXPECT_FALSE(begin(4, 30, 10)) << "it would be made after one that failed";
  EXPECT_TRUE(update());
  for (const uint32_t psn : {1u, 2u, 3u}) EXPECT_EQ(progress(psn), CopyProgress::kFailed);
  EXPECT_FALSE(program.make());
  EXPECT_TRUE(is_untouched());
  ASSERT_TRUE(begin(4, 30, 10));
  EXPECT_TRUE(program.make());
}

TEST_F(CopyQueueTest, AProgramThatDoesNotPollIsAskedLessOften) {
  uint32_t calls = 0;
  for (const uint32_t passed_over : {0u, 32u, 64u, 128u, 256u, 512u, 1024u, 1024u}) {
    uint32_t refusals = 0;
    while (!queue->may_begin()) ++refusals;
    EXPECT_EQ(refusals, passed_over);
    ASSERT_TRUE(begin(++calls, 0, 10));
    EXPECT_FALSE(update());
    EXPECT_FALSE(update(49us));
    EXPECT_TRUE(update(1us));
    EXPECT_EQ(progress(calls), CopyProgress::kFailed);
    queue->forget(key(calls));
  }
  while (!queue->may_begin()) continue;
  ASSERT_TRUE(begin(++calls, 0, 10));
  Program(shared->jobs).make();
  EXPECT_TRUE(update());
  EXPECT_TRUE(queue->may_begin()) << "it polls again";
}

TEST_F(CopyQueueTest, AProgramUnderValgrindIsNotAsked) {
  shared->ring.takes_payload = 0;
  EXPECT_FALSE(queue->may_begin());
}

TEST_F(CopyQueueTest, TooManyCopiesAndRangesAreRefused) {
  for (uint32_t i = 0; i < CopyJobs::kCount; ++i) ASSERT_TRUE(begin(i, i, 1));
  EXPECT_FALSE(begin(99, 99, 1));
  const std::vector<RemoteRange> many(CopyJobs::kMaxRanges + 1, {1, 1});
  use(getpid());
  EXPECT_FALSE(queue->begin({key(1), kClient, kClient, many, kPeer, many}, *peer));
}

TEST_F(CopyQueueTest, MoreAreBegunWhenFewAreLeft) {
  Program program(shared->jobs);
  for (uint32_t i = 0; i < 5; ++i) ASSERT_TRUE(begin(i, i, 1));
  EXPECT_FALSE(queue->may_begin());
  ASSERT_TRUE(program.make());
  ASSERT_TRUE(update());
  EXPECT_TRUE(queue->may_begin());
}

TEST_F(CopyQueueTest, TheNumbersOfJobsWrap) {
  Program program(shared->jobs);
  for (uint32_t i = 0; i < 200'000; ++i) {
    ASSERT_TRUE(begin(i, i % kSize, 1));
    ASSERT_TRUE(program.make());
    ASSERT_TRUE(update());
    ASSERT_EQ(progress(i), CopyProgress::kDone);
    queue->forget(key(i));
  }
  EXPECT_TRUE(is_copied(0, kSize));
}

// The thread may be slow to begin its system call. Then the copy is canceled, but not before it is
// certain that it was not made.
TEST_F(CopyQueueTest, TheEndWaitsForTheThreadThatCopies) {
  Program program(shared->jobs);
  ASSERT_TRUE(begin(1, 0, kSize) && begin(2, 0, 10));
  ASSERT_TRUE(program.take());
  std::atomic<bool> is_announced = false, has_finished = false;
  std::thread thread([&] {
    program.announce();
    is_announced = true;
    // A thread that sleeps here would not be in the system call.
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < 2ms) continue;
    const bool succeeds = program.copy();
    has_finished = true;
    program.finish(succeeds);
  });
  while (!is_announced) std::this_thread::yield();
  queue->end();
  EXPECT_TRUE(has_finished);
  thread.join();
  EXPECT_EQ(progress(1) == CopyProgress::kDone, is_copied(0, kSize));
  EXPECT_EQ(progress(1) == CopyProgress::kFailed, is_untouched());
  EXPECT_EQ(progress(2), CopyProgress::kFailed);
  EXPECT_FALSE(program.take()) << "the other job was taken back";
  ASSERT_TRUE(begin(3, 0, 10));
  EXPECT_TRUE(program.make());
}

/// A child that takes a job, and stops by SIGSTOP before its system call.
class StoppedProgram : public CopyQueueTest {
 protected:
  /// The child stops before its system call, or after it.
  void start(bool announces, bool copies = false) {
    child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Program program(shared->jobs);
      while (!program.take()) usleep(100);
      if (announces) program.announce();
      bool succeeds = copies && program.copy();
      shared->step = 1;
      raise(SIGSTOP);
      if (!copies) succeeds = program.copy();
      program.finish(succeeds);
      shared->step = 2;
      // From now on the child makes all copies.
      while (true) {
        if (!program.make()) usleep(100);
      }
    }
    use(child);
    ASSERT_TRUE(begin(1, 0, 1000) && begin(2, 1000, 1000));
    while (shared->step != 1) usleep(100);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
    ASSERT_TRUE(WIFSTOPPED(status));
  }
  void continue_it() {
    kill(child, SIGCONT);
    while (shared->step != 2) usleep(100);
  }
};

// The message gets through without the program, as the messages that a NIC has do. When the program
// continues, the same memory may have other contents, so that it must not copy any more.
TEST_F(StoppedProgram, ItsCopyIsCanceled) {
  for (const bool announces : {true, false}) {
    SCOPED_TRACE(announces);
    ASSERT_NO_FATAL_FAILURE(start(announces));
    EXPECT_FALSE(update());
    EXPECT_TRUE(update(20ms));
    for (const uint32_t psn : {1u, 2u}) {
      EXPECT_EQ(progress(psn), CopyProgress::kFailed);
      queue->forget(key(psn));
    }
    continue_it();
    EXPECT_TRUE(is_untouched());
    // It can be asked again, and the result of the canceled copy has no effect.
    while (!queue->may_begin()) continue;
    ASSERT_TRUE(begin(3, 2000, 1000));
    while (!update()) usleep(100);
    EXPECT_EQ(progress(3), CopyProgress::kDone);
    EXPECT_TRUE(is_copied(2000, 1000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    child = 0;
    shared->step = 0;
    std::fill_n(shared->target, kSize, uint8_t{0});
  }
}

// The message must not be stored again: its receiver may have seen it.
TEST_F(StoppedProgram, ACopyThatItHasMadeCounts) {
  ASSERT_NO_FATAL_FAILURE(start(true, true));
  EXPECT_FALSE(update());
  EXPECT_TRUE(update(20ms));
  EXPECT_EQ(progress(1), CopyProgress::kDone);
  EXPECT_EQ(progress(2), CopyProgress::kFailed);
  EXPECT_TRUE(is_copied(0, 1000));
}

// A thread that comes back to its job must not make another job that is there now.
TEST_F(StoppedProgram, ItIsNotAskedBeforeItComesBack) {
  ASSERT_NO_FATAL_FAILURE(start(true));
  EXPECT_FALSE(update());
  EXPECT_TRUE(update(20ms));
  for (int i = 0; i < 10'000; ++i) ASSERT_FALSE(queue->may_begin());
  continue_it();
  uint32_t calls = 0;
  while (!queue->may_begin()) ++calls;
  EXPECT_LE(calls, 1024u);
}

TEST_F(StoppedProgram, TheEndDoesNotWaitForIt) {
  ASSERT_NO_FATAL_FAILURE(start(true));
  const auto before = std::chrono::steady_clock::now();
  queue->end();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 1s);
  continue_it();
  EXPECT_TRUE(is_untouched());
}

TEST_F(StoppedProgram, TheEndDoesNotWaitForADeadProgram) {
  ASSERT_NO_FATAL_FAILURE(start(true));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  child = 0;
  queue->end();
  EXPECT_EQ(progress(1), CopyProgress::kFailed);
}

// The state is in memory that the program can write: any value is possible at any time.
TEST_F(CopyQueueTest, AnyStateIsHandled) {
  std::mt19937_64 random(1);
  for (uint32_t i = 0; i < 3000; ++i) {
    begin(i, i % 1000, 10);
    uint64_t word = random();
    // The value with which the daemon would wait for a thread: it has ended, so it is given up.
    shared->jobs.jobs[random() % CopyJobs::kCount].thread = static_cast<uint32_t>(random() >> 33);
    if (random() % 2 == 0) word = shared->jobs.state.load() ^ uint64_t { 1 } << random() % 64;
    shared->jobs.state = word;
    update(std::chrono::microseconds(random() % 30'000));
    if (random() % 4 == 0) queue->end();
    for (uint32_t psn = i >= 20 ? i - 20 : 0; psn <= i; ++psn) queue->forget(key(psn));
  }
  queue->end();
  queue->forget(engine::QpNumber{5});
  EXPECT_TRUE(queue->empty());
}

}  // namespace
}  // namespace rocemu::daemon
