// Tests the checksum of the bytes in a buffer, whose memory may have been unmapped.
#include "verbs_provider/sanitizer/checksum.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace rocemu::sanitizer {
namespace {

std::optional<uint64_t> checksum(const void* memory, uint64_t length) {
  Checksum sum;
  ReadableBytes readable;
  if (!sum.add(reinterpret_cast<uint64_t>(memory), length, readable)) return std::nullopt;
  return sum.value();
}

/// Two pages.
class ChecksumTest : public ::testing::Test {
 protected:
  ChecksumTest() {
    memory_ = static_cast<unsigned char*>(
        mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  ~ChecksumTest() override { munmap(memory_, 2 * page_); }

  const size_t page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  unsigned char* memory_;
};

TEST_F(ChecksumTest, ChangesWithEachByteOfEachLengthAndAlignment) {
  for (size_t begin = page_ - 9; begin <= page_; ++begin) {
    for (const size_t length : {1u, 7u, 8u, 9u, 31u, 32u, 33u, 40u, 71u}) {
      const auto before = checksum(memory_ + begin, length);
      for (size_t at = 0; at < length; ++at) {
        memory_[begin + at] ^= 1;
        EXPECT_NE(checksum(memory_ + begin, length), before) << begin << " " << length << " " << at;
        memory_[begin + at] ^= 1;
      }
      EXPECT_EQ(checksum(memory_ + begin, length), before);
    }
  }
}

TEST_F(ChecksumTest, ChangesWhenPartsAreSwapped) {
  for (size_t i = 0; i < 64; ++i) memory_[i] = static_cast<unsigned char>(i);
  const auto before = checksum(memory_, 64);
  for (size_t i = 0; i < 8; ++i) std::swap(memory_[i], memory_[8 + i]);
  EXPECT_NE(checksum(memory_, 64), before);
}

TEST_F(ChecksumTest, DoesNotDependOnBytesBesideTheBuffer) {
  const auto before = checksum(memory_ + 8, 13);
  memory_[7] = memory_[8 + 13] = 1;
  EXPECT_EQ(checksum(memory_ + 8, 13), before);
}

TEST_F(ChecksumTest, DoesNotExistForUnreadableMemory) {
  mprotect(memory_ + page_, page_, PROT_NONE);
  EXPECT_TRUE(checksum(memory_, page_));
  EXPECT_FALSE(checksum(memory_ + page_ - 1, 2));
  EXPECT_FALSE(checksum(memory_, 2 * page_));
  munmap(memory_ + page_, page_);
  EXPECT_FALSE(checksum(memory_ + page_ - 8, 16));
}

TEST_F(ChecksumTest, ChecksThePageAfterTheKnownReadableOnesAgain) {
  const auto begin = reinterpret_cast<uint64_t>(memory_);
  Checksum sum;
  ReadableBytes readable;
  mprotect(memory_ + page_, page_, PROT_NONE);
  ASSERT_TRUE(sum.add(begin + 8, 8, readable));
  EXPECT_EQ(readable.begin, begin);
  EXPECT_EQ(readable.end, begin + page_);
  EXPECT_TRUE(sum.add(begin + page_ - 8, 8, readable));
  EXPECT_FALSE(sum.add(begin + page_ - 8, 9, readable));
  EXPECT_FALSE(sum.add(begin + page_, 1, readable));
  mprotect(memory_ + page_, page_, PROT_READ);
  EXPECT_TRUE(sum.add(begin + page_ - 8, 9, readable));
}

/// mmap(2), "SIGBUS": an access beyond the end of the file.
TEST_F(ChecksumTest, DoesNotExistIfTheMappedFileIsTooShort) {
  const int file = memfd_create("short", 0);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(page_)), 0);
  mmap(memory_, 2 * page_, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0);
  close(file);
  EXPECT_TRUE(checksum(memory_, page_));
  EXPECT_FALSE(checksum(memory_, page_ + 1));
  EXPECT_FALSE(checksum(memory_ + page_, 1));
}

TEST_F(ChecksumTest, CoversTheFirstMegabyte) {
  std::vector<unsigned char> bytes((1u << 20) + 1);
  const auto before = checksum(bytes.data(), bytes.size());
  bytes[1u << 20] = 1;
  EXPECT_EQ(checksum(bytes.data(), bytes.size()), before);
  bytes[(1u << 20) - 1] = 1;
  EXPECT_NE(checksum(bytes.data(), bytes.size()), before);
}

TEST_F(ChecksumTest, LeavesTheMaskOfSignals) {
  sigset_t before, after;
  sigprocmask(SIG_SETMASK, nullptr, &before);
  checksum(memory_, page_);
  sigprocmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < 65; ++signal)
    EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal));
}

}  // namespace
}  // namespace rocemu::sanitizer
