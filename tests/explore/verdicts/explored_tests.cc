// Tests of GoogleTest to explore: one that handles a fault, and one that does not.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include "rocemu/explore.h"

namespace {

char buffer[4096];

class Buffer : public testing::Test {
 protected:
  void open() {
    devices_ = ibv_get_device_list(nullptr);
    ASSERT_NE(devices_, nullptr);
    ASSERT_NE(devices_[0], nullptr);
    context_ = ibv_open_device(devices_[0]);
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    ASSERT_NE(pd_, nullptr);
  }
  ~Buffer() override {
    if (pd_ != nullptr) ibv_dealloc_pd(pd_);
    if (context_ != nullptr) ibv_close_device(context_);
    if (devices_ != nullptr) ibv_free_device_list(devices_);
  }

  ibv_device** devices_ = nullptr;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
};

TEST_F(Buffer, IsRegistered) {
  ROCEMU_EXPLORE("--only", "verbs:reg_mr");
  ASSERT_NO_FATAL_FAILURE(open());
  ibv_mr* const mr = ibv_reg_mr(pd_, buffer, sizeof buffer, 0);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Buffer, IsBelievedToBeRegistered) {
  ROCEMU_EXPLORE("--only", "verbs:reg_mr");
  ASSERT_NO_FATAL_FAILURE(open());
  ibv_mr* const mr = ibv_reg_mr(pd_, buffer, sizeof buffer, 0);
  EXPECT_EQ(mr->length, sizeof buffer);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST(Others, AreNotExplored) {
  EXPECT_FALSE(rocemu::testing::is_explored());
}

TEST(Explore, ThrowsIfACommandCannotBeExplored) {
  EXPECT_THROW(rocemu::testing::explore({"true"}, "nothing"), rocemu::testing::Error);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
