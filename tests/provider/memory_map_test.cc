// What /proc/self/maps says of memory that the test has made.
#include "verbs_provider/memory_map.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

namespace rocemu::provider {
namespace {

constexpr uint64_t kPage = 4096;

/// Five pages: own, read-only, nothing, a file's shared, a file's private.
class MemoryMap : public testing::Test {
 protected:
  MemoryMap() : file_(memfd_create("test", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(file_, 2 * kPage), 0);
    void* data =
        mmap(nullptr, 5 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(data, MAP_FAILED);
    base_ = reinterpret_cast<uint64_t>(data);
    EXPECT_EQ(mprotect(page(1), kPage, PROT_READ), 0);
    EXPECT_EQ(munmap(page(2), kPage), 0);
    map_file(3, MAP_SHARED);
    map_file(4, MAP_PRIVATE);
  }
  ~MemoryMap() override {
    munmap(page(0), 2 * kPage);
    munmap(page(3), 2 * kPage);
    close(file_);
  }

  void map_file(size_t number, int flags) {
    EXPECT_EQ(mmap(page(number), kPage, PROT_READ | PROT_WRITE, flags | MAP_FIXED, file_, 0),
              page(number));
  }
  void* page(size_t number) const { return reinterpret_cast<void*>(base_ + number * kPage); }
  std::vector<MappedRange> visit(uint64_t from, uint64_t to, size_t most = SIZE_MAX) {
    std::vector<MappedRange> ranges;
    EXPECT_TRUE(for_each_mapped(base_ + from, base_ + to, [&](const MappedRange& range) {
      ranges.push_back(range);
      return ranges.size() < most;
    }));
    return ranges;
  }

  int file_;
  uint64_t base_;
};

TEST_F(MemoryMap, TellsKindsApart) {
  const auto ranges = visit(0, 5 * kPage);
  ASSERT_EQ(ranges.size(), 4u);
  struct stat status;
  ASSERT_EQ(fstat(file_, &status), 0);
  const auto expect = [&](size_t i, size_t number, bool writable, bool shared, bool anonymous) {
    EXPECT_EQ(ranges[i].begin, base_ + number * kPage) << i;
    EXPECT_EQ(ranges[i].end, base_ + (number + 1) * kPage) << i;
    EXPECT_EQ(ranges[i].writable, writable) << i;
    EXPECT_EQ(ranges[i].shared, shared) << i;
    EXPECT_EQ(ranges[i].anonymous, anonymous) << i;
    EXPECT_EQ(ranges[i].inode, anonymous ? 0 : status.st_ino) << i;
  };
  expect(0, 0, true, false, true);
  expect(1, 1, false, false, true);
  expect(2, 3, true, true, false);
  expect(3, 4, true, false, false);
}

TEST_F(MemoryMap, CutsWhatItVisits) {
  const auto ranges = visit(100, kPage + 1);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].begin, base_ + 100);
  EXPECT_EQ(ranges[1].end, base_ + kPage + 1);
  EXPECT_TRUE(visit(2 * kPage, 3 * kPage).empty());
}

TEST_F(MemoryMap, EndsWhenItIsToldTo) {
  EXPECT_EQ(visit(0, 5 * kPage, 2).size(), 2u);
}

TEST_F(MemoryMap, HasTheHeapAndNotTheStack) {
  const auto is_anonymous = [](const void* place) {
    const auto address = reinterpret_cast<uint64_t>(place);
    bool anonymous = false;
    EXPECT_TRUE(for_each_mapped(address, address + 1, [&](const MappedRange& range) {
      anonymous = range.anonymous;
      return true;
    }));
    return anonymous;
  };
  const char local = 0;
  const std::vector<char> heap(100);
  EXPECT_FALSE(is_anonymous(&local));
  EXPECT_TRUE(is_anonymous(heap.data()));
}

// More lines than fit into the buffer at once.
TEST_F(MemoryMap, ReadsLongMaps) {
  constexpr size_t kPages = 2000;
  auto* many = static_cast<std::byte*>(
      mmap(nullptr, kPages * kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(many), MAP_FAILED);
  for (size_t i = 0; i < kPages; i += 2) {
    ASSERT_EQ(mprotect(many + i * kPage, kPage, PROT_READ | PROT_WRITE), 0);
  }
  const auto begin = reinterpret_cast<uint64_t>(many);
  uint64_t seen = begin;
  size_t count = 0;
  EXPECT_TRUE(for_each_mapped(begin, begin + kPages * kPage, [&](const MappedRange& range) {
    EXPECT_EQ(range.begin, seen);
    EXPECT_EQ(range.writable, count % 2 == 0);
    seen = range.end;
    ++count;
    return true;
  }));
  EXPECT_EQ(count, kPages);
  munmap(many, kPages * kPage);
}

}  // namespace
}  // namespace rocemu::provider
