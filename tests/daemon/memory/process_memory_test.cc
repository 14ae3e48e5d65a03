// Tests both ways to access another process's memory, with all kinds of ranges that a client may
// name.
#include "emulator/daemon/memory/process_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <vector>

#include "tests/support/page_size.h"

namespace rocemu::daemon {
namespace {

using engine::MemoryResult;
using engine::RemoteRange;
using Buffer = std::vector<uint8_t>;

constexpr engine::ClientId kClient{1};

/// A child with four pages: pages 0 and 1 are filled with the page's number + 1, page 2 is
/// unmapped, and page 3 is read-only.
class Child {
 public:
  Child() {
    base_ = static_cast<uint8_t*>(
        mmap(nullptr, 4 * kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (const size_t page : {0u, 1u, 3u})
      std::memset(base_ + page * kPageSize, static_cast<int>(page) + 1, kPageSize);
    munmap(base_ + 2 * kPageSize, kPageSize);
    mprotect(base_ + 3 * kPageSize, kPageSize, PROT_READ);
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      [[maybe_unused]] const ssize_t size = write(ready[1], "r", 1);
      while (true) pause();
    }
    char byte;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
  }
  ~Child() {
    kill_it();
    munmap(base_, 2 * kPageSize);
    munmap(base_ + 3 * kPageSize, kPageSize);
  }

  void kill_it() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  UniqueFd open_memory() const {
    return UniqueFd(open(("/proc/" + std::to_string(pid_) + "/mem").c_str(), O_RDWR | O_CLOEXEC));
  }
  bool can_be_read_by_process_vm() const {
    char byte;
    const iovec local{&byte, 1};
    const iovec remote{base_, 1};
    return process_vm_readv(pid_, &local, 1, &remote, 1, 0) == 1;
  }
  pid_t pid() const { return pid_; }
  uint64_t address(size_t offset) const { return reinterpret_cast<uint64_t>(base_) + offset; }

 private:
  uint8_t* base_;
  pid_t pid_;
};

class ProcessMemoryTest : public testing::TestWithParam<ProcessMemory::Way> {
 protected:
  void SetUp() override {
    const bool by_file = GetParam() == ProcessMemory::Way::kMemFile;
    const ProcessMemory::Way way =
        memory.add(kClient, child.pid(), child.open_memory(), /*prefer_mem_file=*/by_file);
    if (!by_file && !child.can_be_read_by_process_vm()) {
      GTEST_SKIP() << "no process_vm_readv for a child here: " << strerror(errno);
    }
    ASSERT_EQ(way, GetParam());
  }

  MemoryResult read(std::vector<RemoteRange> from, Buffer& to) {
    const std::span<uint8_t> buffers[] = {to};
    return memory.read(kClient, from, buffers);
  }
  MemoryResult write(std::vector<RemoteRange> to, const Buffer& from) {
    const std::span<const uint8_t> buffers[] = {from};
    return memory.write(kClient, to, buffers);
  }

  Child child;
  ProcessMemory memory;
};

TEST_P(ProcessMemoryTest, GathersAndScattersRangesOfDifferentCuts) {
  Buffer a(3), b(0), c(kPageSize);
  const std::span<uint8_t> to[] = {a, b, c};
  const RemoteRange from[] = {
      {child.address(kPageSize - 2), 4}, {0, 0}, {child.address(10), kPageSize - 1}};
  ASSERT_EQ(memory.read(kClient, from, to), MemoryResult::kDone);
  EXPECT_EQ(a, (Buffer{1, 1, 2}));
  EXPECT_EQ(c[0], 2);
  EXPECT_EQ(c[1], 1);
}

TEST_P(ProcessMemoryTest, WritesAcrossPages) {
  const Buffer bytes{7, 8, 9, 10};
  ASSERT_EQ(write({{child.address(kPageSize - 2), 4}}, bytes), MemoryResult::kDone);
  Buffer back(6);
  ASSERT_EQ(read({{child.address(kPageSize - 3), 6}}, back), MemoryResult::kDone);
  EXPECT_EQ(back, (Buffer{1, 7, 8, 9, 10, 2}));
}

TEST_P(ProcessMemoryTest, TakesMoreRangesThanOneSystemCallDoes) {
  constexpr size_t kRanges = 3 * IOV_MAX + 5;
  std::vector<RemoteRange> from;
  for (size_t i = 0; i < kRanges; ++i) from.push_back({child.address(i < 7 ? kPageSize : 0), 1});
  Buffer one(kRanges);
  ASSERT_EQ(read(from, one), MemoryResult::kDone);
  EXPECT_EQ(one.front(), 2);
  EXPECT_EQ(one.back(), 1);

  // The reverse case: one range is read into many buffers.
  Buffer bytes(2 * kPageSize);
  std::vector<std::span<uint8_t>> to;
  for (uint8_t& byte : bytes) to.emplace_back(&byte, 1);
  const RemoteRange whole[] = {{child.address(0), 2 * kPageSize}};
  ASSERT_EQ(memory.read(kClient, whole, to), MemoryResult::kDone);
  EXPECT_EQ(bytes[kPageSize - 1], 1);
  EXPECT_EQ(bytes[kPageSize], 2);
}

TEST_P(ProcessMemoryTest, EmptyRangesSucceed) {
  Buffer none;
  EXPECT_EQ(read({}, none), MemoryResult::kDone);
  EXPECT_EQ(read({{0, 0}}, none), MemoryResult::kDone);
}

TEST_P(ProcessMemoryTest, SaysWhenARangeIsNotMapped) {
  Buffer bytes(16);
  EXPECT_EQ(read({{child.address(2 * kPageSize), 16}}, bytes), MemoryResult::kFault);
  EXPECT_EQ(write({{child.address(2 * kPageSize), 16}}, bytes), MemoryResult::kFault);
  EXPECT_EQ(read({{child.address(2 * kPageSize - 8), 16}}, bytes), MemoryResult::kFault)
      << "half of it is mapped";
  EXPECT_EQ(write({{child.address(2 * kPageSize - 8), 16}}, bytes), MemoryResult::kFault);
  EXPECT_EQ(read({{child.address(0), 8}, {child.address(2 * kPageSize), 8}}, bytes),
            MemoryResult::kFault);
}

TEST_P(ProcessMemoryTest, InvalidAddressesAreFaults) {
  Buffer bytes(16);
  for (const uint64_t address :
       {uint64_t{0}, uint64_t{0x7fff'ffff'ffff'fff8}, uint64_t{0x8000'0000'0000'0000},
        uint64_t{0xffff'8000'0000'0000}, ~uint64_t{0}, ~uint64_t{15}}) {
    EXPECT_EQ(read({{address, 16}}, bytes), MemoryResult::kFault) << std::hex << address;
    EXPECT_EQ(write({{address, 16}}, bytes), MemoryResult::kFault) << std::hex << address;
  }
}

TEST_P(ProcessMemoryTest, SidesOfDifferentLengthAreRefused) {
  Buffer bytes(16);
  EXPECT_EQ(read({{child.address(0), 17}}, bytes), MemoryResult::kFault);
  EXPECT_EQ(read({{child.address(0), 15}}, bytes), MemoryResult::kFault);
}

TEST_P(ProcessMemoryTest, ReadOnlyPagesCanBeRead) {
  Buffer bytes(1);
  ASSERT_EQ(read({{child.address(3 * kPageSize), 1}}, bytes), MemoryResult::kDone);
  EXPECT_EQ(bytes[0], 4);
  // The two ways differ in whether they write to a read-only page (process_memory.h).
  if (GetParam() == ProcessMemory::Way::kProcessVm) {
    EXPECT_EQ(write({{child.address(3 * kPageSize), 1}}, bytes), MemoryResult::kFault);
  }
}

TEST_P(ProcessMemoryTest, ADeadProcessHasNoMemory) {
  child.kill_it();
  Buffer bytes(1);
  EXPECT_EQ(read({{child.address(0), 1}}, bytes), MemoryResult::kGone);
  EXPECT_EQ(write({{child.address(0), 1}}, bytes), MemoryResult::kGone);
}

TEST_P(ProcessMemoryTest, AClientThatWasRemovedHasNoMemory) {
  memory.remove(kClient);
  Buffer bytes(1);
  EXPECT_EQ(read({{child.address(0), 1}}, bytes), MemoryResult::kGone);
}

INSTANTIATE_TEST_SUITE_P(Ways, ProcessMemoryTest,
                         testing::Values(ProcessMemory::Way::kProcessVm,
                                         ProcessMemory::Way::kMemFile),
                         [](const auto& way) {
                           return way.param == ProcessMemory::Way::kProcessVm ? "ProcessVm"
                                                                              : "MemFile";
                         });

TEST(ProcessMemory, TakesNoFileThatIsNotOfProc) {
  ProcessMemory memory;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd write_end(ends[1]);
  // A client with PID 0 is outside our PID namespace, so its memory cannot be found by the PID
  // either.
  EXPECT_EQ(memory.add(kClient, 0, UniqueFd(ends[0])), ProcessMemory::Way::kNone);
  EXPECT_EQ(memory.add(kClient, 0, UniqueFd()), ProcessMemory::Way::kNone);
}

TEST(ProcessMemory, UsesTheMemFileWhereThePidSaysNothing) {
  Child child;
  ProcessMemory memory;
  ASSERT_EQ(memory.add(kClient, 0, child.open_memory()), ProcessMemory::Way::kMemFile);
  Buffer bytes(1);
  const std::span<uint8_t> to[] = {bytes};
  const RemoteRange from[] = {{child.address(kPageSize), 1}};
  ASSERT_EQ(memory.read(kClient, from, to), MemoryResult::kDone);
  EXPECT_EQ(bytes[0], 2);
}

// The client writes the slot's number and length, so both are checked.
TEST(PostedMemory, IsReadFromItsSlotIfThatExists) {
  const Child child;
  ProcessMemory memory;
  ASSERT_NE(memory.add(kClient, child.pid(), UniqueFd()), ProcessMemory::Way::kNone);
  const auto payload = std::make_unique<abi::Payload>();
  const auto ring = std::make_unique<abi::DoorbellRing>();
  std::ranges::fill(payload->sent.bytes[255], uint8_t{9});
  const auto first_byte = [&](uint32_t slot, uint64_t offset) {
    Buffer bytes(100);
    const RemoteRange from{child.address(0), bytes.size()};
    const std::array<std::span<uint8_t>, 2> to{std::span(bytes).first(60),
                                               std::span(bytes).last(40)};
    EXPECT_EQ(memory.read_posted(kClient, slot, offset, {&from, 1}, to), MemoryResult::kDone);
    EXPECT_EQ(bytes.front(), bytes.back());
    return bytes.front();
  };
  EXPECT_EQ(first_byte(255, 0), 1) << "none are shared yet";
  memory.share(kClient, *payload, *ring);
  EXPECT_EQ(first_byte(255, 0), 9);
  EXPECT_EQ(first_byte(255, abi::SendSlots::kMaxBytes - 100), 9);
  EXPECT_EQ(first_byte(255, abi::SendSlots::kMaxBytes - 99), 1);
  EXPECT_EQ(first_byte(256, 0), 1);
  EXPECT_EQ(first_byte(UINT32_MAX, UINT64_MAX - 10), 1);
  memory.use_send_slots(false);
  EXPECT_EQ(first_byte(255, 0), 1);
  memory.use_send_slots(true);
  EXPECT_EQ(first_byte(255, 0), 9);
}

}  // namespace
}  // namespace rocemu::daemon
