// Tests the memory that the daemon shares with a context.
#include "verbs_provider/base/segments.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace rocemu::provider {
namespace {

constexpr uint64_t kSize = 8192;

class SegmentsTest : public testing::Test {
 protected:
  SegmentsTest() : file(memfd_create("test", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(file, static_cast<off_t>(kSize)), 0);
  }
  ~SegmentsTest() override { close(file); }

  int find(uint32_t segment, uint64_t offset, uint64_t size) {
    return segments.find({.offset = offset, .size = size, .segment = segment, .reserved = 0},
                         &piece);
  }

  int file;
  Segments segments;
  SharedPiece piece;
};

TEST_F(SegmentsTest, FindsAPieceOnceItsSegmentIsMapped) {
  EXPECT_EQ(find(7, 4096, 64), ENOENT);
  ASSERT_EQ(segments.add(7, file, kSize), 0);
  ASSERT_EQ(find(7, 4096, 64), 0);
  EXPECT_EQ(piece.size(), 64u);
  ASSERT_EQ(pwrite(file, "x", 1, 4096 + 5), 1);
  EXPECT_EQ(*piece.at(5), std::byte{'x'});
  EXPECT_EQ(find(6, 4096, 64), ENOENT);
}

TEST_F(SegmentsTest, MapsASegmentOnceThoughTwoThreadsAskedForIt) {
  ASSERT_EQ(segments.add(0, file, kSize), 0);
  ASSERT_EQ(find(0, 0, 64), 0);
  const std::byte* first = piece.at(0);
  ASSERT_EQ(segments.add(0, file, kSize), 0);
  ASSERT_EQ(find(0, 0, 64), 0);
  EXPECT_EQ(piece.at(0), first);
}

TEST_F(SegmentsTest, RefusesPiecesBeyondTheSegment) {
  ASSERT_EQ(segments.add(0, file, kSize), 0);
  EXPECT_EQ(find(0, 0, kSize), 0);
  EXPECT_EQ(find(0, 64, kSize), EIO);
  EXPECT_EQ(find(0, kSize + 64, 64), EIO);
  EXPECT_EQ(find(0, UINT64_MAX - 63, 128), EIO);
  EXPECT_EQ(find(0, 0, UINT64_MAX), EIO);
  EXPECT_EQ(find(0, 8, 64), EIO) << "no ring begins there";
}

TEST_F(SegmentsTest, RefusesAFileThatIsTooShort) {
  EXPECT_EQ(segments.add(0, file, kSize + 1), EIO);
  EXPECT_EQ(segments.add(0, file, 0), EIO);
  EXPECT_EQ(segments.add(0, -1, kSize), EBADF);
  EXPECT_EQ(find(0, 0, 64), ENOENT);
}

}  // namespace
}  // namespace rocemu::provider
