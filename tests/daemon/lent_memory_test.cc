// What a client may lend, and copying to and from it.
#include "emulator/daemon/memory/lent_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "emulator/abi/control.h"

namespace rocemu::daemon {
namespace {

using engine::RemoteRange;
using Buffer = std::vector<uint8_t>;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kAddress = uint64_t{1} << 40;  // nothing is there: it is a name only

UniqueFd memory_file(uint64_t size, int seals = F_SEAL_SHRINK, unsigned flags = 0) {
  UniqueFd file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags));
  EXPECT_TRUE(file);
  EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(size)), 0);
  EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

class Lent : public testing::Test {
 protected:
  bool read(std::vector<RemoteRange> from, Buffer& to) {
    const std::span<uint8_t> buffers[] = {to};
    return memory.copy(from, std::span<const std::span<uint8_t>>(buffers));
  }
  bool write(std::vector<RemoteRange> to, const Buffer& from) {
    const std::span<const uint8_t> buffers[] = {from};
    return memory.copy(to, std::span<const std::span<const uint8_t>>(buffers));
  }

  LentMemory memory;
};

TEST_F(Lent, IsWhatTheClientSees) {
  const UniqueFd file = memory_file(kPage);
  ASSERT_EQ(memory.add({kAddress, kPage}, file), 0);
  for (const size_t size : {1u, 7u, 8u, 9u, 64u, 4000u}) {
    Buffer bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i + size);
    ASSERT_TRUE(write({{kAddress + 3, size}}, bytes));
    Buffer seen(size), back(size);
    ASSERT_EQ(pread(file.get(), seen.data(), size, 3), static_cast<ssize_t>(size));
    EXPECT_EQ(seen, bytes);
    ASSERT_TRUE(read({{kAddress + 3, size}}, back));
    EXPECT_EQ(back, bytes);
  }
}

TEST_F(Lent, RangesAndBuffersOfDifferentCuts) {
  ASSERT_EQ(memory.add({kAddress, kPage}, memory_file(kPage)), 0);
  ASSERT_EQ(memory.add({kAddress + 5 * kPage, kPage}, memory_file(kPage)), 0);
  const Buffer a{1, 2, 3}, none, b{4, 5};
  const std::span<const uint8_t> from[] = {a, none, b};
  const RemoteRange to[] = {
      {kAddress + kPage - 1, 1}, {0, 0}, {kAddress + 5 * kPage, 3}, {kAddress, 1}};
  ASSERT_TRUE(memory.copy(to, std::span<const std::span<const uint8_t>>(from)));
  Buffer back(5);
  ASSERT_TRUE(read({{kAddress, 1}, {kAddress + kPage - 1, 1}, {kAddress + 5 * kPage, 3}}, back));
  EXPECT_EQ(back, (Buffer{5, 1, 2, 3, 4}));
}

TEST_F(Lent, NothingIsDoneWhenPartOfItIsElsewhere) {
  ASSERT_EQ(memory.add({kAddress, kPage}, memory_file(kPage)), 0);
  Buffer two{9, 9};
  EXPECT_FALSE(write({{kAddress + kPage - 1, 2}}, two));
  EXPECT_FALSE(write({{kAddress - 1, 2}}, two));
  EXPECT_FALSE(write({{kAddress, 1}, {kAddress + kPage, 1}}, two));
  EXPECT_FALSE(write({{kAddress + 7 * kPage, 2}}, two));
  EXPECT_FALSE(write({{~uint64_t{0}, 2}}, two));
  Buffer first(1), last(1);
  ASSERT_TRUE(read({{kAddress, 1}}, first));
  ASSERT_TRUE(read({{kAddress + kPage - 1, 1}}, last));
  EXPECT_EQ(first[0] + last[0], 0);
}

TEST_F(Lent, NotWithoutAny) {
  Buffer one(1), none;
  EXPECT_FALSE(read({{kAddress, 1}}, one));
  EXPECT_FALSE(read({}, none));
}

TEST_F(Lent, EndsWhenItIsTakenBack) {
  ASSERT_EQ(memory.add({kAddress, kPage}, memory_file(kPage)), 0);
  EXPECT_EQ(memory.remove(kAddress + 1), EINVAL);
  EXPECT_EQ(memory.remove(kAddress), 0);
  EXPECT_EQ(memory.remove(kAddress), EINVAL);
  Buffer one(1);
  EXPECT_FALSE(read({{kAddress, 1}}, one));
  EXPECT_EQ(memory.add({kAddress, kPage}, memory_file(kPage)), 0);
}

TEST_F(Lent, FilesThatCouldMakeUsCrashAreRefused) {
  EXPECT_EQ(memory.add({kAddress, kPage}, memory_file(kPage, F_SEAL_GROW)), EINVAL);
  EXPECT_EQ(memory.add({kAddress, 2 * kPage}, memory_file(kPage)), EINVAL);
  EXPECT_EQ(memory.add({kAddress, kPage}, UniqueFd(open("/dev/zero", O_RDWR))), EINVAL);
  EXPECT_EQ(memory.add({kAddress, kPage}, UniqueFd(open("/dev/null", O_RDWR))), EINVAL);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd reads(ends[0]), writes(ends[1]);
  EXPECT_EQ(memory.add({kAddress, kPage}, reads), EINVAL);
  UniqueFd read_only(
      open(("/proc/self/fd/" + std::to_string(memory_file(kPage).get())).c_str(), O_RDONLY));
  EXPECT_EQ(memory.add({kAddress, kPage}, read_only), EINVAL);
  constexpr uint64_t kHuge = 2 << 20;
  const UniqueFd huge(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (huge && ftruncate(huge.get(), kHuge) == 0) {
    ASSERT_EQ(fcntl(huge.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    EXPECT_EQ(memory.add({kAddress, kHuge}, huge), EINVAL);
  }
}

TEST_F(Lent, RangesThatCannotBeAreRefused) {
  const UniqueFd file = memory_file(kPage), files = memory_file(3 * kPage);
  EXPECT_EQ(memory.add({kAddress, 0}, file), EINVAL);
  EXPECT_EQ(memory.add({~uint64_t{0} - kPage + 2, kPage}, file), EINVAL);
  ASSERT_EQ(memory.add({kAddress, kPage}, file), 0);
  EXPECT_EQ(memory.add({kAddress, kPage}, file), EINVAL);
  EXPECT_EQ(memory.add({kAddress - 1, kPage}, file), EINVAL);
  EXPECT_EQ(memory.add({kAddress + kPage - 1, kPage}, file), EINVAL);
  EXPECT_EQ(memory.add({kAddress - kPage, 3 * kPage}, files), EINVAL);
  EXPECT_EQ(memory.add({kAddress + kPage, kPage}, file), 0);
  EXPECT_EQ(memory.add({kAddress - kPage, kPage}, file), 0);
}

TEST_F(Lent, OnlySoMuch) {
  const UniqueFd file = memory_file(kPage);
  const UniqueFd most = memory_file(abi::kMaxLentBytes);
  ASSERT_EQ(memory.add({kAddress, abi::kMaxLentBytes}, most), 0);
  EXPECT_EQ(memory.add({kAddress - kPage, kPage}, file), ENOSPC);
  ASSERT_EQ(memory.remove(kAddress), 0);
  for (uint64_t i = 0; i < abi::kMaxLentPieces; ++i) {
    ASSERT_EQ(memory.add({kAddress + i * kPage, kPage}, file), 0);
  }
  EXPECT_EQ(memory.add({kAddress - kPage, kPage}, file), ENOSPC);
}

}  // namespace
}  // namespace rocemu::daemon
