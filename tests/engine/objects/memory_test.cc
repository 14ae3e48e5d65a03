// Tests memory regions and windows: to which memory a key gives access, who may use the key, and
// how lists of ranges are read and written (IBTA vol 1, 10.6).
#include "emulator/engine/objects/memory_table.h"

#include <gtest/gtest.h>

#include "emulator/engine/objects/memory_access.h"
#include "tests/support/array_memory.h"

namespace rocemu::engine {
namespace {

using abi::MwType;
using abi::RegionKind;

constexpr uint64_t kHuge = ~uint64_t{0};
constexpr ClientId kOwner{1};
constexpr PdId kPd{2};
constexpr MemoryUser kUser{.pd = kPd, .qp = QpNumber{17}};

class Memory : public testing::Test {
 protected:
  MemoryTable table{1};
  MemoryRegion* region = make(abi::kAccessLocalWrite | abi::kAccessMwBind);

  MemoryRegion* make(uint32_t access, PdId pd = kPd) {
    MemoryRegion* made = table.create(kOwner, pd);
    made->address = 0x5000;
    made->iova = 0x1000;
    made->length = 0x100;
    made->access = access;
    return made;
  }
  static std::optional<uint64_t> address_of(const std::optional<TranslatedAddress>& at) {
    return at ? std::optional(at->address) : std::nullopt;
  }
  std::optional<uint64_t> local(uint64_t address, uint64_t length,
                                uint32_t access = abi::kAccessLocalWrite) const {
    return address_of(table.resolve_local(kPd, region->lkey, address, length, access));
  }
  std::optional<uint64_t> remote(uint32_t rkey, uint64_t address, uint64_t length,
                                 uint32_t access = 0, MemoryUser user = kUser) const {
    return address_of(table.resolve_remote(user, rkey, address, length, access));
  }
};

// ---- Regions ----------------------------------------------------------------------------------

TEST(MemoryKeys, AreEqualOnRequest) {
  for (const bool same : {false, true}) {
    MemoryTable table(1, same);
    MemoryRegion* region = table.create(kOwner, kPd);
    EXPECT_EQ(region->lkey == region->rkey, same);
    const uint32_t before = region->lkey;
    table.renew_keys(*region);
    EXPECT_NE(region->lkey, before);
    EXPECT_EQ(region->lkey == region->rkey, same);
  }
  MemoryTable table(1, true);
  EXPECT_EQ(table.create(kOwner, kPd, abi::RegionKind::kNull)->rkey, 0u);
}

using Regions = Memory;

TEST_F(Regions, TranslateWhatLiesWithin) {
  EXPECT_EQ(local(0x1000, 0x100), 0x5000u);
  EXPECT_EQ(local(0x10ff, 1), 0x50ffu);
  EXPECT_EQ(local(0x1100, 0), 0x5100u);
  EXPECT_EQ(local(0x1000, 0x101), std::nullopt);
  EXPECT_EQ(local(0x1100, 1), std::nullopt);
  EXPECT_EQ(local(0x0fff, 1), std::nullopt);
  EXPECT_EQ(local(0x1001, kHuge), std::nullopt);
  EXPECT_EQ(local(kHuge, 1), std::nullopt);
  EXPECT_EQ(local(0, 1), std::nullopt);
}

// A QP uses memory regions of its PD (IBTA vol 1, 10.2.3). If clients share the PD, a region is in
// the memory of the client that registered it.
TEST_F(Regions, AreForTheirPdAndInTheirOwner) {
  EXPECT_EQ(table.resolve_local(PdId{9}, region->lkey, 0x1000, 1, 0), std::nullopt);
  EXPECT_EQ(remote(region->rkey, 0x1000, 1, 0, {.pd = PdId{9}, .qp = kUser.qp}), std::nullopt);
  EXPECT_EQ(table.resolve_local(kPd, region->lkey, 0x1000, 1, 0)->client, kOwner);
}

TEST_F(Regions, HaveKeysThatAreNotEachOther) {
  EXPECT_EQ(table.resolve_local(kPd, region->rkey, 0x1000, 1, 0), std::nullopt);
  EXPECT_EQ(remote(region->lkey, 0x1000, 1), std::nullopt);
  EXPECT_EQ(remote(region->rkey, 0x1000, 1), 0x5000u);
}

TEST_F(Regions, GrantOnlyTheirAccess) {
  region->access = 0;
  EXPECT_EQ(local(0x1000, 1, abi::kAccessLocalWrite), std::nullopt);
  EXPECT_EQ(local(0x1000, 1, 0), 0x5000u);
  EXPECT_EQ(remote(region->rkey, 0x1000, 1, abi::kAccessRemoteRead), std::nullopt);
}

TEST_F(Regions, HaveKeysThatEndWithThem) {
  const uint32_t lkey = region->lkey, rkey = region->rkey;
  table.destroy(region->id);
  EXPECT_EQ(table.resolve_local(kPd, lkey, 0x1000, 1, 0), std::nullopt);
  make(0);
  EXPECT_EQ(table.resolve_local(kPd, lkey, 0x1000, 1, 0), std::nullopt);
  EXPECT_EQ(remote(rkey, 0x1000, 1), std::nullopt);
}

TEST_F(Regions, RegisteredAnewHaveNewKeys) {
  for (int i = 0; i < 2000; ++i) {
    const uint32_t lkey = region->lkey, rkey = region->rkey;
    table.renew_keys(*region);
    ASSERT_NE(region->lkey, lkey);
    ASSERT_NE(region->rkey, rkey);
    ASSERT_NE(region->lkey, region->rkey);
    ASSERT_EQ(table.find_by_lkey(lkey), nullptr);
  }
}

// An implicit on-demand region is the whole address space: ibv_reg_mr(3).
TEST_F(Regions, OfTheWholeAddressSpaceReachEverywhere) {
  region->address = region->iova = 0;
  region->length = kHuge;
  EXPECT_EQ(local(0, 1), 0u);
  EXPECT_EQ(local(kHuge - 1, 1), kHuge - 1);
  EXPECT_EQ(local(kHuge, 1), std::nullopt);
  EXPECT_EQ(local(0x7fff00000000, uint64_t{1} << 31), 0x7fff00000000u);
  EXPECT_EQ(local(2, kHuge), std::nullopt);
}

TEST_F(Regions, OfNoLengthHoldNothing) {
  region->length = 0;
  EXPECT_EQ(local(0x1000, 0), 0x5000u);
  EXPECT_EQ(local(0x1000, 1), std::nullopt);
}

// ibv_alloc_null_mr(3): every access is allowed, but only by L_Key.
TEST_F(Regions, ThatAreNullAreLocalAndEverywhere) {
  const MemoryRegion* null = table.create(kOwner, kPd, RegionKind::kNull);
  for (const auto& [address, length] :
       {std::pair{uint64_t{0}, kHuge}, {kHuge, kHuge}, {uint64_t{0x1234}, uint64_t{1}}}) {
    const auto place =
        table.resolve_local(kPd, null->lkey, address, length, abi::kAccessLocalWrite);
    ASSERT_TRUE(place);
    EXPECT_TRUE(place->null);
  }
  EXPECT_EQ(table.resolve_local(PdId{9}, null->lkey, 0, 1, 0), std::nullopt);
  EXPECT_EQ(null->rkey, 0u);
  for (uint32_t tag = 0; tag < 256; ++tag) {
    ASSERT_EQ(remote(null->id.value << 8 | tag, 0, 1), std::nullopt);
  }
}

// ---- Windows ----------------------------------------------------------------------------------

class Windows : public Memory {
 protected:
  MemoryWindow* window(MwType type) { return table.create_window(kOwner, kPd, type); }
  Bind to_region(const MemoryWindow& of) const {
    return {.window = of.id,
            .rkey = (of.rkey & ~0xffu) | ((of.rkey + 1) & 0xff),
            .lkey = region->lkey,
            .address = 0x1010,
            .length = 0x20,
            .access = abi::kAccessRemoteWrite};
  }
};

TEST_F(Windows, OpenNothingBeforeTheyAreBound) {
  for (const MwType type : {MwType::k1, MwType::k2}) {
    const MemoryWindow* fresh = window(type);
    EXPECT_EQ(remote(fresh->rkey, 0x1000, 0), std::nullopt);
    EXPECT_EQ(remote(fresh->rkey, 0, 1), std::nullopt);
  }
}

TEST_F(Windows, OpenTheirPartOfTheRegion) {
  for (const MwType type : {MwType::k1, MwType::k2}) {
    MemoryWindow* mw = window(type);
    const uint32_t unbound_rkey = mw->rkey;
    const Bind bind = to_region(*mw);
    ASSERT_TRUE(table.bind(kUser, bind));
    EXPECT_EQ(remote(bind.rkey, 0x1010, 0x20, abi::kAccessRemoteWrite), 0x5010u);
    EXPECT_EQ(remote(bind.rkey, 0x102f, 1, abi::kAccessRemoteWrite), 0x502fu);
    EXPECT_EQ(remote(bind.rkey, 0x1010, 0x21), std::nullopt);
    EXPECT_EQ(remote(bind.rkey, 0x100f, 1), std::nullopt);
    EXPECT_EQ(remote(bind.rkey, 0x1030, 1), std::nullopt);
    EXPECT_EQ(remote(bind.rkey, 0x1011, kHuge), std::nullopt);
    EXPECT_EQ(remote(bind.rkey, 0x1010, 1, abi::kAccessRemoteRead), std::nullopt);
    EXPECT_EQ(remote(unbound_rkey, 0x1010, 1), std::nullopt);
    EXPECT_EQ(remote(bind.rkey, 0x1010, 1, 0, {.pd = PdId{9}, .qp = kUser.qp}), std::nullopt);
    EXPECT_EQ(table.find_by_lkey(bind.rkey), nullptr) << "an R_Key only";
  }
}

// 10.6.7.2: the consumer owns the low 8 bits of the key of a type 2 window. mlx5, irdma and rxe use
// only these bits.
TEST_F(Windows, TakeTheLow8BitsOfTheKeyOfABind) {
  for (const uint32_t others : {0u, 0xffffff00u, 0x12345600u}) {
    MemoryWindow* mw = window(MwType::k2);
    Bind bind = to_region(*mw);
    const uint32_t right = bind.rkey;
    bind.rkey = others | (right & 0xff);
    ASSERT_TRUE(table.bind(kUser, bind));
    EXPECT_EQ(mw->rkey, right);
    EXPECT_EQ(remote(right, 0x1010, 1), 0x5010u);
    EXPECT_EQ(remote(bind.rkey, 0x1010, 1), std::nullopt) << "no key of any window";
    EXPECT_FALSE(table.invalidate(kUser, bind.rkey));
    EXPECT_TRUE(table.invalidate(kUser, right));
  }
}

// 10.6.7.2.1: only the peer of the QP on which a type 2B window was bound may use it; every QP of
// the PD may use a type 1 window.
TEST_F(Windows, OfType2BelongToOneQp) {
  const MemoryUser other{.pd = kPd, .qp = QpNumber{18}};
  MemoryWindow* one = window(MwType::k1);
  ASSERT_TRUE(table.bind(kUser, to_region(*one)));
  EXPECT_TRUE(remote(one->rkey, 0x1010, 1, 0, other));
  MemoryWindow* two = window(MwType::k2);
  ASSERT_TRUE(table.bind(kUser, to_region(*two)));
  EXPECT_FALSE(remote(two->rkey, 0x1010, 1, 0, other));
  EXPECT_TRUE(remote(two->rkey, 0x1010, 1));
  table.unbind_windows_of(kUser.qp);
  EXPECT_FALSE(remote(two->rkey, 0x1010, 1));
  EXPECT_TRUE(remote(one->rkey, 0x1010, 1));
  EXPECT_EQ(region->windows, 1u);
}

// ibv_bind_mw(3): with IBV_ACCESS_ZERO_BASED, the peer's addresses start with 0 at the window's
// start.
TEST_F(Windows, ThatAreZeroBasedCountFromTheirStart) {
  MemoryWindow* mw = window(MwType::k2);
  Bind bind = to_region(*mw);
  bind.access |= abi::kAccessZeroBased;
  ASSERT_TRUE(table.bind(kUser, bind));
  EXPECT_EQ(remote(bind.rkey, 0, 0x20), 0x5010u);
  EXPECT_EQ(remote(bind.rkey, 0x1f, 1), 0x502fu);
  EXPECT_EQ(remote(bind.rkey, 0x20, 1), std::nullopt);
  EXPECT_EQ(remote(bind.rkey, 0x1010, 1), std::nullopt);
}

// IBTA vol 1, o10-36.2.2: a type 1 window is never zero-based. Linux checks this in
// rxe_check_bind_mw(), without regard to the length.
TEST_F(Windows, OfType1CannotBeZeroBased) {
  MemoryWindow* mw = window(MwType::k1);
  Bind bind = to_region(*mw);
  ASSERT_TRUE(table.bind(kUser, bind));
  const uint32_t rkey = mw->rkey;
  bind.access |= abi::kAccessZeroBased;
  bind.rkey = rkey + 1;
  EXPECT_FALSE(table.bind(kUser, bind));
  bind.length = 0;
  EXPECT_FALSE(table.bind(kUser, bind));
  EXPECT_EQ(mw->rkey, rkey);
  EXPECT_EQ(remote(rkey, 0x1010, 0x20), 0x5010u) << "the earlier bind is still valid";
  EXPECT_EQ(remote(rkey, 0, 0x20), std::nullopt);
}

struct Refused {
  const char* name;
  void (*spoil)(MemoryTable&, MemoryRegion&, Bind&);
};

class BindRefusal : public Windows, public testing::WithParamInterface<Refused> {};

TEST_P(BindRefusal, LeavesTheWindowAsItWas) {
  for (const MwType type : {MwType::k1, MwType::k2}) {
    MemoryWindow* mw = window(type);
    region->access = abi::kAccessLocalWrite | abi::kAccessMwBind;
    Bind bind = to_region(*mw);
    const uint32_t rkey = mw->rkey;
    GetParam().spoil(table, *region, bind);
    EXPECT_FALSE(table.bind(kUser, bind));
    EXPECT_EQ(mw->rkey, rkey);
    EXPECT_FALSE(mw->region);
    EXPECT_EQ(region->windows, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    For, BindRefusal,
    testing::Values(
        Refused{"AWindowThatIsNone",
                [](MemoryTable&, MemoryRegion& region, Bind& bind) { bind.window = region.id; }},
        Refused{"ARegionThatIsNone",
                [](MemoryTable&, MemoryRegion&, Bind& bind) { bind.lkey += 256; }},
        Refused{"AStaleLKey", [](MemoryTable&, MemoryRegion&, Bind& bind) { bind.lkey ^= 1; }},
        Refused{"TheRKeyOfTheRegion",
                [](MemoryTable&, MemoryRegion& region, Bind& bind) { bind.lkey = region.rkey; }},
        Refused{"ARegionOfAnotherPd",  // C10-72
                [](MemoryTable& table, MemoryRegion&, Bind& bind) {
                  MemoryRegion* other = table.create(kOwner, PdId{9});
                  other->iova = 0x1000;
                  other->length = 0x100;
                  other->access = abi::kAccessMwBind | abi::kAccessLocalWrite;
                  bind.lkey = other->lkey;
                }},
        Refused{"ANullRegion",
                [](MemoryTable& table, MemoryRegion&, Bind& bind) {
                  bind.lkey = table.create(kOwner, kPd, RegionKind::kNull)->lkey;
                }},
        Refused{"ARegionWithoutMwBind",  // C10-73
                [](MemoryTable&, MemoryRegion& region, Bind&) {
                  region.access = abi::kAccessLocalWrite;
                }},
        Refused{"AZeroBasedRegion", [](MemoryTable&, MemoryRegion& region,
                                       Bind&) { region.access |= abi::kAccessZeroBased; }},
        Refused{
            "RemoteWriteWithoutLocalWrite",  // C10-74
            [](MemoryTable&, MemoryRegion& region, Bind&) { region.access = abi::kAccessMwBind; }},
        Refused{"RemoteAtomicWithoutLocalWrite",
                [](MemoryTable&, MemoryRegion& region, Bind& bind) {
                  region.access = abi::kAccessMwBind;
                  bind.access = abi::kAccessRemoteAtomic;
                }},
        Refused{
            "FlushOfARegionWithoutIt",
            [](MemoryTable&, MemoryRegion&, Bind& bind) { bind.access = abi::kAccessFlushGlobal; }},
        Refused{"AccessThatIsNotRemote",
                [](MemoryTable&, MemoryRegion&, Bind& bind) { bind.access = abi::kAccessMwBind; }},
        Refused{"OneByteTooMany",  // C10-75
                [](MemoryTable&, MemoryRegion&, Bind& bind) { bind.length = 0xf1; }},
        Refused{"OneByteTooEarly",
                [](MemoryTable&, MemoryRegion&, Bind& bind) { bind.address = 0xfff; }},
        Refused{"AHugeLength",
                [](MemoryTable&, MemoryRegion&, Bind& bind) { bind.length = kHuge; }}),
    [](const testing::TestParamInfo<Refused>& one) { return one.param.name; });

TEST_F(Windows, OfAnotherPdCannotBeBound) {
  MemoryWindow* mw = table.create_window(kOwner, PdId{9}, MwType::k1);
  EXPECT_FALSE(table.bind(kUser, to_region(*mw)));
}

TEST_F(Windows, GrantNothingForLocalWrite) {
  MemoryWindow* mw = window(MwType::k1);
  Bind bind = to_region(*mw);
  bind.access = abi::kAccessLocalWrite | abi::kAccessRemoteRead;
  EXPECT_TRUE(table.bind(kUser, bind));
  EXPECT_TRUE(remote(bind.rkey, 0x1010, 1, abi::kAccessRemoteRead));
  EXPECT_FALSE(remote(bind.rkey, 0x1010, 1, abi::kAccessRemoteWrite));
}

TEST_F(Windows, MayGrantReadsThatTheRegionDoesNot) {
  MemoryWindow* mw = window(MwType::k1);
  Bind bind = to_region(*mw);
  bind.access = abi::kAccessRemoteRead;
  region->access = abi::kAccessMwBind;
  EXPECT_TRUE(table.bind(kUser, bind));
  EXPECT_TRUE(remote(bind.rkey, 0x1010, 1, abi::kAccessRemoteRead));
  EXPECT_FALSE(remote(region->rkey, 0x1010, 1, abi::kAccessRemoteRead));
}

// ibv_alloc_mw(3): a bind of zero length unbinds a type 1 window, which can be bound again at any
// time.
TEST_F(Windows, OfType1AreBoundAnewAndUnboundByABind) {
  MemoryWindow* mw = window(MwType::k1);
  const Bind first = to_region(*mw);
  ASSERT_TRUE(table.bind(kUser, first));
  Bind second = to_region(*mw);
  second.address = 0x1040;
  ASSERT_TRUE(table.bind(kUser, second));
  EXPECT_FALSE(remote(first.rkey, 0x1010, 1));
  EXPECT_FALSE(remote(second.rkey, 0x1010, 1));
  EXPECT_EQ(remote(second.rkey, 0x1040, 1), 0x5040u);
  EXPECT_EQ(region->windows, 1u);
  Bind none = to_region(*mw);
  none.length = 0;
  none.lkey = 0;
  ASSERT_TRUE(table.bind(kUser, none));
  EXPECT_FALSE(remote(none.rkey, 0x1040, 1));
  EXPECT_EQ(region->windows, 0u);
  EXPECT_FALSE(table.invalidate(kUser, none.rkey)) << "o10-37.2.26: type 2 only";
}

// o10-37.2.30 and o10-37.2.40; ibv_alloc_mw(3): an invalidate unbinds a type 2 window.
TEST_F(Windows, OfType2AreFreedByAnInvalidateOnly) {
  MemoryWindow* mw = window(MwType::k2);
  EXPECT_FALSE(table.invalidate(kUser, mw->rkey)) << "is not bound";
  const Bind bind = to_region(*mw);
  ASSERT_TRUE(table.bind(kUser, bind));
  EXPECT_FALSE(table.bind(kUser, to_region(*mw))) << "is bound";
  Bind none = bind;
  none.length = 0;
  EXPECT_FALSE(table.bind(kUser, none));
  EXPECT_TRUE(remote(bind.rkey, 0x1010, 1));

  EXPECT_FALSE(table.invalidate(kUser, bind.rkey ^ 1)) << "a stale key";
  EXPECT_FALSE(table.invalidate({.pd = PdId{9}, .qp = kUser.qp}, bind.rkey));
  EXPECT_FALSE(table.invalidate({.pd = kPd, .qp = QpNumber{18}}, bind.rkey));
  EXPECT_FALSE(table.invalidate(kUser, region->rkey));
  EXPECT_TRUE(remote(bind.rkey, 0x1010, 1));
  EXPECT_TRUE(table.invalidate(kUser, bind.rkey));
  EXPECT_FALSE(remote(bind.rkey, 0x1010, 1));
  EXPECT_FALSE(table.invalidate(kUser, bind.rkey)) << "twice";
  EXPECT_EQ(region->windows, 0u);
  EXPECT_TRUE(table.bind(kUser, to_region(*mw)));
}

TEST_F(Windows, EndWithTheirRegionOrThemselves) {
  MemoryWindow* mw = window(MwType::k2);
  ASSERT_TRUE(table.bind(kUser, to_region(*mw)));
  MemoryWindow* other = window(MwType::k1);
  ASSERT_TRUE(table.bind(kUser, to_region(*other)));
  const uint32_t other_rkey = other->rkey;
  table.destroy_window(other->id);
  EXPECT_EQ(region->windows, 1u);
  EXPECT_FALSE(remote(other_rkey, 0x1010, 1));
  table.destroy(region->id);
  EXPECT_FALSE(mw->region);
  EXPECT_FALSE(remote(mw->rkey, 0x1010, 1));
  table.unbind_windows_of(kUser.qp);
  table.destroy_window(mw->id);
}

TEST_F(Windows, HaveAnExtentForRequestsThatMeanAllOfThem) {
  MemoryWindow* mw = window(MwType::k1);
  EXPECT_FALSE(table.extent_of(mw->rkey));
  ASSERT_TRUE(table.bind(kUser, to_region(*mw)));
  EXPECT_EQ(table.extent_of(mw->rkey)->address, 0x1010u);
  EXPECT_EQ(table.extent_of(mw->rkey)->length, 0x20u);
  EXPECT_EQ(table.extent_of(region->rkey)->address, 0x1000u);
  EXPECT_EQ(table.extent_of(region->rkey)->length, 0x100u);
  EXPECT_FALSE(table.extent_of(region->lkey));
  EXPECT_FALSE(table.extent_of(0));
}

// ---- Lists ------------------------------------------------------------------------------------

class Lists : public testing::Test {
 protected:
  Lists() {
    for (const ClientId client : {kOwner, kOther}) {
      test::ArrayMemory::Array& array = memory.map(client, 0x1000, 64);
      array.bytes = test::pattern(64, client.value);
    }
  }
  /// Reads into three buffers, one of which is empty, so that ranges and buffers end at different
  /// bytes.
  std::vector<uint8_t> read(const MemoryList& list, size_t size) {
    std::vector<uint8_t> out(size, 0xa5);
    const std::array<std::span<uint8_t>, 3> to{std::span(out).first(3), std::span<uint8_t>(),
                                               std::span(out).subspan(3)};
    result = list.read(memory, to);
    return out;
  }
  MemoryResult write(const MemoryList& list, const std::vector<uint8_t>& bytes) {
    const std::array<std::span<const uint8_t>, 3> from{
        std::span(bytes).first(3), std::span<const uint8_t>(), std::span(bytes).subspan(3)};
    return list.write(memory, from);
  }
  static TranslatedAddress in(ClientId client, uint64_t offset) {
    return {client, 0x1000 + offset};
  }
  std::vector<uint8_t> bytes(ClientId client, uint64_t offset, size_t size) {
    const auto at = memory.at(client, 0x1000 + offset, size);
    return {at.begin(), at.end()};
  }

  static constexpr ClientId kOther{2};
  static constexpr TranslatedAddress kNull{.client = kOwner, .address = 0, .null = true};
  test::ArrayMemory memory;
  MemoryResult result{};
};

std::vector<uint8_t> operator+(std::vector<uint8_t> left, const std::vector<uint8_t>& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

TEST_F(Lists, OfOneClientTakeOneCall) {
  MemoryList list(in(kOwner, 0), 8);
  list.add(in(kOwner, 32), 4);
  EXPECT_EQ(read(list, 12), bytes(kOwner, 0, 8) + bytes(kOwner, 32, 4));
  EXPECT_EQ(result, MemoryResult::kDone);
  EXPECT_EQ(memory.reads, 1u);
  EXPECT_EQ(write(list, test::pattern(12, 7)), MemoryResult::kDone);
  EXPECT_EQ(memory.writes, 1u);
  EXPECT_EQ(bytes(kOwner, 0, 8) + bytes(kOwner, 32, 4), test::pattern(12, 7));
}

TEST_F(Lists, OfSeveralClientsAskEach) {
  MemoryList list(in(kOwner, 0), 2);
  list.add(in(kOther, 8), 5);
  list.add(in(kOwner, 16), 1);
  EXPECT_EQ(read(list, 8), bytes(kOwner, 0, 2) + bytes(kOther, 8, 5) + bytes(kOwner, 16, 1));
  EXPECT_EQ(write(list, test::pattern(8, 7)), MemoryResult::kDone);
  EXPECT_EQ(bytes(kOwner, 0, 2) + bytes(kOther, 8, 5) + bytes(kOwner, 16, 1), test::pattern(8, 7));
}

// ibv_alloc_null_mr(3): "discards all data written to it, and always returns 0 on read".
TEST_F(Lists, OfNullRegionsGiveZerosAndTakeAnything) {
  MemoryList list(kNull, 4);
  list.add(in(kOwner, 0), 2);
  list.add(kNull, 2);
  const std::vector<uint8_t> want =
      std::vector<uint8_t>(4) + bytes(kOwner, 0, 2) + std::vector<uint8_t>(2);
  EXPECT_EQ(read(list, 8), want);
  EXPECT_EQ(write(list, test::pattern(8, 7)), MemoryResult::kDone);
  const auto written = test::pattern(8, 7);
  EXPECT_EQ(bytes(kOwner, 0, 2), (std::vector<uint8_t>{written[4], written[5]}));
  EXPECT_EQ(read(MemoryList(kNull, 5), 5), std::vector<uint8_t>(5));
}

TEST_F(Lists, SayWhatWentWrong) {
  MemoryList list(in(kOwner, 0), 4);
  list.add(in(kOther, 62), 4);
  read(list, 8);
  EXPECT_EQ(result, MemoryResult::kFault);
  EXPECT_EQ(write(list, test::pattern(8)), MemoryResult::kFault);
  memory.gone.insert(kOwner);
  read(list, 8);
  EXPECT_EQ(result, MemoryResult::kGone);
  EXPECT_EQ(MemoryList().read(memory, {}), MemoryResult::kDone);
  EXPECT_EQ(MemoryList().write(memory, {}), MemoryResult::kDone);
}

}  // namespace
}  // namespace rocemu::engine
