// Tests that other clients do not wait while the objects of a client that ended are removed, even
// if there are very many.
#include <gtest/gtest.h>

#include <cerrno>
#include <ctime>

#include "emulator/abi/advise_mr.h"
#include "tests/support/bench.h"
#include "tests/support/matchers.h"

namespace rocemu::test {
namespace {

using engine::ClientId;
using engine::DeviceIndex;

constexpr uint32_t kLocal = abi::kAccessLocalWrite;

/// Returns the processor time of this process alone, since other processes work at the same time.
double seconds_of_work() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class Release : public testing::Test {
 protected:
  engine::Outputs step(const engine::Input& input) {
    engine::Outputs outputs;
    bench.engine().step(bench.now(), input, outputs);
    return outputs;
  }
  size_t regions() const { return bench.engine().snapshot().devices[0].mrs.size(); }

  Bench bench{engine::default_fabric(1)};
  Client client{bench, ClientId{1}, DeviceIndex{0}};
  Client other{bench, ClientId{2}, DeviceIndex{0}};
};

TEST_F(Release, ManyObjectsOfAClientAreReleasedInManySteps) {
  constexpr uint32_t kMany = 50'000;
  const uint32_t pd = client.alloc_pd();
  const uint32_t other_pd = other.alloc_pd();
  for (uint32_t i = 0; i < kMany; ++i) client.reg_mr(pd, 0, 64, kLocal | abi::kAccessOnDemand);
  other.reg_mr(other_pd, 0, 64, kLocal | abi::kAccessOnDemand);
  step(engine::DetachClient{client.id()});
  uint32_t steps = 1;
  for (; bench.engine().next_deadline() == bench.now(); ++steps) {
    EXPECT_FALSE(bench.engine().is_idle());
    step(engine::Tick{});
  }
  EXPECT_GT(steps, 3u);
  EXPECT_EQ(regions(), 1u);
  EXPECT_TRUE(bench.engine().is_idle());
  EXPECT_EQ(other.dealloc_pd(other_pd), EBUSY) << "its region is still there";
}

TEST_F(Release, FewObjectsAreReleasedAtOnceAndClientsInOrder) {
  const uint32_t pd = client.alloc_pd();
  client.reg_mr(pd, 0, 64, kLocal | abi::kAccessOnDemand);
  other.reg_mr(other.alloc_pd(), 0, 64, kLocal | abi::kAccessOnDemand);
  step(engine::DetachClient{client.id()});
  EXPECT_EQ(regions(), 1u);
  step(engine::DetachClient{other.id()});
  EXPECT_EQ(regions(), 0u);
  EXPECT_FALSE(bench.engine().next_deadline());
}

// ibv_open_qp(3) creates any number of references.
TEST_F(Release, ManyReferencesToAnXrcQpAreReleasedTogether) {
  constexpr uint32_t kMany = 100'000;
  abi::Request::Body body{};
  body.open_xrcd = {.device = 1, .inode = 7, .create = 1, .exclusive = 0};
  const uint32_t xrcd = client.command(abi::Op::kOpenXrcd, body).body.object.handle;
  EXPECT_EQ(other.command(abi::Op::kOpenXrcd, body).body.object.handle, xrcd);
  const uint32_t target =
      client.create_qp({.xrcd = xrcd, .type = abi::QpType::kXrcRecv, .user_handle = 1});
  abi::Request::Body open{};
  for (uint32_t i = 0; i < kMany; ++i) {
    open.open_qp = {.user_handle = 2 + i, .xrcd = xrcd, .qpn = target};
    ASSERT_EQ(client.command(abi::Op::kOpenQp, open).error, 0);
  }
  ASSERT_EQ(other.command(abi::Op::kOpenQp, open).error, 0);
  const double before = seconds_of_work();
  bench.detach(client.id());
  EXPECT_LT(seconds_of_work() - before, 1.0);
  EXPECT_EQ(other.query_qp(target).qp_state, 0u);
  EXPECT_EQ(other.error, 0) << "the other still has it";
  bench.detach(other.id());
  EXPECT_EQ(bench.engine().snapshot().devices[0].qps.size(), 0u);
}

// ibv_advise_mr(3) with IBV_ADVISE_MR_FLAG_FLUSH checks each page, so a request is limited to
// kMaxFlushedBytes. The provider splits longer advice into several requests.
TEST_F(Release, LimitsTheMemoryThatOneRequestChecks) {
  const uint32_t pd = client.alloc_pd();
  const Mr all = client.reg_mr(pd, 0, ~uint64_t{0}, kLocal | abi::kAccessOnDemand);
  ASSERT_EQ(client.error, 0);
  constexpr auto kMax = static_cast<uint32_t>(abi::kMaxFlushedBytes);
  constexpr uint32_t kPrefetch = 0, kFlush = 1;
  EXPECT_EQ(client.advise_mr(pd, kPrefetch, kFlush, {{0, kMax, all.lkey}}), EFAULT);
  EXPECT_EQ(client.advise_mr(pd, kPrefetch, kFlush, {{0, kMax + 1, all.lkey}}), EINVAL);
  EXPECT_EQ(client.advise_mr(pd, kPrefetch, kFlush, {{0, kMax, all.lkey}, {0, 1, all.lkey}}),
            EINVAL);
  EXPECT_EQ(client.advise_mr(pd, kPrefetch, 0, {{0, ~uint32_t{0}, all.lkey}}), 0);
}

}  // namespace
}  // namespace rocemu::test
