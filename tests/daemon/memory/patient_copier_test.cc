// Tests copies to and from a page whose contents the kernel gets only after a delay, by both ways
// to access a process's memory. The accessed process is the test itself.
#include "emulator/daemon/memory/patient_copier.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tests/system/memory/late_page.h"

namespace rocemu::daemon {
namespace {

using engine::MemoryResult;
using engine::RemoteRange;
using system_test::LatePage;

struct Way {
  const char* name;
  bool by_mem_file;
  system_test::MakeLatePage make_page;

  friend void PrintTo(const Way& way, std::ostream* to) { *to << way.name; }
};

class PatientCopierTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    std::string why;
    page_ = GetParam().make_page(&why);
    if (page_ == nullptr) GTEST_SKIP() << why;
    returned_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    UniqueFd file;
    if (GetParam().by_mem_file) file.reset(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
    const MemoryReach reach(getpid(), std::move(file), GetParam().by_mem_file);
    ASSERT_NE(reach.way(), MemoryReach::Way::kNone);
    copier_ = PatientCopier::start(reach, returned_.get(), std::make_shared<WaitAllowance>());
    ASSERT_NE(copier_, nullptr);
  }

  MemoryResult read(void* from, std::vector<uint8_t>& to) {
    const std::array ranges{RemoteRange{reinterpret_cast<uint64_t>(from), to.size()}};
    const std::array<std::span<uint8_t>, 1> targets{to};
    return copier_->read(ranges, targets);
  }
  MemoryResult write(void* to, const std::vector<uint8_t>& from) {
    const std::array ranges{RemoteRange{reinterpret_cast<uint64_t>(to), from.size()}};
    const std::array<std::span<const uint8_t>, 1> sources{from};
    return copier_->write(ranges, sources);
  }
  /// Waits until the call that accesses the late page has returned.
  void wait_until_returned() {
    pollfd wanted{returned_.get(), POLLIN, 0};
    ASSERT_EQ(poll(&wanted, 1, 30'000), 1);
    uint64_t count = 0;
    ASSERT_EQ(::read(returned_.get(), &count, sizeof(count)), sizeof(count));
    EXPECT_EQ(count, 1u);
  }

  std::unique_ptr<LatePage> page_;
  UniqueFd returned_;
  std::unique_ptr<PatientCopier> copier_;
};

TEST_P(PatientCopierTest, CopiesAvailableMemoryAtOnce) {
  std::vector<uint8_t> memory{1, 2, 3}, copy(3);
  EXPECT_EQ(read(memory.data(), copy), MemoryResult::kDone);
  EXPECT_EQ(copy, memory);
  EXPECT_EQ(write(memory.data(), {4, 5, 6}), MemoryResult::kDone);
  EXPECT_EQ(memory, (std::vector<uint8_t>{4, 5, 6}));
  EXPECT_EQ(read(nullptr, copy), MemoryResult::kFault);
}

TEST_P(PatientCopierTest, TellsWhenALateReadHasReturned) {
  std::vector<uint8_t> copy(3);
  EXPECT_EQ(read(page_->data(), copy), MemoryResult::kNotYet);
  page_->provide();
  wait_until_returned();
  EXPECT_EQ(copy, std::vector<uint8_t>(3)) << "nobody was there any more to take it";
  EXPECT_EQ(read(page_->data(), copy), MemoryResult::kDone);
  EXPECT_EQ(copy, std::vector<uint8_t>(3, LatePage::kProvided));
}

TEST_P(PatientCopierTest, FinishesALateWriteWithTheBytesThatItWasGiven) {
  std::vector<uint8_t> bytes{1, 2, 3};
  EXPECT_EQ(write(page_->data(), bytes), MemoryResult::kNotYet);
  bytes.assign(3, 9);
  page_->provide();
  wait_until_returned();
  EXPECT_EQ(std::vector<uint8_t>(page_->data(), page_->data() + 3),
            (std::vector<uint8_t>{1, 2, 3}));
}

// While a call waits for the late page, nothing else is written: later data must not become visible
// before the call's data.
TEST_P(PatientCopierTest, DuringALateCallWritesNothingElse) {
  std::vector<uint8_t> memory(3);
  EXPECT_EQ(write(page_->data(), {1}), MemoryResult::kNotYet);
  EXPECT_EQ(write(memory.data(), {1, 2, 3}), MemoryResult::kNotYet);
  EXPECT_EQ(memory, std::vector<uint8_t>(3));
  page_->provide();
  wait_until_returned();
  EXPECT_EQ(write(memory.data(), {1, 2, 3}), MemoryResult::kDone);
}

TEST_P(PatientCopierTest, MayGoWhileItsCallIsLate) {
  std::vector<uint8_t> copy(3);
  EXPECT_EQ(read(page_->data(), copy), MemoryResult::kNotYet);
  copier_.reset();
  page_->provide();
  wait_until_returned();
}

INSTANTIATE_TEST_SUITE_P(By, PatientCopierTest,
                         testing::Values(Way{"ProcessVmOfUserfaultfd", false,
                                             system_test::make_userfaultfd_page},
                                         Way{"ProcessVmOfFuse", false, system_test::make_fuse_page},
                                         Way{"MemFileOfFuse", true, system_test::make_fuse_page}),
                         [](const auto& by) { return std::string(by.param.name); });

}  // namespace
}  // namespace rocemu::daemon
