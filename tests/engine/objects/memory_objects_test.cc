// Tests regions of every kind, their reregistration, advice, windows as objects, device memory, and
// objects that two clients share: ibv_reg_mr(3), ibv_rereg_mr(3), ibv_advise_mr(3),
// ibv_alloc_mw(3), ibv_alloc_null_mr(3), ibv_alloc_dm(3), ibv_import_pd(3), ibv_import_mr(3).
#include <gtest/gtest.h>

#include <cerrno>

#include "emulator/engine/base/limits.h"
#include "tests/support/endpoint.h"
#include "tests/support/matchers.h"

namespace rocemu::test {
namespace {

using abi::MwType;
using engine::ClientId;
using engine::DeviceIndex;

constexpr uint64_t kHuge = ~uint64_t{0};
constexpr uint64_t kBuffer = 0x10000;
constexpr uint64_t kSize = 0x3000;
constexpr uint32_t kLocal = abi::kAccessLocalWrite;

class MemoryObjects : public testing::Test {
 protected:
  MemoryObjects() { bench.memory.map(client.id(), kBuffer, kSize); }
  void TearDown() override {
    for (const Timed& entry : bench.log) ADD_FAILURE() << to_string(entry.output);
  }

  abi::Reply query_mr(Client& by, uint32_t handle) {
    abi::Request::Body body{};
    body.object.handle = handle;
    return by.command(abi::Op::kQueryMr, body);
  }
  int error_of_reg(uint64_t address, uint64_t length, uint32_t access,
                   std::optional<uint64_t> iova = {}) {
    client.reg_mr(pd, address, length, access, iova);
    return client.error;
  }

  Bench bench{engine::default_fabric(2)};
  Client client{bench, ClientId{1}, DeviceIndex{0}};
  Client stranger{bench, ClientId{2}, DeviceIndex{0}};
  uint32_t pd = client.alloc_pd();
};

// ---- Registration -----------------------------------------------------------------------------

TEST_F(MemoryObjects, OnDemandRegionsAreRegisteredWithoutAccess) {
  EXPECT_EQ(error_of_reg(0x900000, 64, kLocal), EFAULT);
  EXPECT_EQ(error_of_reg(0x900000, 64, kLocal | abi::kAccessOnDemand), 0);
  EXPECT_EQ(error_of_reg(kHuge - 10, 64, abi::kAccessOnDemand), EINVAL) << "wraps all the same";
  EXPECT_EQ(bench.memory.reads, 1u) << "by the first";
}

TEST_F(MemoryObjects, ImplicitOnDemandIsTheWholeAddressSpace) {
  EXPECT_EQ(error_of_reg(0, kHuge, abi::kAccessOnDemand | kLocal), 0);
  EXPECT_EQ(error_of_reg(0, kHuge, kLocal), EFAULT) << "without on-demand";
  EXPECT_EQ(error_of_reg(0, kHuge, abi::kAccessOnDemand, 0x1000), EINVAL);
  // ibv_reg_mr(3), IBV_ACCESS_HUGETLB: "applicable with IBV_ACCESS_ON_DEMAND in explicit mode only"
  EXPECT_EQ(error_of_reg(0, kHuge, abi::kAccessOnDemand | abi::kAccessHugetlb), EINVAL);
  EXPECT_EQ(error_of_reg(kBuffer, 8, abi::kAccessOnDemand | abi::kAccessHugetlb), 0);
}

TEST_F(MemoryObjects, RegionsMayBeEmptyOrLieAtAnyIova) {
  EXPECT_EQ(error_of_reg(kBuffer, 0, kLocal), 0);
  EXPECT_EQ(error_of_reg(0, 0, kLocal), 0);
  EXPECT_EQ(error_of_reg(kBuffer, kSize, kLocal, 0), 0);
  EXPECT_EQ(error_of_reg(kBuffer, kSize, kLocal, kHuge - kSize), 0);
  EXPECT_EQ(error_of_reg(kBuffer, kSize, kLocal, kHuge - kSize + 1), EINVAL);
}

TEST_F(MemoryObjects, OptionalAndFlushAccessIsAccepted) {
  EXPECT_EQ(error_of_reg(kBuffer, 8, abi::kAccessRelaxedOrdering), 0);
  EXPECT_EQ(error_of_reg(kBuffer, 8, 0x3ff00000), 0);
  EXPECT_EQ(error_of_reg(kBuffer, 8, abi::kAccessFlushGlobal | abi::kAccessFlushPersistent), 0);
  EXPECT_EQ(error_of_reg(kBuffer, 8, 1u << 10), EOPNOTSUPP);
  EXPECT_EQ(error_of_reg(kBuffer, 8, 1u << 30), EOPNOTSUPP);
}

TEST_F(MemoryObjects, NullRegionsNeedNoMemory) {
  const Mr null = client.alloc_null_mr(pd);
  EXPECT_EQ(client.error, 0);
  EXPECT_EQ(null.rkey, 0u) << "ibv_alloc_null_mr(3): not exposed as an rkey";
  EXPECT_EQ(query_mr(client, null.handle).body.reg_mr.length, kHuge);
  client.rereg_mr(null.handle, abi::kReregAccess, 0, 0, 0, kLocal);
  EXPECT_EQ(client.error, EINVAL);
  EXPECT_EQ(client.dereg_mr(null.handle), 0);
  stranger.alloc_null_mr(pd);
  EXPECT_EQ(stranger.error, ENOENT);
}

TEST_F(MemoryObjects, ARegionOfAnUnknownKindIsRefused) {
  abi::Request::Body body{};
  body.reg_mr.pd = pd;
  body.reg_mr.kind = static_cast<abi::RegionKind>(3);
  EXPECT_EQ(client.command(abi::Op::kRegMr, body).error, EINVAL);
}

TEST_F(MemoryObjects, ARegionCanBeQueried) {
  const Mr mr = client.reg_mr(pd, kBuffer + 8, 100, kLocal);
  const abi::Reply reply = query_mr(client, mr.handle);
  EXPECT_EQ(reply.error, 0);
  EXPECT_EQ(reply.body.reg_mr.handle, mr.handle);
  EXPECT_EQ(reply.body.reg_mr.lkey, mr.lkey);
  EXPECT_EQ(reply.body.reg_mr.rkey, mr.rkey);
  EXPECT_EQ(reply.body.reg_mr.address, kBuffer + 8);
  EXPECT_EQ(reply.body.reg_mr.length, 100u);
  EXPECT_EQ(query_mr(stranger, mr.handle).error, ENOENT);
  EXPECT_EQ(query_mr(client, mr.handle + 1).error, ENOENT);
  EXPECT_EQ(query_mr(client, 0).error, ENOENT);
}

// ---- Reregistration ---------------------------------------------------------------------------

class Rereg : public MemoryObjects {
 protected:
  static constexpr uint32_t kOdp = abi::kAccessOnDemand | kLocal;

  // Returns the errno of advise_mr, which is the simplest test of an L_Key: it is 0 if the key's
  // region contains the `length` bytes from `address` on.
  int reach(uint32_t in_pd, uint32_t lkey, uint64_t address, uint32_t length) {
    return client.advise_mr(in_pd, 0, 1, {{address, length, lkey}});
  }
};

TEST_F(Rereg, ChangesTheTranslation) {
  const Mr mr = client.reg_mr(pd, kBuffer, 64, kOdp);
  const Mr now = client.rereg_mr(mr.handle, abi::kReregTranslation, 0, kBuffer + 64, 32, 0);
  ASSERT_EQ(client.error, 0);
  EXPECT_EQ(now.handle, mr.handle);
  EXPECT_EQ(reach(pd, mr.lkey, kBuffer, 8), ENOENT) << "the old key";
  EXPECT_EQ(reach(pd, now.lkey, kBuffer, 8), EFAULT);
  EXPECT_EQ(reach(pd, now.lkey, kBuffer + 64, 32), 0);
  EXPECT_EQ(reach(pd, now.lkey, kBuffer + 64, 33), EFAULT);
}

TEST_F(Rereg, ChangesThePd) {
  const Mr mr = client.reg_mr(pd, kBuffer, 64, kOdp);
  const uint32_t other = client.alloc_pd();
  const Mr now = client.rereg_mr(mr.handle, abi::kReregPd, other, 0, 0, 0);
  ASSERT_EQ(client.error, 0);
  EXPECT_EQ(now.lkey, mr.lkey);
  EXPECT_EQ(now.rkey, mr.rkey);
  EXPECT_EQ(reach(pd, now.lkey, kBuffer, 8), EPERM);
  EXPECT_EQ(reach(other, now.lkey, kBuffer, 8), 0);
  EXPECT_EQ(client.dealloc_pd(pd), 0) << "no longer used";
  EXPECT_EQ(client.dealloc_pd(other), EBUSY);
}

TEST_F(Rereg, ChangesTheAccess) {
  const Mr mr = client.reg_mr(pd, kBuffer, 64, abi::kAccessOnDemand);
  constexpr uint32_t kPrefetchWrite = 1;
  EXPECT_EQ(client.advise_mr(pd, kPrefetchWrite, 0, {{kBuffer, 8, mr.lkey}}), EPERM);
  const Mr now = client.rereg_mr(mr.handle, abi::kReregAccess, 0, 0, 0, kOdp);
  ASSERT_EQ(client.error, 0);
  EXPECT_EQ(now.lkey, mr.lkey);
  EXPECT_EQ(now.rkey, mr.rkey);
  EXPECT_EQ(client.advise_mr(pd, kPrefetchWrite, 0, {{kBuffer, 8, now.lkey}}), 0);
}

TEST_F(Rereg, ChangesEverythingAtOnce) {
  const Mr mr = client.reg_mr(pd, kBuffer, 64, kLocal);
  const uint32_t other = client.alloc_pd();
  const Mr now =
      client.rereg_mr(mr.handle, abi::kReregTranslation | abi::kReregPd | abi::kReregAccess, other,
                      kBuffer + 0x1000, 0x2000, kOdp | abi::kAccessZeroBased);
  ASSERT_EQ(client.error, 0);
  EXPECT_EQ(reach(other, now.lkey, 0, 0x2000), 0);
  EXPECT_EQ(reach(other, now.lkey, 0, 0x2001), EFAULT);
  const Mr back = client.rereg_mr(mr.handle, abi::kReregAccess, 0, 0, 0, kOdp);
  ASSERT_EQ(client.error, 0);
  EXPECT_EQ(reach(other, back.lkey, kBuffer + 0x1000, 0x2000), 0) << "by its address again";
}

// ibv_rereg_mr(3) does not define the region's state after a failure; here the region does not
// change.
TEST_F(Rereg, ThatFailsLeavesTheRegionAsItWas) {
  const Mr mr = client.reg_mr(pd, kBuffer, 64, kOdp);
  const uint32_t foreign = stranger.alloc_pd();
  struct Case {
    uint32_t flags, pd;
    uint64_t address, length;
    uint32_t access;
    int error;
  };
  constexpr uint32_t kAccess = abi::kReregAccess, kWhere = abi::kReregTranslation;
  for (const Case& one :
       {Case{0, 0, 0, 0, 0, EINVAL}, Case{8, 0, 0, 0, 0, EINVAL},
        Case{kWhere | 8, 0, kBuffer, 8, 0, EINVAL}, Case{abi::kReregPd, foreign, 0, 0, 0, ENOENT},
        Case{abi::kReregPd, 99, 0, 0, 0, ENOENT},
        Case{kAccess, 0, 0, 0, abi::kAccessRemoteWrite, EINVAL},
        Case{kAccess, 0, 0, 0, 1u << 10, EOPNOTSUPP}, Case{kWhere, 0, kHuge - 1, 64, 0, EINVAL},
        Case{kWhere | kAccess, 0, 0x900000, 64, kLocal, EFAULT}}) {
    client.rereg_mr(mr.handle, one.flags, one.pd, one.address, one.length, one.access);
    EXPECT_EQ(client.error, one.error);
    EXPECT_EQ(reach(pd, mr.lkey, kBuffer, 64), 0);
    EXPECT_EQ(reach(pd, mr.lkey, kBuffer, 65), EFAULT);
  }
  stranger.rereg_mr(mr.handle, kAccess, 0, 0, 0, kLocal);
  EXPECT_EQ(stranger.error, ENOENT);
  client.rereg_mr(mr.handle + 1, kAccess, 0, 0, 0, kLocal);
  EXPECT_EQ(client.error, ENOENT);
}

// ---- Advice -----------------------------------------------------------------------------------

TEST_F(MemoryObjects, AdviceIsCheckedAsItsManPageSays) {
  const Mr odp = client.reg_mr(pd, kBuffer, kSize, abi::kAccessOnDemand);
  const Mr pinned = client.reg_mr(pd, kBuffer, kSize, kLocal);
  const uint32_t other = client.alloc_pd();
  const abi::Sge good{kBuffer, 8, odp.lkey};
  enum : uint32_t { kPrefetch, kPrefetchWrite, kPrefetchNoFault };
  EXPECT_EQ(client.advise_mr(pd, kPrefetch, 0, {good}), 0);
  EXPECT_EQ(client.advise_mr(pd, kPrefetch, 1, {good, good}), 0);
  EXPECT_EQ(client.advise_mr(pd, kPrefetchNoFault, 1, {good}), 0);
  EXPECT_EQ(client.advise_mr(pd, 3, 0, {good}), ENOTSUP);
  EXPECT_EQ(client.advise_mr(pd, kPrefetch, 2, {good}), EINVAL) << "flags";
  EXPECT_EQ(client.advise_mr(99, kPrefetch, 0, {good}), ENOENT) << "no PD";
  EXPECT_EQ(stranger.advise_mr(pd, kPrefetch, 0, {good}), ENOENT);
  EXPECT_EQ(client.advise_mr(pd, kPrefetch, 0, {}), EINVAL);
  EXPECT_EQ(client.advise_mr(pd, kPrefetch, 0, std::vector(abi::kMaxAdviseSges + 1, good)), EINVAL);
  EXPECT_EQ(client.advise_mr(pd, kPrefetch, 0, std::vector(abi::kMaxAdviseSges, good)), 0);
  EXPECT_EQ(client.advise_mr(other, kPrefetch, 0, {good}), EPERM);
  EXPECT_EQ(client.advise_mr(pd, kPrefetchWrite, 0, {good}), EPERM);
  EXPECT_EQ(client.advise_mr(pd, kPrefetch, 0, {{kBuffer, 8, pinned.lkey}}), EINVAL);
  EXPECT_EQ(client.advise_mr(pd, kPrefetch, 0, {{kBuffer, 8, odp.rkey}}), ENOENT);
  EXPECT_EQ(client.advise_mr(pd, kPrefetch, 0, {good, {kBuffer + kSize, 1, odp.lkey}}), EFAULT);
  EXPECT_EQ(client.advise_mr(pd, kPrefetch, 0, {{kBuffer - 1, 1, odp.lkey}}), EFAULT);
}

// ibv_advise_mr(3), IBV_ADVISE_MR_FLAG_FLUSH: "the underlying pages are guaranteed to be updated in
// the HCA before returning"; EFAULT "when parts of it are not part of the process address space".
TEST_F(MemoryObjects, FlushedAdviceChecksEveryPage) {
  constexpr uint64_t kHole = 0x400000;
  constexpr uint32_t kPages = 600;
  bench.memory.map(client.id(), kHole, kPages * 4096);
  const Mr all = client.reg_mr(pd, 0, kHuge, abi::kAccessOnDemand);
  const abi::Sge whole{kHole + 4095, (kPages - 1) * 4096 + 1, all.lkey};
  EXPECT_EQ(client.advise_mr(pd, 0, 1, {whole}), 0);
  bench.memory.map(client.id(), kHole, (kPages - 1) * 4096);  // the last page is missing
  EXPECT_EQ(client.advise_mr(pd, 0, 1, {whole}), EFAULT);
  EXPECT_EQ(client.advise_mr(pd, 0, 0, {whole}), 0) << "best effort";
  EXPECT_EQ(client.advise_mr(pd, 2, 1, {whole}), 0) << "without faulting";
}

// ---- Windows ----------------------------------------------------------------------------------

TEST_F(MemoryObjects, AWindowNeedsAPdAndAType) {
  const Mw one = client.alloc_mw(pd, MwType::k1);
  EXPECT_EQ(client.error, 0);
  const Mw two = client.alloc_mw(pd, MwType::k2);
  EXPECT_EQ(client.error, 0);
  EXPECT_NE(one.rkey >> 8, two.rkey >> 8);
  client.alloc_mw(99, MwType::k1);
  EXPECT_EQ(client.error, ENOENT);
  stranger.alloc_mw(pd, MwType::k1);
  EXPECT_EQ(stranger.error, ENOENT);
  client.alloc_mw(pd, static_cast<MwType>(0));
  EXPECT_EQ(client.error, EINVAL);
  client.alloc_mw(pd, static_cast<MwType>(3));
  EXPECT_EQ(client.error, EINVAL);
  EXPECT_EQ(client.dealloc_pd(pd), EBUSY);
  EXPECT_EQ(stranger.dealloc_mw(one.handle), ENOENT);
  EXPECT_EQ(client.dereg_mr(one.handle), ENOENT) << "a window is no region";
  EXPECT_EQ(client.dealloc_mw(one.handle), 0);
  EXPECT_EQ(client.dealloc_mw(one.handle), ENOENT);
  EXPECT_EQ(client.dealloc_mw(two.handle), 0);
  EXPECT_EQ(client.dealloc_pd(pd), 0);
}

// ---- Device memory ----------------------------------------------------------------------------

TEST_F(MemoryObjects, DeviceMemoryIsLimitedPerDevice) {
  Client elsewhere{bench, ClientId{3}, DeviceIndex{1}};
  const uint32_t most = client.alloc_dm(engine::kMaxDeviceMemory - 100);
  EXPECT_EQ(client.error, 0);
  stranger.alloc_dm(101);
  EXPECT_EQ(stranger.error, ENOMEM);
  stranger.alloc_dm(kHuge);
  EXPECT_EQ(stranger.error, ENOMEM);
  const uint32_t rest = stranger.alloc_dm(100);
  EXPECT_EQ(stranger.error, 0);
  elsewhere.alloc_dm(engine::kMaxDeviceMemory);
  EXPECT_EQ(elsewhere.error, 0);
  EXPECT_EQ(client.free_dm(rest), ENOENT);
  EXPECT_EQ(client.free_dm(most), 0);
  EXPECT_EQ(client.free_dm(most), ENOENT);
  bench.detach(stranger.id());
  client.alloc_dm(engine::kMaxDeviceMemory);
  EXPECT_EQ(client.error, 0) << "what the client held is free again";
}

TEST_F(MemoryObjects, DeviceMemoryHasALengthAndAnAlignmentThatCanBe) {
  client.alloc_dm(0);
  EXPECT_EQ(client.error, EINVAL);
  client.alloc_dm(64, engine::kMaxDeviceMemoryLogAlign);
  EXPECT_EQ(client.error, 0);
  client.alloc_dm(64, engine::kMaxDeviceMemoryLogAlign + 1);
  EXPECT_EQ(client.error, EINVAL);
  client.alloc_dm(64, 0xffffffff);
  EXPECT_EQ(client.error, EINVAL);
}

// ---- Sharing ----------------------------------------------------------------------------------

class Sharing : public MemoryObjects {
 protected:
  Client partner{bench, ClientId{4}, DeviceIndex{0}, client.id()};
  Client third{bench, ClientId{5}, DeviceIndex{0}, partner.id()};
};

TEST_F(Sharing, GivesTheObjectsOfEachToAll) {
  const Mr mr = client.reg_mr(pd, kBuffer, 64, kLocal);
  const uint32_t dm = client.alloc_dm(64);
  for (Client* one : {&client, &partner, &third}) {
    EXPECT_EQ(one->query_pd(pd), 0);
    EXPECT_EQ(query_mr(*one, mr.handle).body.reg_mr.lkey, mr.lkey);
  }
  EXPECT_EQ(stranger.query_pd(pd), ENOENT);
  EXPECT_EQ(client.query_pd(third.alloc_pd()), 0);
  EXPECT_EQ(third.dereg_mr(mr.handle), 0);
  EXPECT_EQ(partner.free_dm(dm), 0);
  EXPECT_EQ(partner.dealloc_pd(pd), 0);
  EXPECT_EQ(client.query_pd(pd), ENOENT);
}

TEST_F(Sharing, RegistersTheMemoryOfTheCallingClient) {
  constexpr uint64_t kTheirs = 0x700000;
  bench.memory.map(partner.id(), kTheirs, 64);
  client.reg_mr(pd, kTheirs, 64);
  EXPECT_EQ(client.error, EFAULT);
  const Mr mr = partner.reg_mr(pd, kTheirs, 64);
  EXPECT_EQ(partner.error, 0);
  client.rereg_mr(mr.handle, abi::kReregTranslation, 0, kTheirs, 32, 0);
  EXPECT_EQ(client.error, EFAULT);
  client.rereg_mr(mr.handle, abi::kReregAccess, 0, 0, 0, kLocal);
  EXPECT_EQ(client.error, 0) << "still the partner's memory";
}

TEST_F(Sharing, KeepsAPdUntilItsLastClientLeaves) {
  const Mr ours = client.reg_mr(pd, kBuffer, 64);
  constexpr uint64_t kTheirs = 0x700000;
  bench.memory.map(third.id(), kTheirs, 64);
  const Mr theirs = third.reg_mr(pd, kTheirs, 64);
  bench.detach(client.id());
  EXPECT_EQ(query_mr(third, ours.handle).error, ENOENT) << "its memory is gone";
  EXPECT_EQ(query_mr(partner, theirs.handle).error, 0);
  EXPECT_EQ(partner.dealloc_pd(pd), EBUSY);
  bench.detach(partner.id());
  EXPECT_EQ(third.dereg_mr(theirs.handle), 0);
  EXPECT_EQ(third.dealloc_pd(pd), 0);
}

}  // namespace
}  // namespace rocemu::test
