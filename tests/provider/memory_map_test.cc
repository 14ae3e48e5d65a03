// Tests what both ways to read /proc/self/maps report about memory that the test has mapped.
#include "verbs_provider/context/memory_map.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/support/page_size.h"

namespace rocemu::provider {
namespace {

using Visit = bool(void* context, const MappedRange& range);
using ForEachMapped = bool(uint64_t begin, uint64_t end, void* context, Visit* visit);

struct Way {
  const char* name;
  ForEachMapped* for_each;

  friend void PrintTo(const Way& way, std::ostream* to) { *to << way.name; }
};

/// Five pages: private, read-only, unmapped, shared mapping of a file, private mapping of a file.
class MemoryMap : public testing::TestWithParam<Way> {
 protected:
  MemoryMap() : file_(memfd_create("test", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(file_, static_cast<off_t>(2 * kPageSize)), 0);
    void* data =
        mmap(nullptr, 5 * kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(data, MAP_FAILED);
    base_ = reinterpret_cast<uint64_t>(data);
    EXPECT_EQ(mprotect(page(1), kPageSize, PROT_READ), 0);
    EXPECT_EQ(munmap(page(2), kPageSize), 0);
    map_file(3, MAP_SHARED);
    map_file(4, MAP_PRIVATE);
  }
  ~MemoryMap() override {
    munmap(page(0), 2 * kPageSize);
    munmap(page(3), 2 * kPageSize);
    close(file_);
  }

  void map_file(size_t number, int flags) {
    EXPECT_EQ(mmap(page(number), kPageSize, PROT_READ | PROT_WRITE, flags | MAP_FIXED, file_, 0),
              page(number));
  }
  void* page(size_t number) const { return reinterpret_cast<void*>(base_ + number * kPageSize); }
  template <class Function>
  static bool for_each(uint64_t begin, uint64_t end, Function function) {
    return GetParam().for_each(begin, end, &function, [](void* context, const MappedRange& range) {
      return (*static_cast<Function*>(context))(range);
    });
  }
  std::vector<MappedRange> visit(uint64_t from, uint64_t to, size_t most = SIZE_MAX) {
    std::vector<MappedRange> ranges;
    EXPECT_TRUE(for_each(base_ + from, base_ + to, [&](const MappedRange& range) {
      ranges.push_back(range);
      return ranges.size() < most;
    }));
    return ranges;
  }

  int file_;
  uint64_t base_;
};

TEST_P(MemoryMap, TellsKindsApart) {
  const auto ranges = visit(0, 5 * kPageSize);
  ASSERT_EQ(ranges.size(), 4u);
  struct stat status;
  ASSERT_EQ(fstat(file_, &status), 0);
  const auto expect = [&](size_t i, size_t number, bool writable, bool of_file, bool shared) {
    EXPECT_EQ(ranges[i].begin, base_ + number * kPageSize) << i;
    EXPECT_EQ(ranges[i].end, base_ + (number + 1) * kPageSize) << i;
    EXPECT_EQ(ranges[i].writable, writable) << i;
    EXPECT_TRUE(ranges[i].readable) << i;
    EXPECT_EQ(ranges[i].shared, shared) << i;
    EXPECT_EQ(ranges[i].inode, of_file ? status.st_ino : 0) << i;
    EXPECT_EQ(ranges[i].device, of_file ? status.st_dev : 0) << i;
  };
  expect(0, 0, true, false, false);
  expect(1, 1, false, false, false);
  expect(2, 3, true, true, true);
  expect(3, 4, true, true, false);
}

TEST_P(MemoryMap, CutsMappingsToTheVisitedRange) {
  const auto ranges = visit(100, kPageSize + 1);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].begin, base_ + 100);
  EXPECT_EQ(ranges[1].end, base_ + kPageSize + 1);
  EXPECT_TRUE(visit(2 * kPageSize, 3 * kPageSize).empty());
}

TEST_P(MemoryMap, HasTheNamesOfFiles) {
  std::vector<std::string> names;
  EXPECT_TRUE(for_each(base_ + 3 * kPageSize, base_ + 5 * kPageSize, [&](const MappedRange& range) {
    names.push_back(range.path);
    return true;
  }));
  EXPECT_EQ(names, std::vector<std::string>(2, "/memfd:test (deleted)"));
}

TEST_P(MemoryMap, EndsWhenItIsToldTo) {
  EXPECT_EQ(visit(0, 5 * kPageSize, 2).size(), 2u);
}

TEST_P(MemoryMap, TellsWhatCannotBeRead) {
  ASSERT_EQ(mprotect(page(0), kPageSize, PROT_NONE), 0);
  const auto ranges = visit(0, 2 * kPageSize);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_FALSE(ranges[0].readable);
  EXPECT_TRUE(ranges[1].readable);
}

// The file has more lines than fit into the buffer.
TEST_P(MemoryMap, ReadsLongMaps) {
  constexpr size_t kPages = 2000;
  auto* many = static_cast<std::byte*>(
      mmap(nullptr, kPages * kPageSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(many), MAP_FAILED);
  for (size_t i = 0; i < kPages; i += 2) {
    ASSERT_EQ(mprotect(many + i * kPageSize, kPageSize, PROT_READ | PROT_WRITE), 0);
  }
  const auto begin = reinterpret_cast<uint64_t>(many);
  uint64_t seen = begin;
  size_t count = 0;
  EXPECT_TRUE(for_each(begin, begin + kPages * kPageSize, [&](const MappedRange& range) {
    EXPECT_EQ(range.begin, seen);
    EXPECT_EQ(range.writable, count % 2 == 0);
    seen = range.end;
    ++count;
    return true;
  }));
  EXPECT_EQ(count, kPages);
  munmap(many, kPages * kPageSize);
}

// On old kernels, the first way falls back to the second.
INSTANTIATE_TEST_SUITE_P(By, MemoryMap,
                         testing::Values(Way{"Query", for_each_mapped},
                                         Way{"Text", for_each_mapped_by_text}),
                         [](const auto& by) { return std::string(by.param.name); });

}  // namespace
}  // namespace rocemu::provider
