// Tests that short writes are collected, and that programs cannot detect this.
#include "emulator/daemon/memory/write_queue.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "emulator/daemon/memory/process_memory.h"
#include "tests/support/page_size.h"

namespace rocemu::daemon {
namespace {

using engine::MemoryResult;
using engine::RemoteRange;
using Bytes = std::vector<uint8_t>;

constexpr engine::ClientId kClient{1};

/// Tests with a client that is this process, so that its memory can be checked.
class WriteQueueTest : public testing::Test {
 protected:
  WriteQueueTest() {
    void* pages = mmap(nullptr, kPages * kPageSize, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pages_ = static_cast<uint8_t*>(pages);
    EXPECT_EQ(memory_.add(kClient, getpid(), UniqueFd()), ProcessMemory::Way::kProcessVm);
  }
  ~WriteQueueTest() override { munmap(pages_, kPages * kPageSize); }

  RemoteRange at(size_t offset, size_t length) const {
    return {reinterpret_cast<uint64_t>(pages_) + offset, length};
  }
  MemoryResult write(size_t offset, const Bytes& bytes) {
    const RemoteRange to = at(offset, bytes.size());
    const std::array<std::span<const uint8_t>, 1> from{bytes};
    return memory_.write(kClient, {&to, 1}, from);
  }
  MemoryResult write_soon(size_t offset, const Bytes& bytes) {
    const RemoteRange to = at(offset, bytes.size());
    const std::array<std::span<const uint8_t>, 1> from{bytes};
    return memory_.write_soon(kClient, {&to, 1}, from);
  }
  Bytes read(size_t offset, size_t length) {
    Bytes bytes(length);
    const RemoteRange from = at(offset, length);
    const std::array<std::span<uint8_t>, 1> to{bytes};
    EXPECT_EQ(memory_.read(kClient, {&from, 1}, to), MemoryResult::kDone);
    return bytes;
  }
  /// Returns the bytes that the program itself reads at `offset`.
  Bytes now(size_t offset, size_t length) const {
    return Bytes(pages_ + offset, pages_ + offset + length);
  }

  static constexpr size_t kPages = 600;
  uint8_t* pages_;
  ProcessMemory memory_;
};

TEST_F(WriteQueueTest, AShortWriteWaitsForTheFlush) {
  EXPECT_EQ(write_soon(100, {1, 2, 3}), MemoryResult::kDone);
  EXPECT_EQ(write_soon(101, {7}), MemoryResult::kDone) << "later, and so on top";
  EXPECT_EQ(now(100, 3), Bytes({0, 0, 0}));
  memory_.flush();
  EXPECT_EQ(now(100, 3), Bytes({1, 7, 3}));
}

TEST_F(WriteQueueTest, AReadSeesDataThatWaits) {
  write_soon(100, {1, 2, 3});
  EXPECT_EQ(read(200, 1), Bytes({0}));
  EXPECT_EQ(now(100, 3), Bytes({0, 0, 0})) << "the read was of other bytes";
  EXPECT_EQ(read(102, 4), Bytes({3, 0, 0, 0}));
}

TEST_F(WriteQueueTest, ALongerWriteComesAfterTheShortOnesBeforeIt) {
  write_soon(100, {1});
  EXPECT_EQ(write_soon(2 * kPageSize, Bytes(3 * kPageSize, 9)), MemoryResult::kDone);
  EXPECT_EQ(now(2 * kPageSize, 1), Bytes({9}));
  EXPECT_EQ(now(100, 1), Bytes({1})) << "a program that sees the later one sees the earlier one";
}

TEST_F(WriteQueueTest, WritesToAnUnmappedPageAreDropped) {
  munmap(pages_ + kPageSize, kPageSize);
  EXPECT_EQ(write(kPageSize, {1}), MemoryResult::kFault) << "not as if pinned";
  EXPECT_EQ(write_soon(0, {1}), MemoryResult::kDone);
  EXPECT_EQ(write_soon(2 * kPageSize - 1, {2, 3}), MemoryResult::kDone);
  EXPECT_EQ(write_soon(3 * kPageSize, {4}), MemoryResult::kDone);
  memory_.flush();
  EXPECT_EQ(now(0, 1), Bytes({1}));
  EXPECT_EQ(now(2 * kPageSize, 1), Bytes({3})) << "its second page is there";
  EXPECT_EQ(now(3 * kPageSize, 1), Bytes({4}));

  Bytes longer(2 * kPageSize, 7);
  EXPECT_EQ(write_soon(kPageSize, longer), MemoryResult::kDone);
  EXPECT_EQ(now(2 * kPageSize, kPageSize), Bytes(kPageSize, 7));
}

TEST_F(WriteQueueTest, AdjacentWritesAreCombined) {
  munmap(pages_ + 2 * kPageSize, kPageSize);
  for (size_t at = kPageSize - 100; at < 4 * kPageSize - 100; at += 100) {
    ASSERT_EQ(write_soon(at, Bytes(100, static_cast<uint8_t>(at / 100))), MemoryResult::kDone);
  }
  write_soon(kPageSize - 50, Bytes(25, 255));  // changes a part of data that waits already
  memory_.flush();
  const auto is_there = [&](size_t begin, size_t end) {
    for (size_t at = begin; at < end; ++at) {
      const size_t first = kPageSize - 100;
      const auto wanted = static_cast<uint8_t>((first + (at - first) / 100 * 100) / 100);
      ASSERT_EQ(pages_[at], wanted) << at;
    }
  };
  is_there(kPageSize - 100, kPageSize - 50);
  EXPECT_EQ(now(kPageSize - 50, 25), Bytes(25, 255));
  is_there(kPageSize - 25, 2 * kPageSize);
  is_there(3 * kPageSize, 4 * kPageSize - 100);
}

TEST_F(WriteQueueTest, ANicKnowsNothingOfMprotect) {
  mprotect(pages_, kPageSize, PROT_READ);
  EXPECT_EQ(write_soon(0, {5}), MemoryResult::kDone);
  EXPECT_EQ(write_soon(kPageSize, {6}), MemoryResult::kDone);
  memory_.flush();
  EXPECT_EQ(now(0, 1), Bytes({5}));
  EXPECT_EQ(now(kPageSize, 1), Bytes({6}));
}

TEST_F(WriteQueueTest, NothingIsLostWhereMoreIsWrittenThanWaits) {
  for (size_t i = 0; i < 3000; ++i) {
    const Bytes bytes(1 + i % 4000, static_cast<uint8_t>(i));
    ASSERT_EQ(write_soon(i % kPages * kPageSize, bytes), MemoryResult::kDone);
  }
  memory_.flush();
  for (size_t i = 3000 - kPages; i < 3000; ++i) {
    const Bytes bytes(1 + i % 4000, static_cast<uint8_t>(i));
    ASSERT_EQ(now(i % kPages * kPageSize, bytes.size()), bytes) << i;
  }
}

// After a client has closed its context, its process may continue and read its memory.
TEST_F(WriteQueueTest, DataThatWaitsIsWrittenBeforeItsClientIsRemoved) {
  write_soon(0, {1});
  memory_.remove(kClient);
  EXPECT_EQ(now(0, 1), Bytes({1}));
  memory_.flush();
  EXPECT_EQ(write_soon(0, {1}), MemoryResult::kGone);
}

}  // namespace
}  // namespace rocemu::daemon
