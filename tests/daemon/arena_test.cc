// Tests the memory that a client shares with the daemon: many pieces of memory need only few
// segments.
#include "emulator/daemon/base/arena.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "tests/support/page_size.h"

namespace rocemu::daemon {
namespace {

class ArenaTest : public testing::Test {
 protected:
  Arena::Piece take(uint64_t size) {
    std::optional<Arena::Piece> piece = arena.take(size);
    EXPECT_TRUE(piece) << size;
    return piece ? std::move(*piece) : Arena::Piece();
  }
  uint32_t segments() const {
    uint32_t count = 0;
    while (arena.file_of(count)) ++count;
    return count;
  }
  /// Returns how many bytes of memory the system has allocated to the files of the arena's
  /// segments.
  uint64_t memory_in_use() const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < segments(); ++i) {
      struct stat status {};
      EXPECT_EQ(fstat(arena.file_of(i)->fd, &status), 0);
      sum += static_cast<uint64_t>(status.st_blocks) * 512;
    }
    return sum;
  }

  Arena arena;
};

TEST_F(ArenaTest, PiecesLieSideBySideInOneSegment) {
  const Arena::Piece a = take(100), b = take(64);
  EXPECT_EQ(a.range().segment, 0u);
  EXPECT_EQ(b.range().segment, 0u);
  EXPECT_EQ(b.range().offset, a.range().offset + 128) << "each begins at a cache line";
  EXPECT_EQ(b.data(), a.data() + 128);
  EXPECT_EQ(segments(), 1u);
}

TEST_F(ArenaTest, VeryManyPiecesTakeFewSegments) {
  std::deque<Arena::Piece> pieces;
  for (int i = 0; i < 200'000; ++i) pieces.push_back(take(4096));
  EXPECT_LT(segments(), 40u);
}

TEST_F(ArenaTest, ReturnedPiecesAreReused) {
  for (int round = 0; round < 10'000; ++round) {
    const Arena::Piece a = take(1000), b = take(100'000), c = take(64);
  }
  EXPECT_EQ(segments(), 1u);
}

TEST_F(ArenaTest, ALargePieceHasASegmentThatItFills) {
  const Arena::Piece small = take(64), large = take(uint64_t{1} << 30);
  EXPECT_EQ(large.range().segment, 1u);
  EXPECT_EQ(arena.file_of(1)->size, uint64_t{1} << 30);
  EXPECT_EQ(memory_in_use(), 0u) << "nobody has touched it";
}

TEST_F(ArenaTest, APageGoesBackToTheSystemWithTheLastPieceInIt) {
  std::vector<Arena::Piece> pieces;
  for (int i = 0; i < 64; ++i) pieces.push_back(take(kPageSize / 4));
  for (Arena::Piece& piece : pieces) std::memset(piece.data(), 1, piece.size());
  EXPECT_EQ(memory_in_use(), 16 * kPageSize);
  std::shuffle(pieces.begin(), pieces.end(), std::minstd_rand(1));
  std::vector<uint32_t> in_page(16, 4);
  while (!pieces.empty()) {
    --in_page[pieces.back().range().offset / kPageSize];
    pieces.pop_back();
    const auto pages = static_cast<size_t>(std::ranges::count_if(in_page, std::identity()));
    EXPECT_EQ(memory_in_use(), pages * kPageSize);
  }
}

TEST_F(ArenaTest, AnyOrderOfTakingAndGivingBackKeepsPiecesApart) {
  std::minstd_rand random(7);
  std::vector<std::pair<Arena::Piece, char>> pieces;
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0 || pieces.empty()) {
      const auto mark = static_cast<char>(random());
      pieces.emplace_back(take(1 + random() % 10'000), mark);
      std::memset(pieces.back().first.data(), mark, pieces.back().first.size());
    } else {
      std::swap(pieces[random() % pieces.size()], pieces.back());
      const Arena::Piece& piece = pieces.back().first;
      const char mark = pieces.back().second;
      const auto* bytes = reinterpret_cast<const char*>(piece.data());
      ASSERT_TRUE(std::all_of(bytes, bytes + piece.size(), [&](char it) { return it == mark; }));
      pieces.pop_back();
    }
  }
  pieces.clear();
  EXPECT_EQ(memory_in_use(), 0u);
  EXPECT_EQ(take(arena.file_of(0)->size).range().segment, 0u) << "all of it is one again";
}

TEST_F(ArenaTest, RefusesMoreThanAClientMayHave) {
  EXPECT_FALSE(arena.take(Arena::kMaxBytes + 1));
  EXPECT_FALSE(arena.take(UINT64_MAX));
  const Arena::Piece half = take(Arena::kMaxBytes / 2);
  EXPECT_FALSE(arena.take(Arena::kMaxBytes / 2 + 1));
  EXPECT_TRUE(arena.take(64));
}

TEST_F(ArenaTest, ASegmentCanNeitherShrinkNorGrowNorBeUnsealed) {
  const Arena::Piece piece = take(64);
  const int file = arena.file_of(0)->fd;
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  EXPECT_EQ(fcntl(file, F_GET_SEALS) & kSeals, kSeals);
  EXPECT_NE(ftruncate(file, static_cast<off_t>(kPageSize)), 0);
  EXPECT_NE(ftruncate(file, 1 << 30), 0);
  // The pages of a piece can be returned to the system. They are zero when they are accessed again.
  piece.data()[0] = std::byte{1};
  EXPECT_EQ(
      fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(kPageSize)),
      0);
  EXPECT_EQ(piece.data()[0], std::byte{0});
}

TEST_F(ArenaTest, IsDroppedPartByPart) {
  std::vector<Arena::Piece> pieces;
  for (int i = 0; i < 3; ++i) pieces.push_back(take(64 << 20));
  for (const Arena::Piece& piece : pieces) std::memset(piece.data(), 1, piece.size());
  arena.close();
  pieces.clear();
  const uint32_t count = segments();
  EXPECT_EQ(count, 3u);
  EXPECT_TRUE(arena.drop(48 << 20));
  EXPECT_EQ(segments(), count) << "a large one is not a matter of one turn";
  EXPECT_TRUE(arena.drop(16 << 20));
  EXPECT_EQ(segments(), count - 1);
  EXPECT_TRUE(arena.drop(96 << 20)) << "more than one of them";
  EXPECT_EQ(segments(), count - 2);
  EXPECT_FALSE(arena.drop(UINT64_MAX));
  EXPECT_EQ(segments(), 0u);
  EXPECT_FALSE(arena.drop(UINT64_MAX));
}

}  // namespace
}  // namespace rocemu::daemon
