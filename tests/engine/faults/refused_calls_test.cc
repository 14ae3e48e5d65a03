// Tests calls that the provider refuses. The engine executes nothing for them, but rules and
// recordings contain them, and the answer is the errno that the program gets.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/engine/faults/rules.h"
#include "tests/support/bench.h"

namespace rocemu::test {
namespace {

using abi::Op;
using engine::ClientId;

class RefusedCall : public testing::Test {
 protected:
  RefusedCall() { bench.attach(kClient, engine::DeviceIndex{0}); }
  int refuse(Op op, int error, uint32_t handle = 0) {
    abi::Request::Body body{};
    body.object.handle = handle;
    return bench.command(kClient, op, body, error).error;
  }
  uint32_t alloc_pd() { return bench.command(kClient, Op::kAllocPd, {}).body.object.handle; }

  static constexpr ClientId kClient{1};
  Bench bench{engine::default_fabric(1)};
};

TEST_F(RefusedCall, DoesNothingAndIsAnsweredWithItsErrno) {
  const uint32_t pd = alloc_pd();
  EXPECT_EQ(refuse(Op::kDeallocPd, EBUSY, pd), EBUSY);
  EXPECT_EQ(refuse(Op::kAllocPd, ENOMEM), ENOMEM);
  EXPECT_EQ(refuse(Op::kCreateCq, EINVAL), EINVAL);
  abi::Request::Body body{};
  body.object.handle = pd;
  EXPECT_EQ(bench.command(kClient, Op::kDeallocPd, body).error, 0) << "it is still there";
}

TEST_F(RefusedCall, IsCountedByRulesWhichMayChangeItsErrno) {
  add_rules(bench, "{on: verb, verb: dealloc_pd, nth: 2, do: {errno: EIO}}");
  EXPECT_EQ(refuse(Op::kDeallocPd, EBUSY, 1), EBUSY);
  EXPECT_EQ(refuse(Op::kDeallocPd, EBUSY, 1), EIO);
  EXPECT_EQ(refuse(Op::kDeallocPd, EBUSY, 1), EBUSY);
}

TEST_F(RefusedCall, IsEioIfTheDeviceIsGone) {
  bench.step(engine::RemoveDevice{engine::DeviceIndex{0}});
  EXPECT_EQ(refuse(Op::kDeallocPd, EBUSY, 1), EIO);
}

}  // namespace
}  // namespace rocemu::test
