// Tests with an array in the place of AddressSanitizer's shadow memory, in which each byte
// describes a granule of 8 bytes (compiler-rt, asan_internal.h): 0, all 8 bytes may be accessed; 1
// to 7, only this number of bytes from the start may be accessed; 0xfa, the redzone of a heap
// block; 0xf7, poisoned by the program.
#include "verbs_provider/sanitizer/compilers/poisoned_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace rocemu::sanitizer {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

class PoisonedMemoryTest : public ::testing::Test {
 protected:
  std::vector<uint8_t> shadow = std::vector<uint8_t>(6, 0);  // the shadow of the addresses 0 to 47
  PoisonedMemory memory{reinterpret_cast<uint64_t>(shadow.data())};
};

TEST_F(PoisonedMemoryTest, AReceiveIsPoisonedUntilItIsReleased) {
  memory.hold({8, 16});
  EXPECT_THAT(shadow, ElementsAre(0, 0xf7, 0xf7, 0, 0, 0));
  memory.release({8, 16});
  EXPECT_THAT(shadow, Each(0));
}

TEST_F(PoisonedMemoryTest, AGranuleThatHasBytesOfOthersIsLeftAlone) {
  memory.hold({4, 24});  // the bytes from 4 to 28
  EXPECT_THAT(shadow, ElementsAre(0, 0xf7, 0xf7, 0, 0, 0));
  memory.release({4, 24});
  EXPECT_THAT(shadow, Each(0));
  memory.hold({9, 6});
  EXPECT_THAT(shadow, Each(0));
  memory.release({9, 6});
}

TEST_F(PoisonedMemoryTest, TheLastGranuleIsPoisonedIfNothingElseOfItMayBeTouched) {
  shadow[2] = 4;  // a block of 12 bytes at address 8
  shadow[3] = 0xfa;
  memory.hold({8, 12});
  EXPECT_THAT(shadow, ElementsAre(0, 0xf7, 0xf7, 0xfa, 0, 0));
  memory.release({8, 12});
  EXPECT_THAT(shadow, ElementsAre(0, 0, 4, 0xfa, 0, 0));
}

TEST_F(PoisonedMemoryTest, TheEndOfABlockIsLeftAloneByAReceiveBeforeIt) {
  shadow[2] = 4;
  memory.hold({8, 10});  // includes two of the granule's four bytes
  EXPECT_THAT(shadow, ElementsAre(0, 0xf7, 4, 0, 0, 0));
  memory.release({8, 10});
  EXPECT_THAT(shadow, ElementsAre(0, 0, 4, 0, 0, 0));
}

TEST_F(PoisonedMemoryTest, EarlierPoisonRemains) {
  shadow[1] = 0xf7;
  shadow[3] = 0xfa;
  memory.hold({0, 40});
  EXPECT_THAT(shadow, ElementsAre(0xf7, 0xf7, 0xf7, 0xfa, 0xf7, 0));
  memory.release({0, 40});
  EXPECT_THAT(shadow, ElementsAre(0, 0xf7, 0, 0xfa, 0, 0));
}

TEST_F(PoisonedMemoryTest, BytesOfTwoReceivesArePoisonedUntilBothAreReleased) {
  shadow[2] = 0xf7;
  memory.hold({0, 32});
  memory.hold({8, 40});
  memory.hold({0, 32});
  memory.release({0, 32});
  memory.release({8, 40});
  EXPECT_THAT(shadow, ElementsAre(0xf7, 0xf7, 0xf7, 0xf7, 0, 0));
  memory.release({0, 32});
  EXPECT_THAT(shadow, ElementsAre(0, 0, 0xf7, 0, 0, 0));
}

TEST_F(PoisonedMemoryTest, MemoryThatWasFreedOrAllocatedAnewIsNotRestored) {
  memory.hold({0, 48});
  shadow[1] = 0xfd;  // freed
  shadow[2] = 0;     // the memory was allocated for another block
  shadow[3] = 5;
  memory.release({0, 48});
  EXPECT_THAT(shadow, ElementsAre(0, 0xfd, 0, 5, 0, 0));
}

TEST_F(PoisonedMemoryTest, UnmappedMemoryIsForgotten) {
  memory.hold({0, 48});
  PoisonedMemory::forget(reinterpret_cast<uint64_t>(shadow.data()), 8, 32);
  EXPECT_THAT(shadow, ElementsAre(0xf7, 0, 0, 0, 0xf7, 0xf7));
  memory.release({0, 48});
  EXPECT_THAT(shadow, Each(0));
}

TEST_F(PoisonedMemoryTest, AChildOfForkReleasesAll) {
  memory.hold({0, 16});
  memory.hold({8, 16});
  memory.release_all();
  EXPECT_THAT(shadow, Each(0));
}

}  // namespace
}  // namespace rocemu::sanitizer
