// Tests a client's reports about changes of its mappings, and which accesses they affect.
#include "emulator/daemon/memory/mapping_changes.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

namespace rocemu::daemon {
namespace {

using abi::MappingCall;

class MappingChangesTest : public testing::Test {
 protected:
  MappingChangesTest() { changes_.share(*shared_); }

  void report(uint64_t begin, uint64_t end, MappingCall call = MappingCall::kMunmap) {
    auto& entry = shared_->entries[shared_->count % abi::MappingChanges::kCount];
    entry.begin = begin;
    entry.end = end;
    entry.call = call;
    ++shared_->count;
  }
  bool concerns(uint64_t address, uint64_t length) {
    const std::array<engine::RemoteRange, 2> ranges{{{10, 1}, {address, length}}};
    return changes_.find(ranges).has_value();
  }

  std::unique_ptr<abi::MappingChanges> shared_ = std::make_unique<abi::MappingChanges>();
  MappingChanges changes_;
};

TEST_F(MappingChangesTest, AreAboutTheBytesThatWereMappedAnew) {
  EXPECT_FALSE(changes_.may_be_any());
  report(4096, 8192, MappingCall::kMadvise);
  EXPECT_TRUE(changes_.may_be_any());
  EXPECT_FALSE(concerns(4000, 96));
  EXPECT_TRUE(concerns(4000, 97));
  EXPECT_TRUE(concerns(8191, 100));
  EXPECT_FALSE(concerns(8192, 100));
  const std::array<engine::RemoteRange, 1> range{{{5000, 1}}};
  EXPECT_EQ(changes_.find(range)->call, MappingCall::kMadvise);
}

// After the change, ibv_reg_mr(3) pins the new pages, so the change does not matter any more.
TEST_F(MappingChangesTest, AreForgottenWhereMemoryIsRegisteredAfterwards) {
  report(4096, 20480);
  changes_.forget(8192, 12288);
  EXPECT_TRUE(concerns(4096, 4096));
  EXPECT_FALSE(concerns(8192, 4096));
  EXPECT_TRUE(concerns(12288, 4096));
  changes_.forget(0, UINT64_MAX);
  EXPECT_FALSE(changes_.may_be_any());
  report(8192, 8193);
  EXPECT_TRUE(concerns(8192, 1)) << "a change after the registration";
}

TEST_F(MappingChangesTest, AreTheLatestOnesIfThereAreTooMany) {
  for (uint64_t i = 0; i < 100; ++i) report(i * 4096, (i + 1) * 4096);
  EXPECT_FALSE(concerns(35 * 4096 + 1, 1));
  EXPECT_TRUE(concerns(36 * 4096 + 1, 1)) << "the oldest of the latest 64";
  EXPECT_TRUE(concerns(99 * 4096 + 1, 1));
}

// The reports are in shared memory, so any value is possible.
TEST_F(MappingChangesTest, AreSkippedIfTheyAreInvalid) {
  report(8192, 4096);
  report(4096, 8192, static_cast<MappingCall>(77));
  EXPECT_FALSE(concerns(4096, 4096));
  shared_->count = UINT32_MAX;
  EXPECT_FALSE(concerns(1 << 20, 4096));
  for (int i = 0; i < 1000; ++i) {
    shared_->count += 63;
    concerns(0, 1);
  }
}

}  // namespace
}  // namespace rocemu::daemon
